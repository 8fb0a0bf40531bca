// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * musl.c - a program for another C library: a thread, a child, an allocation. Writes the CPU time
 * of its functions to descriptor 99, if that is open. Exits with 4.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile kept;

static double used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void burn(const char *name, double seconds)
{
	double start = used(), now;

	do {
		for (volatile int i = 0; i < 10000; i++)
			;
		now = used();
	} while (now - start < seconds);
	dprintf(99, "%s %f\n", name, now - start);
}

__attribute__((noinline)) static void musl_child(void)
{
	burn("musl_child", 0.2);
}

__attribute__((noinline)) static void *musl_thread(void *arg)
{
	burn("musl_thread", 0.2);
	return arg;
}

__attribute__((noinline)) static void musl_keeps(void)
{
	kept = malloc(54321);
}

int main(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	musl_keeps();
	if (pthread_create(&thread, NULL, musl_thread, NULL) || pthread_join(thread, NULL))
		return 1;
	pid = fork();
	if (!pid) {
		musl_child();
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 2;
	puts("hello");
	return 4;
}
