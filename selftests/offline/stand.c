// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stand.c - a program of known stacks: one thread deep in a recursion, one in a signal handler on
 * an alternate stack, one in a callback of the C library. When they stand still, it prints "ready
 * PID" and waits, or is ended by a signal.
 *
 *  usage: stand wait|crash
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __riscv
#include "shstk.h"
#endif

#define DEPTH 40
#define hidden __attribute__((noinline, noclone)) static

static sem_t settled;
static volatile pid_t settler;
static volatile int depth;
static volatile int forever = 1;

/* Waits for ever. The C library's pause() may be inlined or not. */
hidden void stand_still(void)
{
	settler = syscall(SYS_gettid);
	sem_post(&settled);
	while (forever)
		pause();
}

/*
 * Returns true if a thread sleeps. A thread that has posted may still be in sem_post(), where its
 * stack is another one.
 */
hidden bool is_asleep(pid_t tid)
{
	char name[64], text[256], *end;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(name, "r");
	if (!f || !fgets(text, sizeof(text), f))
		_exit(5);
	fclose(f);
	end = strrchr(text, ')');
	return end && !strncmp(end, ") S", 3);
}

static void wait_for_settler(void)
{
	sem_wait(&settled);
	while (!is_asleep(settler))
		usleep(1000);
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
 * Switches shadow stacks on, which no C library does on riscv. Functions that are active now have
 * not pushed their return addresses, so main() must not return.
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
		wait_for_settler();
	}
	if (argc > 1 && !strcmp(argv[1], "crash"))
		return crash_here();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	stand_still();
	return 0;
}
