// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shorten.c - a program that empties the file of a library that has called it.
 *
 *   shorten LIBRARY [whole]
 *
 * Prints "ready" and works. After SIGUSR1, it works in a function that the library calls, while the
 * file of the library has no bytes any more, and prints "shortened". With "whole" the file stays as
 * it is, and the program only works for half a second below the library. Built with LIBRARY, it is
 * the library, whose function has this many bytes on the stack.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void call_back(void (*fn)(void));

#ifdef LIBRARY

void call_back(void (*fn)(void))
{
	volatile char room[LIBRARY];

	room[0] = 0;
	fn();
	(void)room[0];
}

#else

static const char *path;
static volatile sig_atomic_t now;
static volatile unsigned long sum;

static void on_signal(int signo)
{
	now = signo;
}

static void work_for_a_while(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		sum++;
}

static void work_behind_library(void)
{
	if (truncate(path, 0))
		exit(1);
	puts("shortened");
	for (;;)
		sum++;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*call)(void (*)(void)) = library ? dlsym(library, "call_back") : NULL;

	if (!call)
		return 1;
	if (argc > 2) {
		call(work_for_a_while);
		return 0;
	}
	path = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, on_signal);
	puts("ready");
	while (!now)
		sum++;
	call(work_behind_library);
	return 0;
}

#endif
