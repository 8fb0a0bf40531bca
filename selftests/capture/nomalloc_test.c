// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nomalloc_test.c - no capture calls the allocator: not the first of a process
 * or thread, not in a handler, not when a library is met.
 *
 * The program's own malloc family counts calls while they are forbidden.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "kselftest_harness.h"
#include "truth.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static __thread int forbidden;
static int violations, allowed;

static void count(void)
{
	if (forbidden) {
		if (getenv("ABRT"))
			abort();
		__atomic_fetch_add(&violations, 1, __ATOMIC_RELAXED);
	} else
		__atomic_fetch_add(&allowed, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	count();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	count();
	return __libc_realloc(p, size);
}

void free(void *p)
{
	count();
	__libc_free(p);
}

static uint64_t pcs[256];

static void on_signal(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	forbidden = 1;
	shstk_capture_context(uc, pcs, 256, NULL, NULL);
	shstk_capture(pcs, 256, NULL, NULL);
	forbidden = 0;
}

static int compare(const void *a, const void *b)
{
	forbidden = 1;
	shstk_capture(pcs, 256, NULL, NULL);
	forbidden = 0;
	return *(const int *)a - *(const int *)b;
}

static void *thread_main(void *arg)
{
	int numbers[] = { 3, 1, 2 };

	(void)arg;
	forbidden = 1;
	shstk_capture(pcs, 256, NULL, NULL);
	forbidden = 0;
	raise(SIGUSR1);
	qsort(numbers, 3, sizeof(int), compare);
	return NULL;
}

TEST(no_capture_calls_the_allocator)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	pthread_t thread;
	void *volatile p;
	int i;

	p = malloc(10);
	free(p);
	/* at least one call shows that the allocator in use is the one of this file */
	ASSERT_GT(allowed, 1);
	sigaction(SIGUSR1, &sa, NULL);
	thread_main(NULL);
	EXPECT_EQ(violations, 0);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(pthread_create(&thread, NULL, thread_main, NULL), 0);
		pthread_join(thread, NULL);
	}
	EXPECT_EQ(violations, 0);
}

TEST_HARNESS_MAIN
