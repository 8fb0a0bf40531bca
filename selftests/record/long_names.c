// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * long_names.c - works for ever in a function whose name has a thousand characters, and in one whose
 * name a test replaces in the file; in two threads with names that act on terminals. With a number
 * it waits below as many calls of a function that calls itself, whose name is as long.
 *
 *  long_names [CALLS]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define TEN(x) x x x x x x x x x x
#define REPLACED "to_be_replaced________________"

static volatile unsigned int sink;

void long_function(void) __asm__("long_" TEN(TEN(TEN("n"))) "_end");
void replaced_function(void) __asm__(REPLACED);
void deep_function(int calls) __asm__("deep_" TEN(TEN(TEN("n"))) "_end");

__attribute__((noinline)) void long_function(void)
{
	for (unsigned int i = 0; i < 1000000; i++)
		sink = sink + i;
}

__attribute__((noinline)) void replaced_function(void)
{
	for (unsigned int i = 0; i < 1000000; i++)
		sink = sink ^ i;
}

__attribute__((noinline)) void deep_function(int calls)
{
	if (calls) {
		deep_function(calls - 1);
	} else {
		puts("ready");
		fflush(stdout);
		pause();
	}
	/* The calls above must not be the last thing that this does. */
	sink = sink + calls;
}

static void work(void)
{
	for (;;) {
		long_function();
		replaced_function();
	}
}

static void *thread(void *name)
{
	prctl(PR_SET_NAME, name);
	work();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id;

	if (argc > 1) {
		deep_function(atoi(argv[1]));
		return 0;
	}
	/* The first one would clear the screen, the second one is wide and goes on. */
	if (pthread_create(&id, NULL, thread, "\033[2J\033[9;9Hx"))
		return 1;
	puts("ready");
	fflush(stdout);
	thread("\344\270\255\346\226\207\n\tz");
	return 0;
}
