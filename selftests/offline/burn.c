// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * burn.c - a program that uses CPU time in known stacks: in a recursion, in callbacks of qsort(),
 * in a thread, in a forked child, and in a program that the child executes. It works until it has
 * used some CPU time, but does a minimum of work in any case: in a guest on a busy machine, time
 * passes without work.
 *
 *  usage: burn [MILLISECONDS]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define hidden __attribute__((noinline, noclone)) static

static volatile unsigned int sink;
static long budget = 60;
static const int rounds = 30;

static long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

hidden unsigned int spin(unsigned int n)
{
	while (n--)
		sink = sink * 1664525 + 1013904223;
	return sink;
}

hidden int dig(int n)
{
	int ret = n ? dig(n - 1) : (int)spin(20000);

	sink += ret;
	return ret + 1;
}

hidden int compare(const void *a, const void *b)
{
	return (int)(spin(300) & 1) + *(const int *)a - *(const int *)b;
}

hidden void sort(void)
{
	int a[64];

	for (int i = 0; i < 64; i++)
		a[i] = (i * 37) % 64;
	qsort(a, 64, sizeof(a[0]), compare);
	sink += a[0];
}

hidden void work(void)
{
	long start = cpu_ms();

	for (int i = 0; i < rounds || cpu_ms() - start < budget; i++) {
		dig(20);
		sort();
	}
	sink++;
}

hidden void *thread_main(void *arg)
{
	work();
	sink++;
	return arg;
}

hidden void in_child(char **argv)
{
	work();
	if (argv[0]) {
		char *args[] = { argv[0], "executed", NULL };

		execv("/proc/self/exe", args);
	}
	sink++;
}

int main(int argc, char **argv)
{
	pthread_t id;
	pid_t pid;

	if (argc > 1 && argv[1][0] == 'e') {
		work();
		return 0;
	}
	if (argc > 1)
		budget = atol(argv[1]);
	work();
	if (pthread_create(&id, NULL, thread_main, NULL))
		return 1;
	pthread_join(id, NULL);
	pid = fork();
	if (!pid) {
		in_child(argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return 0;
}
