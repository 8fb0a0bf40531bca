// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * no_stop.c - a program whose first thread cannot stop: it waits for its child from vfork(), which
 * does not end before the program does. Another thread runs.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static volatile unsigned long count;

static noinline void inner(void)
{
	for (;;)
		count++;
}

static noinline void middle(void)
{
	inner();
	__asm__ volatile("");
}

static noinline void outer(void)
{
	middle();
	__asm__ volatile("");
}

static void *run(void *arg)
{
	outer();
	return arg;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		return 1;
	if (!vfork()) {
		/* The child shares the memory of its parent, and its place on the stack. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!count)
			;
		write(1, "ready\n", 6);
		for (;;)
			syscall(SYS_pause);
	}
	return 0;
}
