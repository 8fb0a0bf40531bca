// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lower_stack.c - functions on stacks of their own, some of which lie above those of their callers, as the
 * runtime of OCaml 5 has them: unwind information says where the caller's stack pointer is kept.
 *
 *	lower_stack [circle] [SECONDS]
 *
 * With "circle" the program changes one of these words, so that its callers never end. With SECONDS it works
 * for as much CPU time instead of waiting.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))
#define STACK (64 * 1024)

/* In the order of their addresses. */
enum { LOW, LOWER_MIDDLE, UPPER_MIDDLE, RATHER_HIGH, HIGH, HIGHEST, STACKS };

#ifdef __x86_64__
/* Calls a function on the stack that ends at @top, whose last word keeps the stack pointer. */
void run_on(void (*function)(void), char *top);

/* Does the same, but the last word has the address of the one that keeps it. */
void run_by_link(void (*function)(void), char *top);

/* Does the same, but a register (rbx) keeps it. */
void run_by_register(void (*function)(void), char *top);

/* Does the same, but a register (rbx) has the address of the word that keeps it, and something is pushed. */
void run_by_word(void (*function)(void), char *top);
__asm__(".pushsection .text\n"
	".globl run_on\n"
	".type run_on, @function\n"
	"run_on:\n"
	".cfi_startproc\n"
	/* So are functions of OCaml marked. */
	".cfi_signal_frame\n"
	"	mov %rsp, -8(%rsi)\n"
	"	lea -16(%rsi), %rsp\n"
	/* The frame's end is where the word at rsp + 8 says, and 8 bytes behind it. */
	"	.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8\n"
	"	call *%rdi\n"
	"	mov 8(%rsp), %rsp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size run_on, .-run_on\n"
	".globl run_by_link\n"
	".type run_by_link, @function\n"
	"run_by_link:\n"
	".cfi_startproc\n"
	".cfi_signal_frame\n"
	"	mov %rsp, -16(%rsi)\n"
	"	lea -16(%rsi), %rax\n"
	"	mov %rax, -8(%rsi)\n"
	"	lea -32(%rsi), %rsp\n"
	/* The frame's end is where the word says to which the word at rsp + 24 points, and 8 bytes behind it. */
	"	.cfi_escape 0x0f, 6, 0x77, 24, 0x06, 0x06, 0x23, 8\n"
	"	call *%rdi\n"
	"	mov 16(%rsp), %rsp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size run_by_link, .-run_by_link\n"
	".globl run_by_register\n"
	".type run_by_register, @function\n"
	"run_by_register:\n"
	".cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbx, -16\n"
	"	mov %rsp, %rbx\n"
	"	.cfi_def_cfa_register %rbx\n"
	"	mov %rsi, %rsp\n"
	"	call *%rdi\n"
	"	mov %rbx, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size run_by_register, .-run_by_register\n"
	".globl run_by_word\n"
	".type run_by_word, @function\n"
	"run_by_word:\n"
	".cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbx, -16\n"
	"	lea -16(%rsi), %rbx\n"
	"	lea 8(%rsp), %rax\n"
	"	mov %rax, 8(%rbx)\n"
	"	mov %rbx, %rsp\n"
	"	.cfi_remember_state\n"
	/* The frame's end is where the word at rbx + 8 says, and 8 bytes behind it. */
	"	.cfi_escape 0x0f, 5, 0x73, 8, 0x06, 0x23, 8\n"
	"	push $0\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push $0\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call *%rdi\n"
	"	mov 8(%rbx), %rsp\n"
	"	sub $8, %rsp\n"
	"	.cfi_restore_state\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size run_by_word, .-run_by_word\n"
	".popsection\n");
#else
#define run_by_register run_on
#define run_by_link run_on
#define run_by_word run_on
static void run_on(void (*function)(void), char *top)
{
	(void)function;
	(void)top;
	puts("its stacks are written for x86-64 only");
}
#endif

static char *tops[STACKS];
static int circle, seconds;
static volatile int count;

static noinline void work(void)
{
	while (clock() / CLOCKS_PER_SEC < seconds)
		for (int i = 0; i < 1000000; i++)
			count = i;
}

static noinline void innermost(void)
{
	/* The callers of the function on the lowest stack would be those of the one on the highest. */
	if (circle)
		memcpy(tops[LOW] - 8, tops[HIGH] - 8, 8);
	if (seconds) {
		work();
		_exit(0);
	}
	write(1, "ready\n", 6);
	for (;;)
		pause();
}

static noinline void inner(void)
{
	run_by_register(innermost, tops[HIGHEST]);
	count = 4;
}

static noinline void middle(void)
{
	run_on(inner, tops[HIGH]);
	count = 1;
}

static noinline void between(void)
{
	run_on(middle, tops[LOWER_MIDDLE]);
	count = 5;
}

static noinline void outer(void)
{
	run_by_word(between, tops[RATHER_HIGH]);
	count = 2;
}

static noinline void outermost(void)
{
	run_by_link(outer, tops[UPPER_MIDDLE]);
	count = 3;
}

int main(int argc, char **argv)
{
	char *stacks = mmap(NULL, STACKS * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stacks == MAP_FAILED)
		return 1;
	for (int i = 0; i < STACKS; i++)
		tops[i] = stacks + (i + 1) * STACK;
	circle = argc > 1 && !strcmp(argv[1], "circle");
	seconds = argc > 1 ? atoi(argv[argc - 1]) : 0;
	run_on(outermost, tops[LOW]);
	return 0;
}
