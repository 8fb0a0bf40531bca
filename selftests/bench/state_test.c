// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * state_test.c - how much memory of a thread's state captures touch.
 *
 * A state has room for the deepest traces, some 1.8 MB, but only what is used takes memory: at most 64 KiB
 * and 32 bytes for each frame, in whole pages, of which the ends of its arrays may need one more. The
 * kernel says of each page whether it is there (mincore(2)). Every test runs in a process of its own, which
 * has not captured before.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#undef ARRAY_SIZE /* the library has its own */

#include "chain.h"
#include "places.h"
#include "shstk.h"
#include "thread.h"

#define MAX 1024
#define TIMES 1000
#define FIXED (64u << 10) /* bytes that a state may touch whatever the depth */
#define FRAME 32u /* bytes more for each frame */

static uint64_t pcs[MAX];
static int entries;

static void capture(struct chain *c)
{
	(void)c;
	entries = shstk_capture(pcs, MAX, NULL, NULL);
}

static void capture_often(struct chain *c)
{
	for (int i = 0; i < TIMES; i++)
		capture(c);
}

/* Returns the bytes of the calling thread's state that are in memory; 0 if that is not known. */
static size_t touched(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct shstk_stats stats = { .size = sizeof(stats) };
	unsigned char there[4096];
	size_t pages, sum = 0;

	if (!thread_self || shstk_get_stats(&stats))
		return 0;
	pages = (stats.thread_bytes + page - 1) / page;
	if (pages > sizeof(there) || mincore(thread_self, pages * page, there))
		return 0;
	for (size_t i = 0; i < pages; i++)
		sum += there[i] & 1 ? page : 0;
	return sum;
}

/* Returns how much may be touched by traces of @frames, when @more bytes are needed beside them. */
static size_t allowed(unsigned int frames, size_t more)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (FIXED + FRAME * frames + more + page - 1) / page * page + page;
}

FIXTURE(state)
{
	int unused;
};

FIXTURE_VARIANT(state)
{
	const chain_fn *fns;
	unsigned int depth;
};

#define VARIANT(frames, n)                             \
	FIXTURE_VARIANT_ADD(state, frames##_##n)       \
	{                                              \
		.fns = chain_fns_##frames, .depth = n, \
	}

VARIANT(fp, 8);
VARIANT(fp, 32);
VARIANT(fp, 128);
VARIANT(fp, 512);
VARIANT(nofp, 8);
VARIANT(nofp, 32);
VARIANT(nofp, 128);
VARIANT(nofp, 512);

FIXTURE_SETUP(state)
{
	(void)self;
}

FIXTURE_TEARDOWN(state)
{
	(void)self;
}

TEST_F(state, of_repeated_captures_is_touched_by_need)
{
	struct chain c = { .fns = variant->fns, .mask = 15, .leaf = capture_often };
	size_t bytes, most;

	chain_descend(&c, variant->depth);
	bytes = touched();
	most = allowed(entries, 0);
	printf("# %zu bytes of the state are touched, at most %zu\n", bytes, most);
	EXPECT_GT(entries, (int)variant->depth);
	EXPECT_GT(bytes, 0);
	EXPECT_LE(bytes, most);
}

/* Here two traces are needed by turns, and traces of places are kept, whose room is used by need, too. */
TEST_F(state, of_captures_at_every_level_is_touched_by_need)
{
	struct chain c = { .fns = variant->fns, .mask = 15, .leaf = capture, .level = capture };
	const size_t most = allowed(2 * variant->depth, sizeof(struct places));
	size_t bytes;

	for (int i = 0; i < 10; i++)
		chain_descend(&c, variant->depth);
	bytes = touched();
	printf("# %zu bytes of the state are touched, at most %zu\n", bytes, most);
	EXPECT_GT(bytes, 0);
	EXPECT_LE(bytes, most);
}

TEST_HARNESS_MAIN
