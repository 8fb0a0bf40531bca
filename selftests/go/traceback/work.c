// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "work.h"

double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) int c_spin(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

__attribute__((noinline)) int c_there(int depth, int n)
{
	volatile char room[400];

	room[depth & 255] = 1;
	return (depth > 1 ? c_there(depth - 1, n) : goBack(n)) + room[depth & 255];
}

static inline __attribute__((always_inline)) int c_inlined(int n)
{
	return goNames(n) + 1;
}

__attribute__((noinline)) int c_names(int n)
{
	return c_inlined(n) + 1;
}

__attribute__((noinline)) int c_crash(volatile int *nowhere)
{
	return *nowhere + 1;
}

#define STORM_THREADS 2

static pid_t storm_threads[STORM_THREADS]; /* 0: no thread has this place yet */
static int storm_size;
static long storm_sent;

static void *storm(void *unused)
{
	const struct timespec pause = { .tv_nsec = 50000 };

	for (;;) {
		for (int i = 0; i < STORM_THREADS; i++) {
			pid_t tid = __atomic_load_n(&storm_threads[i], __ATOMIC_RELAXED);

			if (tid && !syscall(SYS_tgkill, getpid(), tid, SIGPROF))
				__atomic_fetch_add(&storm_sent, 1, __ATOMIC_RELAXED);
		}
		nanosleep(&pause, NULL);
	}
	return unused;
}

static void start_storm(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, NULL, storm, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void c_add_to_storm(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int i = __atomic_fetch_add(&storm_size, 1, __ATOMIC_RELAXED);

	pthread_once(&once, start_storm);
	__atomic_store_n(&storm_threads[i], (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
}

long c_signals_sent(void)
{
	return __atomic_load_n(&storm_sent, __ATOMIC_RELAXED);
}

int c_load(void)
{
	return dlopen("libresolv.so.2", RTLD_NOW) != NULL;
}

static long looked_through;

/* Replaces the C library's function, and calls it. */
int dl_iterate_phdr(int (*fn)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

	*(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	__atomic_fetch_add(&looked_through, 1, __ATOMIC_RELAXED);
	return next(fn, arg);
}

long c_looked_through(void)
{
	return __atomic_load_n(&looked_through, __ATOMIC_RELAXED);
}
