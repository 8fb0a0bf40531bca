// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coroutine.c - a chain of calls in a coroutine (makecontext(3)), on a stack of its own. Whenever it
 * has worked for some ms it goes back to main(), which resumes it. It works for as many ms as the
 * argument says, or for ever if it is 0.
 *
 * Built with BARE, the coroutine is made as Boost.Context and PHP make theirs: by code in assembly that no unwind
 * information describes, to the end of which the outermost function would return.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define noinline __attribute__((noinline, noclone))
#define STACK (256 * 1024)

static volatile unsigned long count;

#ifdef BARE
typedef const void **place; /* the stack pointer of who does not run */

/* Keeps the place of the caller in *@from, and goes to *@to. */
void go_to(place *from, place *to);
extern const char begin_stack[], end_stack[];

__asm__("go_to:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov (%rsi), %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	"begin_stack:\n"
	"	push %rbp\n"
	"	jmp *%rbx\n"
	"end_stack:\n"
	"	xor %rdi, %rdi\n"
	"	call _exit@plt\n"
	"	hlt\n");

/* Makes @to lead to @fn, on a stack of @size bytes at @memory. */
static void make(place *to, char *memory, size_t size, void (*fn)(void))
{
	place sp = (place)(memory + size) - 17; /* so that @fn finds its stack aligned */

	memset(sp, 0, 17 * sizeof(*sp));
	sp[4] = end_stack; /* %rbp */
	sp[5] = (const void *)fn; /* %rbx */
	sp[6] = begin_stack;
	*to = sp;
}
#else
typedef ucontext_t place;

static void go_to(place *from, place *to)
{
	swapcontext(from, to);
}

static void make(place *to, char *memory, size_t size, void (*fn)(void))
{
	getcontext(to);
	to->uc_stack.ss_sp = memory;
	to->uc_stack.ss_size = size;
	to->uc_link = NULL;
	makecontext(to, fn, 0);
}
#endif

static place resumer, coroutine;

static noinline void inner(void)
{
	for (;;) {
		for (int i = 0; i < 3000000; i++)
			count++;
		go_to(&coroutine, &resumer);
	}
}

static noinline void middle(void)
{
	inner();
	count = 1;
}

static noinline void outer(void)
{
	middle();
	count = 2;
}

static void body(void)
{
	outer();
	count = 3;
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 0;
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	char *memory = malloc(STACK);

	if (!memory)
		return 1;
	make(&coroutine, memory, STACK, body);
	puts("ready");
	fflush(stdout);
	while (!ms || clock() < end)
		go_to(&resumer, &coroutine);
	return 0;
}
