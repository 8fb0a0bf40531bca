// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cancel.c - threads whose cancellation is pending, in code without cancellation points: each has
 * to come to its end, whatever else runs in it. Ends with 0 if all did, or says what did not. The
 * program is run while it is sampled, or with a preloaded backtrace().
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define THREADS 50

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static double (*late_cos)(double);
static volatile double sum;
static bool ran, cleaned, finished, traced;

/* Computes. Calls into a library that was loaded late, so nobody has seen the code before. */
static void compute(double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end) {
		for (int i = 0; i < 10000; i++)
			sum += late_cos ? late_cos(sum) : 1;
	}
}

static void *holds_mutex(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&mutex);
	pthread_cancel(pthread_self());
	compute(0.2);
	finished = true;
	pthread_mutex_unlock(&mutex);
	pthread_testcancel();
	return NULL;
}

static void *asks_for_trace(void *arg)
{
	void *pcs[64];

	(void)arg;
	pthread_cancel(pthread_self());
	traced = backtrace(pcs, 64) > 1;
	pthread_testcancel();
	return NULL;
}

static void clean(void *arg)
{
	(void)arg;
	cleaned = true;
}

static void *starts(void *arg)
{
	(void)arg;
	ran = true;
	pthread_cleanup_push(clean, NULL);
	pthread_barrier_wait(&barrier);
	pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static bool run(void *(*routine)(void *arg), bool cancel)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, routine, NULL))
		return false;
	if (cancel)
		pthread_cancel(thread);
	pthread_join(thread, &result);
	return result == PTHREAD_CANCELED;
}

int main(void)
{
	void *preloaded = dlopen("libm.so.6", RTLD_NOW);
	int bad = 0, never = 0;
	void *pcs[4];

	if (preloaded)
		late_cos = (double (*)(double))dlsym(preloaded, "cos");
	if (!run(holds_mutex, false) || !finished || pthread_mutex_trylock(&mutex))
		bad |= printf("a thread died in its computation, with a mutex\n");
	/* glibc's own backtrace() loads libgcc_s by dlopen() the first time. */
	backtrace(pcs, 4);
	if (!run(asks_for_trace, false) || !traced)
		bad |= printf("a thread died in backtrace()\n");
	pthread_barrier_init(&barrier, NULL, 1);
	for (int i = 0; i < THREADS; i++) {
		ran = cleaned = false;
		if (!run(starts, true) || !ran || !cleaned)
			never++;
	}
	if (never)
		bad |= printf("%d of %d threads never ran\n", never, THREADS);
	if (!bad)
		puts("all came to their ends");
	return bad ? 1 : 0;
}
