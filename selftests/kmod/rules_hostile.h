/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rules_hostile.h - code that runs with any register values, and the data it runs on.
 */
#ifndef RULES_HOSTILE_H
#define RULES_HOSTILE_H

#include <stdint.h>

/**
 * struct stop - register values with which the code below stays at a place for a while
 * @sp: stack pointer.
 * @fp: frame pointer: rbp or x29.
 * @other: rbx, or x30.
 * @code: where it stays: wander_code, or a copy of it.
 */
struct stop {
	uint64_t sp, fp, other, code;
};

/*
 * wander() goes from stop to stop, and begins again after the last one. It uses no stack, so there
 * need not be one. Its rule is that of a function's first instruction.
 */
void wander(const struct stop *first, const struct stop *end, uint64_t rounds)
	__attribute__((noreturn));
extern const char wander_code[], wander_code_end[];
extern const char wander_stays[]; /* the place in it with the registers of the stop */

#ifdef __x86_64__
asm("	.text\n"
    "	.globl wander, wander_code, wander_code_end, wander_stays\n"
    "	.balign 16\n"
    "	.cfi_startproc\n"
    "wander:\n"
    "	mov %rdi, %r8\n"
    "	jmp *24(%r8)\n"
    "wander_code:\n"
    "	mov 0(%r8), %rsp\n"
    "	mov 8(%r8), %rbp\n"
    "	mov 16(%r8), %rbx\n"
    "	mov %rdx, %rcx\n"
    "	mov %rbx, %r11\n"
    "wander_stays:\n"
    "	dec %rcx\n"
    "	jnz wander_stays\n"
    "	add $32, %r8\n"
    "	cmp %rsi, %r8\n"
    "	cmovae %rdi, %r8\n"
    "	jmp *24(%r8)\n"
    "wander_code_end:\n"
    "	.cfi_endproc\n");
#else
asm("	.text\n"
    "	.globl wander, wander_code, wander_code_end, wander_stays\n"
    "	.balign 16\n"
    "	.cfi_startproc\n"
    "wander:\n"
    "	mov x8, x0\n"
    "	ldr x10, [x8, #24]\n"
    "	br x10\n"
    "wander_code:\n"
    "	ldp x9, x29, [x8]\n"
    "	mov sp, x9\n"
    "	ldr x30, [x8, #16]\n"
    "	mov x11, x2\n"
    "wander_stays:\n"
    "	subs x11, x11, #1\n"
    "	b.ne wander_stays\n"
    "	add x8, x8, #32\n"
    "	cmp x8, x1\n"
    "	csel x8, x0, x8, hs\n"
    "	ldr x10, [x8, #24]\n"
    "	br x10\n"
    "wander_code_end:\n"
    "	.cfi_endproc\n");
#endif

#endif
