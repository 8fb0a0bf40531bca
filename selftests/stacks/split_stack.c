// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * split_stack.c - a chain of calls over many stacks, which is built with -fsplit-stack where the
 * compiler knows that: each call of deeper() gets a new stack from __morestack() of libgcc. It works
 * for as many ms as the argument says, or for ever if it is 0.
 *
 * Such a stack has room for 3584 bytes more, which is too little for a signal. So programs like this
 * one have an alternate stack for their handlers; with a second argument it has none.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define noinline __attribute__((noinline, noclone))
#define STACKS 20
#define HANDLERS (256 * 1024) /* bytes of the alternate stack */
#define ROOM 16384 /* bytes of a frame: more than is left of the stack before */

static volatile unsigned long count;
static long ms;

static noinline void inner(void)
{
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	while (!ms || clock() < end)
		for (int i = 0; i < 1000000; i++)
			count++;
}

static noinline void middle(void)
{
	inner();
	count = 1;
}

static noinline void deeper(int n)
{
	char room[ROOM];

	memset(room, n, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	if (n)
		deeper(n - 1);
	else
		middle();
	count = 2;
}

static noinline void outer(void)
{
	deeper(STACKS);
	count = 3;
}

int main(int argc, char **argv)
{
#ifndef SPLIT
	puts("the compiler cannot split stacks here");
	return 0;
#endif
	stack_t handlers = { .ss_sp = malloc(HANDLERS), .ss_size = HANDLERS };

	if (!handlers.ss_sp || (argc < 3 && sigaltstack(&handlers, NULL)))
		return 1;
	ms = argc > 1 ? atol(argv[1]) : 0;
	puts("ready");
	fflush(stdout);
	outer();
	return 0;
}
