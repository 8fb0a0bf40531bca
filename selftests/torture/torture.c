// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * torture.c - captures where an unwinder can hang: the first one in a constructor or in a signal
 * handler, in handlers that interrupt malloc() and the loader at any instruction, and in children
 * that fork() made while other threads were in both. One start takes some 20 ms. It is compiled for
 * libshstk, and with UNWIND or GCC for libunwind's unw_backtrace() or the C library's backtrace().
 *
 *	torture PLUGIN
 *
 * Ends with 0 if every capture had frames. The signals end when the work is done; who hangs, hangs for
 * ever.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef UNWIND
int unw_backtrace(void **array, int size);
#define take(array, size) unw_backtrace(array, size)
#elif defined(GCC)
#include <execinfo.h>
#define take(array, size) backtrace(array, size)
#else
#include "shstk.h"
#define take(array, size) shstk_capture((uint64_t *)(array), size, NULL, NULL)
#endif

#define FRAMES 64
#define CHILDREN 6
#define WORK 15000000 /* ns */
#define PERIOD 200 /* us between signals */

static atomic_bool done;
static atomic_int empty; /* captures without a frame */
static const char *plugin;

/* Takes a trace. Returns its number of frames. */
static __attribute__((noinline)) int capture(void)
{
	void *array[FRAMES];
	int n = take(array, FRAMES);

	if (n < 1)
		empty++;
	return n;
}

static void on_signal(int signo)
{
	int saved = errno;

	(void)signo;
	capture();
	errno = saved;
}

/*
 * Every other process has its first capture in the constructor, the others in the first signal
 * handler.
 */
__attribute__((constructor)) static void construct(void)
{
	if (getpid() & 1)
		capture();
}

static void *allocates(void *arg)
{
	void *p[16] = { NULL };
	unsigned int x = 1;

	while (!done) {
		x = x * 1103515245 + 12345;
		free(p[x >> 16 & 15]);
		p[x >> 16 & 15] = malloc(x >> 20 & 4095);
	}
	for (int i = 0; i < 16; i++)
		free(p[i]);
	return arg;
}

/* Loads a library, captures through a function of it, and unloads it, again and again. */
static void *loads(void *arg)
{
	while (!done) {
		void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
		int (*call)(int (*fn)(void));

		if (!handle)
			abort();
		*(void **)&call = dlsym(handle, "call_back");
		if (call(capture) < 1)
			empty++;
		dlclose(handle);
	}
	return arg;
}

static void in_child(void)
{
	capture();
}

static void fork_children(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		int pid = fork(), status;

		if (!pid)
			_exit(capture() < 1);
		if (pid < 0)
			return; /* no more processes are allowed: that is no fault of an unwinder */
		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				exit(3);
		if (status)
			empty++;
	}
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct itimerval period = { { 0, PERIOD }, { 0, PERIOD } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	void *(*const work[])(void *) = { allocates, loads };
	uint64_t end = now() + WORK;
	pthread_t thread[2];

	if (argc != 2)
		return 2;
	plugin = argv[1];
	pthread_atfork(NULL, NULL, in_child);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &period, NULL);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, work[i], NULL))
			return 4;
	do
		fork_children();
	while (now() < end);
	done = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	setitimer(ITIMER_REAL, &none, NULL);
	return empty ? 1 : 0;
}
