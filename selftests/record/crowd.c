// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crowd.c - many threads that all wait, and each use the same CPU time at a signal from outside.
 *
 *   crowd THREADS MICROSECONDS
 *
 * Prints a line when all threads are there, reads a byte, lets the threads work, prints a line when
 * all have done so, and waits until standard input ends.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int begin[2]; /* a byte for each thread */
static atomic_int waiting, working;
static double each;
static volatile unsigned long sum;

static double used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

static __attribute__((noinline)) void one_of_many(void)
{
	double end = used() + each;

	while (used() < end)
		for (int i = 0; i < 1000; i++)
			sum += i;
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

static void *thread(void *arg)
{
	char c;

	if (!--waiting)
		say("ready");
	if (read(begin[0], &c, 1) == 1)
		one_of_many();
	if (!--working)
		say("done");
	/* Stays for ever: the end of a thread takes time while the thread is recorded. */
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? atoi(argv[1]) : 0;
	pthread_attr_t attr;
	pthread_t id;
	char c;

	each = argc > 2 ? atof(argv[2]) : 0;
	waiting = working = nr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pipe(begin))
		return 1;
	for (int i = 0; i < nr; i++) {
		if (pthread_create(&id, &attr, thread, NULL)) {
			say("no more threads");
			return 1;
		}
	}
	if (read(STDIN_FILENO, &c, 1) != 1)
		return 1;
	for (int i = 0; i < nr; i++)
		if (write(begin[1], "", 1) != 1)
			return 1;
	while (read(STDIN_FILENO, &c, 1) == 1)
		;
	_exit(0);
}
