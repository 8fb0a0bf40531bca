// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * copies_test.c - the library loaded, closed and loaded again; several copies of
 * it in one process, in one namespace and in others; closed inside a plugin.
 *
 * Linked with a copy of its own; copies_plugin.so has another one inside.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "shstk.h"

#define MAX 64
#define DEPTH 20

typedef int (*capture_fn)(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
			  struct shstk_info *info);

static capture_fn capture;
static uint64_t pcs[MAX];
static struct shstk_info info;

static __attribute__((noinline)) int descend(int n)
{
	volatile int r;

	if (n)
		r = descend(n - 1);
	else
		r = capture(pcs, MAX, NULL, &info);
	return r;
}

/* DEPTH frames of descend(); but for the innermost ones, at the same address. */
static bool good_trace(capture_fn fn)
{
	int i, n;

	memset(pcs, 0, sizeof(pcs));
	info = (struct shstk_info){ .size = sizeof(info) };
	capture = fn;
	n = descend(DEPTH);
	if (n < DEPTH + 2 || info.end != SHSTK_END_COMPLETE || info.guessed)
		return false;
	for (i = 3; i < DEPTH; i++) {
		if (pcs[i] != pcs[2])
			return false;
	}
	return true;
}

static void *open_copy(const char *name, capture_fn *fn)
{
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	*fn = lib ? (capture_fn)dlsym(lib, "shstk_capture") : NULL;
	return lib;
}

static long mapped_kb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld", &pages) != 1)
		pages = -1;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

struct run {
	capture_fn fn;
	pthread_barrier_t *barrier;
};

static void *capture_and_wait(void *arg)
{
	struct run *r = arg;
	uint64_t own[MAX];
	int n = r->fn(own, MAX, NULL, NULL);

	pthread_barrier_wait(r->barrier);
	pthread_barrier_wait(r->barrier);
	return (void *)(uintptr_t)(n >= 2);
}

TEST(closed_while_threads_that_used_it_live_on)
{
	pthread_barrier_t barrier;
	struct run r = { .barrier = &barrier };
	pthread_t thread;
	void *lib, *ok;

	lib = open_copy("libshstk.so", &r.fn);
	ASSERT_NE(NULL, r.fn);
	pthread_barrier_init(&barrier, NULL, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, capture_and_wait, &r));
	pthread_barrier_wait(&barrier);
	EXPECT_EQ(0, dlclose(lib));
	pthread_barrier_wait(&barrier);
	ASSERT_EQ(0, pthread_join(thread, &ok)); /* its destructors ran */
	EXPECT_NE(NULL, ok);
}

TEST(closed_a_thousand_times_takes_no_memory)
{
	capture_fn fn;
	long before = 0;
	void *lib;
	int i;

	for (i = 0; i < 1000; i++) {
		lib = open_copy("libshstk.so", &fn);
		ASSERT_NE(NULL, fn);
		ASSERT_TRUE(good_trace(fn));
		ASSERT_EQ(0, dlclose(lib));
		if (i == 10)
			before = mapped_kb();
	}
	EXPECT_LE(mapped_kb(), before + 64);
}

TEST(closed_under_a_profiler)
{
	capture_fn fn;
	void *lib = open_copy("libshstk.so", &fn);

	ASSERT_NE(NULL, fn);
	ASSERT_EQ(0, dlclose(lib));
	/* Whoever still has the address may call it. */
	EXPECT_TRUE(good_trace(fn));
}

TEST(two_copies_in_one_namespace)
{
	capture_fn other;
	void *lib = open_copy("libshstk.so", &other);
	int i;

	ASSERT_NE(NULL, other);
	ASSERT_NE((void *)shstk_capture, (void *)other);
	for (i = 0; i < 100; i++) {
		ASSERT_TRUE(good_trace(shstk_capture));
		ASSERT_TRUE(good_trace(other));
	}
	dlclose(lib);
}

static capture_fn handler_fn;
static volatile int handled, handled_bad;

static void on_signal(int sig)
{
	uint64_t own[MAX];

	(void)sig;
	handled++;
	if (handler_fn(own, MAX, NULL, NULL) < 2)
		handled_bad++;
}

TEST(one_copy_in_a_handler_that_interrupts_the_other)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, off = { 0 };
	void *lib = open_copy("libshstk.so", &handler_fn);
	int i;

	ASSERT_NE(NULL, handler_fn);
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (i = 0; i < 1000000 && handled < 100; i++)
		ASSERT_TRUE(good_trace(shstk_capture));
	setitimer(ITIMER_REAL, &off, NULL);
	EXPECT_GT(handled, 0);
	EXPECT_EQ(0, handled_bad);
	dlclose(lib);
}

TEST(other_namespaces)
{
	capture_fn fn;
	void *lib;
	int i;

	for (i = 0; i < 3; i++) {
		lib = dlmopen(LM_ID_NEWLM, "libshstk.so", RTLD_NOW);
		ASSERT_NE(NULL, lib);
		fn = (capture_fn)dlsym(lib, "shstk_capture");
		ASSERT_NE(NULL, fn);
		EXPECT_TRUE(good_trace(fn));
		EXPECT_TRUE(good_trace(shstk_capture));
	}
}

/* What is linked into a plugin goes with it; its memory stays. */
TEST(closed_inside_a_plugin)
{
	pthread_barrier_t barrier;
	struct run r = { .barrier = &barrier };
	pthread_t thread;
	void *lib, *ok;
	int i;

	for (i = 0; i < 10; i++) {
		lib = dlopen("copies_plugin.so", RTLD_NOW | RTLD_LOCAL);
		ASSERT_NE(NULL, lib);
		r.fn = (capture_fn)dlsym(lib, "plugin_capture");
		ASSERT_NE(NULL, r.fn);
		pthread_barrier_init(&barrier, NULL, 2);
		ASSERT_EQ(0, pthread_create(&thread, NULL, capture_and_wait, &r));
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		ASSERT_EQ(0, pthread_join(thread, &ok));
		EXPECT_NE(NULL, ok);
		EXPECT_TRUE(good_trace(r.fn));
		ASSERT_EQ(0, dlclose(lib));
		ASSERT_EQ(NULL, dlopen("copies_plugin.so", RTLD_NOW | RTLD_NOLOAD));
		EXPECT_TRUE(good_trace(shstk_capture));
	}
}

TEST_HARNESS_MAIN
