// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * scale_test.c - a stack of a million frames, ten thousand threads, a thousand
 * modules: traces stay right, and take time and memory in proportion.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "shstk.h"

#define NOINLINE __attribute__((noinline, noclone))
#define FRAMES 1000000
#define THREADS 10000u
#define MODULES 1000

/* Far more CPU time than any of this takes, also on a slow machine. */
#define SECONDS 20.0

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

struct deep {
	uint64_t *pcs;
	unsigned int max;
	int n[2];
	struct shstk_info info[2];
	double took[2];
};

static NOINLINE int recurse(struct deep *d, int left)
{
	volatile int r;
	int i;

	if (left) {
		r = recurse(d, left - 1);
		return r + 1;
	}
	for (i = 0; i < 2; i++) {
		double start = now();

		d->info[i].size = sizeof(d->info[i]);
		d->n[i] = shstk_capture(d->pcs, d->max, NULL, &d->info[i]);
		d->took[i] = now() - start;
	}
	return 0;
}

static void *run_deep(void *arg)
{
	return (void *)(intptr_t)recurse(arg, FRAMES);
}

static void on_large_stack(struct __test_metadata *_metadata, struct deep *d)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *r;

	pthread_attr_init(&attr);
	ASSERT_EQ(0, pthread_attr_setstacksize(&attr, 512ul << 20));
	ASSERT_EQ(0, pthread_create(&thread, &attr, run_deep, d));
	ASSERT_EQ(0, pthread_join(thread, &r));
	ASSERT_EQ(FRAMES, (intptr_t)r);
}

TEST(a_million_frames)
{
	struct deep d = { .max = FRAMES + 64 };
	int i, same = 0;

	d.pcs = mmap(NULL, d.max * 8ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)d.pcs);
	on_large_stack(_metadata, &d);
	for (i = 0; i < 2; i++) {
		EXPECT_GT(d.n[i], FRAMES);
		EXPECT_EQ(SHSTK_END_COMPLETE, d.info[i].end);
		EXPECT_EQ(0u, d.info[i].guessed);
		EXPECT_LT(d.took[i], SECONDS);
	}
	for (i = 2; i < FRAMES; i++)
		same += d.pcs[i] == d.pcs[2];
	EXPECT_EQ(FRAMES - 2, same);
	TH_LOG("%d frames: %.1f ms, again: %.1f ms", d.n[0], d.took[0] * 1e3, d.took[1] * 1e3);
}

TEST(the_innermost_of_a_million_frames)
{
	uint64_t pcs[64];
	struct deep d = { .pcs = pcs, .max = 64 };

	on_large_stack(_metadata, &d);
	EXPECT_EQ(64, d.n[0]);
	EXPECT_EQ(64, d.n[1]);
	EXPECT_EQ(SHSTK_END_CAPACITY, d.info[0].end);
	EXPECT_LT(d.took[1], SECONDS / 100);
	TH_LOG("64 of a million frames: %.3f ms, again: %.3f ms", d.took[0] * 1e3, d.took[1] * 1e3);
}

static pthread_barrier_t barrier;
static int bad_traces;

static void *one_thread(void *arg)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[32];

	(void)arg;
	if (shstk_capture(pcs, 32, NULL, &info) < 2 || info.end != SHSTK_END_COMPLETE)
		__atomic_fetch_add(&bad_traces, 1, __ATOMIC_RELAXED);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* All at the same time; returns how many there were. */
static int wave(struct __test_metadata *_metadata, int want)
{
	static pthread_t thread[THREADS];
	pthread_attr_t attr;
	int i, n;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&barrier, NULL, want + 1);
	for (n = 0; n < want; n++) {
		if (pthread_create(&thread[n], &attr, one_thread, NULL))
			break;
	}
	if (n < want) { /* those that run wait for ever */
		TH_LOG("only %d threads here", n);
		exit(n < 100 ? 1 : KSFT_SKIP);
	}
	pthread_barrier_wait(&barrier);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	pthread_barrier_destroy(&barrier);
	return n;
}

TEST(ten_thousand_threads)
{
	struct shstk_stats first = { .size = sizeof(first) };
	struct shstk_stats second = { .size = sizeof(second) };
	double start = now(), between;

	wave(_metadata, (int)THREADS);
	between = now();
	shstk_get_stats(&first);
	wave(_metadata, (int)THREADS);
	shstk_get_stats(&second);
	EXPECT_EQ(0, bad_traces);
	EXPECT_GE(first.threads, THREADS);
	/* The second ones have the states of the first ones. */
	EXPECT_LE(second.threads, first.threads + 1);
	EXPECT_LT(now() - start, 2 * SECONDS);
	TH_LOG("%u threads: %.0f ms, again: %.0f ms; %u states", THREADS, (between - start) * 1e3,
	       (now() - between) * 1e3, second.threads);
}

typedef int (*pass_fn)(void *next);

static uint64_t pcs[MODULES + 64];
static struct shstk_info info;
static int frames;

static NOINLINE int at_the_end(void *arg)
{
	volatile int r;

	(void)arg;
	info = (struct shstk_info){ .size = sizeof(info) };
	r = frames = shstk_capture(pcs, MODULES + 64, NULL, &info);
	return 0 * r;
}

static bool copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out;
	struct stat st;
	bool ok;

	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	ok = in >= 0 && out >= 0 && !fstat(in, &st) &&
	     sendfile(out, in, NULL, st.st_size) == st.st_size;
	close(in);
	close(out);
	return ok;
}

static void load_all(struct __test_metadata *_metadata, const char *dir, void **lib, pass_fn *next)
{
	char path[PATH_MAX];
	int i;

	for (i = 0; i < MODULES; i++) {
		snprintf(path, sizeof(path), "%s/%d.so", dir, i);
		lib[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		ASSERT_NE(NULL, lib[i]);
		next[i] = (pass_fn)dlsym(lib[i], "pass");
		ASSERT_NE(NULL, next[i]);
	}
	next[MODULES] = at_the_end;
}

TEST(a_thousand_modules)
{
	static void *lib[MODULES];
	static pass_fn next[MODULES + 1];
	char dir[] = SCALE_PLUGIN "-XXXXXX", path[PATH_MAX];
	struct shstk_stats stats = { .size = sizeof(stats) };
	double start, took[3];
	Dl_info where;
	int i, round;

	ASSERT_NE(NULL, mkdtemp(dir));
	for (i = 0; i < MODULES; i++) {
		snprintf(path, sizeof(path), "%s/%d.so", dir, i);
		ASSERT_TRUE(copy_file(SCALE_PLUGIN, path));
	}
	for (round = 0; round < 2; round++) {
		load_all(_metadata, dir, lib, next);
		for (i = 0; i < 3; i++) {
			start = now();
			ASSERT_EQ(MODULES, next[0](next + 1));
			took[i] = now() - start;
		}
		ASSERT_GT(frames, MODULES);
		EXPECT_EQ(SHSTK_END_COMPLETE, info.end);
		EXPECT_EQ(0u, info.guessed);
		for (i = 0; i < MODULES; i++) {
			ASSERT_NE(0, dladdr((void *)pcs[1 + i], &where));
			ASSERT_EQ((void *)next[MODULES - 1 - i], where.dli_saddr);
		}
		EXPECT_LT(took[0], SECONDS);
		TH_LOG("%d modules: %.1f ms, again: %.2f ms", MODULES, took[0] * 1e3,
		       took[2] * 1e3);
		for (i = 0; i < MODULES; i++)
			dlclose(lib[i]);
	}
	/* The next load shows that they have gone. */
	lib[0] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	at_the_end(NULL);
	at_the_end(NULL);
	shstk_get_stats(&stats);
	EXPECT_LE(stats.modules, 16u);
	for (i = 0; i < MODULES; i++) {
		snprintf(path, sizeof(path), "%s/%d.so", dir, i);
		unlink(path);
	}
	rmdir(dir);
}

TEST_HARNESS_MAIN
