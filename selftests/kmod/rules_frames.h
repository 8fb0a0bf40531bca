/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rules_frames.h - frames that compilers seldom make, and code that stays in them forever. Each is
 * described in the same way as the linker, gcc, libcrypto or the C library describe theirs.
 */
#ifndef RULES_FRAMES_H
#define RULES_FRAMES_H

/* These functions do not return. */
void frame_of_jump(
	void); /* described as the end of longjmp(): CFA in a register, and the return address */
extern const char frame_of_jump_stays[];
void returns_nowhere(void); /* its return address is where no code is */
extern const char returns_nowhere_stays[];
extern uint64_t *upper_stack; /* room at a higher address than the callers */
#ifdef __x86_64__
void stub_first(void); /* a stub of the linker, before it pushes */
void stub_second(void); /* a stub of the linker, behind the push */
void frame_of_register(void); /* CFA = r11 + 8 */
void frame_in_stack(void); /* CFA = load(rsp + 40) + 8 */
void frame_on_upper(void); /* on that stack: CFA = load(rsp + 40) + 8 */
void frame_of_link(void); /* on that stack: CFA = load(load(rsp + 40)) + 8 */
void clone_failed(void); /* behind the system call of clone(), which failed */
void clone_child(void); /* behind the system call of clone(), which returned 0 */
extern const char clone_child_stays[]; /* where clone_child() stays afterwards */
void frame_of_index(void); /* CFA = load(rsp + 8 + 8 * r9) + 8 */
void frame_of_no_kind(void); /* CFA = (rsp + 8) | 1; rbp points to something like a record */

/* Calls fn(n) from a frame whose CFA is in rbx. */
void through_rbx(void (*fn)(int n), int n);

asm("	.text\n"
    "	.balign 16\n"
    "	.globl stub_first, stub_second\n"
    "	.cfi_startproc\n"
    /* CFA = rsp + 8 + ((rip & 15) >= 11) * 8 */
    "	.cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22\n"
    "stub_first:\n"
    "	jmp stub_first\n"
    "	.balign 16\n"
    "stub_second:\n"
    "	.byte 0x90, 0x90, 0x90, 0x90, 0x90, 0x90\n"
    "	.byte 0x68, 0, 0, 0, 0\n" /* push $0 */
    "1:	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.globl returns_nowhere, returns_nowhere_stays\n"
    "returns_nowhere:\n"
    "	.cfi_startproc\n"
    "	movq $1, (%rsp)\n"
    "returns_nowhere_stays:\n"
    "	jmp returns_nowhere_stays\n"
    "	.cfi_endproc\n"
    "	.globl frame_of_register\n"
    "frame_of_register:\n"
    "	.cfi_startproc\n"
    "	mov %rsp, %r11\n"
    "	.cfi_def_cfa_register %r11\n"
    "	sub $200, %rsp\n"
    "	and $-64, %rsp\n"
    "1:	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.globl frame_in_stack\n"
    "frame_in_stack:\n"
    "	.cfi_startproc\n"
    "	mov %rsp, %rax\n"
    "	.cfi_def_cfa_register %rax\n"
    "	sub $200, %rsp\n"
    "	and $-64, %rsp\n"
    "	mov %rax, 40(%rsp)\n"
    "	.cfi_escape 0x0f, 5, 0x77, 40, 0x06, 0x23, 8\n"
    "	xor %eax, %eax\n"
    "1:	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.globl frame_on_upper, frame_of_link\n"
    "frame_on_upper:\n"
    "	.cfi_startproc\n"
    "	mov %rsp, %rax\n"
    "	.cfi_def_cfa_register %rax\n"
    "	mov upper_stack(%rip), %rsp\n"
    "	mov %rax, 40(%rsp)\n"
    "	.cfi_escape 0x0f, 5, 0x77, 40, 0x06, 0x23, 8\n"
    "	xor %eax, %eax\n"
    "1:	jmp 1b\n"
    "	.cfi_endproc\n"
    "frame_of_link:\n"
    "	.cfi_startproc\n"
    "	.cfi_signal_frame\n" /* so marks OCaml's runtime its functions */
    "	mov %rsp, %rax\n"
    "	.cfi_def_cfa_register %rax\n"
    "	mov upper_stack(%rip), %rsp\n"
    "	mov %rax, 48(%rsp)\n"
    "	lea 48(%rsp), %rdx\n"
    "	mov %rdx, 40(%rsp)\n"
    "	.cfi_escape 0x0f, 6, 0x77, 40, 0x06, 0x06, 0x23, 8\n"
    "	xor %eax, %eax\n"
    "1:	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.globl frame_of_index\n"
    "frame_of_index:\n"
    "	.cfi_startproc\n"
    "	mov %rsp, %rax\n"
    "	.cfi_def_cfa_register %rax\n"
    "	mov $5, %r9d\n"
    "	sub $200, %rsp\n"
    "	and $-64, %rsp\n"
    "	mov %rax, 8(%rsp,%r9,8)\n"
    "	.cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8\n"
    "	xor %eax, %eax\n"
    "1:	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.globl frame_of_no_kind\n"
    "frame_of_no_kind:\n"
    "	.cfi_startproc\n"
    "	.cfi_escape 0x0f, 4, 0x77, 8, 0x31, 0x21\n"
    "	lea returns_nowhere(%rip), %rax\n"
    "	push %rax\n"
    "	push $0\n"
    "	mov %rsp, %rbp\n"
    "1:	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.globl frame_of_jump, frame_of_jump_stays\n"
    "frame_of_jump:\n"
    "	.cfi_startproc\n"
    "	mov (%rsp), %rdx\n"
    "	push $0\n"
    "	mov %rsp, %rbp\n"
    "	.cfi_def_cfa %rdi, 0\n"
    "	.cfi_register %rip, %rdx\n"
    "frame_of_jump_stays:\n"
    "	jmp frame_of_jump_stays\n"
    "	.cfi_endproc\n"
    "	.globl clone_failed, clone_child, clone_child_stays\n"
    "clone_failed:\n"
    "	.cfi_startproc\n"
    "	mov $-1, %eax\n"
    "	.cfi_endproc\n"
    "	syscall\n"
    "	test %rax, %rax\n"
    "	.byte 0x7c, 0xfe, 0x74, 1\n" /* jl to itself */
    "	ret\n"
    "clone_child:\n"
    "	.cfi_startproc\n"
    "	mov $24, %eax\n" /* sched_yield() */
    "	.cfi_endproc\n"
    "	syscall\n"
    "	test %rax, %rax\n"
    "	.byte 0x7c, 1\n"
    "clone_child_stays:\n"
    "	.byte 0x74, 0xfe\n" /* je to itself */
    "	ret\n"
    "	.globl through_rbx\n"
    "through_rbx:\n"
    "	.cfi_startproc\n"
    "	push %rbx\n"
    "	.cfi_def_cfa_offset 16\n"
    "	.cfi_offset %rbx, -16\n"
    "	mov %rsp, %rbx\n"
    "	.cfi_def_cfa_register %rbx\n"
    "	sub $200, %rsp\n"
    "	and $-64, %rsp\n"
    "	mov %rdi, %rax\n"
    "	mov %esi, %edi\n"
    "	call *%rax\n"
    "	mov %rbx, %rsp\n"
    "	.cfi_def_cfa_register %rsp\n"
    "	pop %rbx\n"
    "	.cfi_restore %rbx\n"
    "	.cfi_def_cfa_offset 8\n"
    "	ret\n"
    "	.cfi_endproc\n");
#else
void return_in_register(void); /* its return address is in x13 */
void calls_with_return_in_register(void); /* the same, and it calls a function */
extern const char called_with_return_in_register[]; /* where that function stays */

asm("	.text\n"
    "	.balign 16\n"
    "	.globl return_in_register, calls_with_return_in_register\n"
    "	.globl called_with_return_in_register\n"
    "	.globl frame_of_jump, frame_of_jump_stays\n"
    "	.globl returns_nowhere, returns_nowhere_stays\n"
    "returns_nowhere:\n"
    "	.cfi_startproc\n"
    "	mov x30, #4\n"
    "returns_nowhere_stays:\n"
    "	b returns_nowhere_stays\n"
    "	.cfi_endproc\n"
    "frame_of_jump:\n"
    "	.cfi_startproc\n"
    "	mov x13, x30\n"
    "	.cfi_def_cfa x0, 0\n"
    "	.cfi_register x30, x13\n"
    "frame_of_jump_stays:\n"
    "	b frame_of_jump_stays\n"
    "	.cfi_endproc\n"
    "return_in_register:\n"
    "	.cfi_startproc\n"
    "	mov x13, x30\n"
    "	.cfi_register x30, x13\n"
    "	mov x30, xzr\n"
    "1:	b 1b\n"
    "	.cfi_endproc\n"
    "calls_with_return_in_register:\n"
    "	.cfi_startproc\n"
    "	mov x13, x30\n"
    "	.cfi_register x30, x13\n"
    "	bl called_with_return_in_register\n"
    "	mov x30, x13\n"
    "	.cfi_restore x30\n"
    "	ret\n"
    "	.cfi_endproc\n"
    "called_with_return_in_register:\n"
    "	.cfi_startproc\n"
    "1:	b 1b\n"
    "	.cfi_endproc\n");
#endif

#endif
