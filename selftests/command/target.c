// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target.c - a program to be recorded and traced.
 *
 *   target burn MS           use this much CPU time
 *   target allocate          allocate in two processes
 *   target wait              print "ready" and sleep with two threads
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __attribute__((noinline)) void burn(long ms)
{
	struct timespec used;

	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms);
}

static __attribute__((noinline)) void hold(size_t bytes)
{
	char *volatile p = malloc(bytes);

	memset(p, 1, bytes);
	free(p);
}

static int allocate(void)
{
	pid_t child = fork();

	hold(1 << 20);
	if (!child)
		_exit(0);
	return waitpid(child, NULL, 0) != child;
}

static void *sleeper(void *ready)
{
	pthread_barrier_wait(ready);
	for (;;)
		pause();
	return NULL;
}

static int wait_forever(void)
{
	static pthread_barrier_t ready;
	pthread_t thread;

	pthread_barrier_init(&ready, NULL, 2);
	if (pthread_create(&thread, NULL, sleeper, &ready))
		return 1;
	pthread_barrier_wait(&ready);
	puts("ready");
	fflush(stdout);
	pthread_join(thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "burn"))
		burn(atol(argv[2]));
	else if (argc == 2 && !strcmp(argv[1], "allocate"))
		return allocate();
	else if (argc == 2 && !strcmp(argv[1], "wait"))
		return wait_forever();
	else
		return 1;
	return 0;
}
