// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * holes.c - allocates where the stack has pages that were never used: a thread has large arrays of
 * which it writes only the beginnings. Prints "ready", and goes on until it is killed.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static noinline void allocate(void)
{
	void *volatile block = malloc(100);

	free(block);
	usleep(1000);
}

static noinline void inner(void)
{
	volatile char room[20000];

	room[0] = 0;
	allocate();
	room[1] = room[0];
}

static noinline void outer(void)
{
	volatile char room[20000];

	room[0] = 0;
	inner();
	room[1] = room[0];
}

static void *begin(void *arg)
{
	for (;;)
		outer();
	return arg;
}

int main(void)
{
	pthread_t thread;

	alarm(600);
	if (pthread_create(&thread, NULL, begin, NULL) || write(1, "ready\n", 6) != 6)
		return 1;
	return pthread_join(thread, NULL);
}
