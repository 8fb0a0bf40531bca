// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shorten.c - a program that cuts off the file of a library which has called it.
 *
 *   shorten LIBRARY [whole]
 *
 * Says "ready" and works; after SIGUSR1 it does so under the library, whose file then has no
 * bytes any more, and says "shortened". With "whole" the file stays as it is, and all it does is
 * half a second of work under the library. Built with LIBRARY it is that library, whose function
 * has so many bytes on the stack.
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
