// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coroutine.c - a chain of calls in a coroutine (makecontext(3)), on a stack of its own. Whenever it
 * has worked for some ms it goes back to main(), which resumes it. It works for as many ms as the
 * argument says, or for ever if it is 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#define noinline __attribute__((noinline, noclone))
#define STACK (256 * 1024)

static volatile unsigned long count;
static ucontext_t resumer, coroutine;

static noinline void inner(void)
{
	for (;;) {
		for (int i = 0; i < 3000000; i++)
			count++;
		swapcontext(&coroutine, &resumer);
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

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = malloc(STACK);
	coroutine.uc_stack.ss_size = STACK;
	coroutine.uc_link = NULL;
	if (!coroutine.uc_stack.ss_sp)
		return 1;
	makecontext(&coroutine, body, 0);
	puts("ready");
	fflush(stdout);
	while (!ms || clock() < end)
		swapcontext(&resumer, &coroutine);
	return 0;
}
