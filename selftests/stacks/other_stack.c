// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * other_stack.c - a signal handler that works on a stack of its own, while the functions that it
 * interrupted are on another stack. It works for as many ms as the argument says, or for ever if it
 * is 0.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))
#define STACK (256 * 1024)

static volatile unsigned long count;
static long ms;

static noinline void handler(int sig)
{
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	(void)sig;
	write(1, "ready\n", 6);
	while (!ms || clock() < end)
		for (int i = 0; i < 1000000; i++)
			count++;
}

static noinline void inner(void)
{
	raise(SIGUSR1);
	count = 0;
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

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_size = STACK };

	stack.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc != 2 || stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) ||
	    sigaction(SIGUSR1, &act, NULL))
		return 1;
	ms = atol(argv[1]);
	outer();
	return 0;
}
