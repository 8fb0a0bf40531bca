// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program of known stacks: one thread deep in a recursion, one in a signal
 * handler on an alternate stack, one in a callback of the C library. Says
 * "ready PID" when they stand still, and waits, or ends by a signal.
 *
 * usage: stand wait|crash
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __riscv
#include "shstk.h"
#endif

#define DEPTH 40
#define hidden __attribute__((noinline, noclone)) static

static sem_t settled;
static volatile int depth;
static volatile int forever = 1;

/* For good; the C library's pause() may be inlined or not. */
hidden void stand_still(void)
{
	sem_post(&settled);
	while (forever)
		pause();
}

hidden int recurse(int n)
{
	int ret = 0;

	if (n)
		ret = recurse(n - 1);
	else
		stand_still();
	depth += ret;
	return ret + 1;
}

hidden void *deep_thread(void *arg)
{
	depth = recurse(DEPTH);
	return arg;
}

hidden void in_handler(int signo)
{
	stand_still();
	depth = signo;
}

hidden void interrupted(void)
{
	raise(SIGUSR1);
	depth++;
}

hidden void *signal_thread(void *arg)
{
	static char memory[65536];
	stack_t alt = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction sa = { .sa_handler = in_handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&alt, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	interrupted();
	depth++;
	return arg;
}

hidden int compare(const void *a, const void *b)
{
	stand_still();
	return *(const int *)a - *(const int *)b;
}

hidden void *sort_thread(void *arg)
{
	int a[] = { 3, 1, 2 };

	qsort(a, 3, sizeof(a[0]), compare);
	depth += a[0];
	return arg;
}

hidden int fault(volatile int *p)
{
	int ret = *p;

	depth += ret;
	return ret;
}

hidden int crash_here(void)
{
	int ret = fault((volatile int *)(uintptr_t)(depth + 16 - depth));

	depth += ret;
	return ret + 1;
}

#ifdef __riscv
/*
 * No C library does it there. Functions push from here on, which leaves those out
 * that are active now: main() must not return.
 */
static inline __attribute__((always_inline)) int switch_on(void)
{
	return shstk_status_set(SHSTK_STATUS_ENABLE);
}
#else
#define switch_on() 0
#endif

int main(int argc, char **argv)
{
	static void *(*const threads[])(void *) = { deep_thread, signal_thread, sort_thread };
	pthread_t id;

	if (switch_on())
		_exit(4);
	sem_init(&settled, 0, 0);
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&id, NULL, threads[i], NULL))
			_exit(1);
		sem_wait(&settled);
	}
	if (argc > 1 && !strcmp(argv[1], "crash"))
		return crash_here();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	stand_still();
	return 0;
}
