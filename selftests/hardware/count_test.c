// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * count_test.c - instructions of one capture, by source and depth, where they can
 * be counted: Bochs' time stamp counter ticks once per instruction, QEMU counts
 * them for perf under -icount. Anywhere else it skips.
 *
 * Bars: hardware at most 2.75 instructions an entry and 90 a capture, on x86 without AVX2
 * 3.5 and 100, and fewer than any other source from depth 8 on.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch.h"
#include "../capture/truth.h"
#include "kselftest.h"

#define MAX 1024
#define ROUNDS 8

/* Most instructions of a capture from hardware, and of four of its entries. */
#ifdef __x86_64__
#define BAR_CAPTURE 100u
#define BAR_FOUR 14u
#else
#define BAR_CAPTURE 90u
#define BAR_FOUR 11u
#endif

static uint64_t pcs[MAX];
static uint64_t copied[MAX];
static __attribute__((unused)) int counter_fd = -1;

static noinline uint64_t now(void)
{
#ifdef __x86_64__
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
#else
	uint64_t v = 0;

	if (read(counter_fd, &v, sizeof(v)) != sizeof(v))
		return 0;
	return v;
#endif
}

/* Instructions of a loop of known length, to see if they are what is counted. */
static bool counts_instructions(void)
{
	uint64_t before, once, twice;
	long n;

#ifdef __aarch64__
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
	};

	counter_fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (counter_fd < 0)
		return false;
#endif
	before = now();
	for (n = 1000; n; n--)
		__asm__ volatile("" : "+r"(n));
	once = now() - before;
	before = now();
	for (n = 2000; n; n--)
		__asm__ volatile("" : "+r"(n));
	twice = now() - before;
	ksft_print_msg("a loop of 1000 and of 2000 rounds: %llu, %llu\n", (unsigned long long)once,
		       (unsigned long long)twice);
	return twice - once == 2000; /* two instructions a round */
}

enum { HARDWARE, MEMO, WALK, FRAMES, MEMCPY, NOTHING, NSOURCES };

static const char *const source_name[NSOURCES] = {
	"hardware",	  "software, repeated",	   "software, first time",
	"frame pointers", "memcpy of the entries", "the call itself",
};

static uint64_t cost[NSOURCES];
static int entries;

/* As frame-pointer unwinders do it, with the usual checks. */
static noinline int walk_frames(uint64_t *out, int max)
{
	uint64_t *fp = __builtin_frame_address(0);
	int n = 0;

	while (n < max && fp && !((uintptr_t)fp & 7)) {
		uint64_t *next = (uint64_t *)fp[0];

		if (!fp[1])
			break;
		out[n++] = fp[1];
		if (next <= fp || next - fp > 1 << 17)
			break;
		fp = next;
	}
	return n;
}

static noinline void one(int source, int n)
{
	static const struct shstk_opts opts[] = {
		[MEMO] = { sizeof(opts[0]), SHSTK_USE_MEMO | SHSTK_USE_WALK, 0, 0, NULL },
		[WALK] = { sizeof(opts[0]), SHSTK_USE_WALK, 0, 0, NULL },
	};

	switch (source) {
	case NOTHING:
		break;
	case HARDWARE: /* what a capture takes by itself */
		entries = shstk_capture(pcs, MAX, NULL, NULL);
		break;
	case FRAMES:
		walk_frames(pcs, MAX);
		break;
	case MEMCPY:
		memcpy(copied, pcs, n * sizeof(pcs[0]));
		break;
	default:
		entries = shstk_capture(pcs, MAX, &opts[source], NULL);
	}
}

static noinline void measure(void)
{
	uint64_t before, empty, least;
	int s, i;

	before = now();
	empty = now() - before;
	for (s = 0; s < NSOURCES; s++) {
		least = UINT64_MAX;
		for (i = 0; i < ROUNDS; i++) {
			before = now();
			one(s, entries);
			before = now() - before - empty;
			if (before < least)
				least = before;
		}
		cost[s] = least;
	}
	for (s = 0; s < NOTHING; s++)
		cost[s] -= cost[NOTHING];
	one(HARDWARE, 0);
}

static noinline int recurse(int depth)
{
	int ret = 0;

	if (depth)
		ret = recurse(depth - 1);
	else
		measure();
	NO_TAIL_CALL();
	return ret + 1;
}

int main(void)
{
	static const int depth[] = { 8, 32, 128, 512 };
	unsigned int i;
	int s;

	ksft_print_header();
	if (!counts_instructions())
		ksft_exit_skip("nothing here counts instructions\n");
	ksft_set_plan(8);
	if (ss_enable(SS_ENABLE))
		ksft_exit_fail_msg("cannot enable shadow stacks\n");
	for (i = 0; i < 4; i++) {
		bool least = true;

		recurse(depth[i]);
		for (s = 0; s < NSOURCES; s++) {
			ksft_print_msg("depth %d, %d entries: %-22s %6llu\n", depth[i], entries,
				       source_name[s], (unsigned long long)cost[s]);
			if (s != HARDWARE && s < MEMCPY && cost[s] <= cost[HARDWARE])
				least = false;
		}
		ksft_test_result(cost[HARDWARE] <=
					 BAR_CAPTURE + (unsigned int)entries * BAR_FOUR / 4,
				 "depth %d: at most %u, and %u for four entries\n", depth[i],
				 BAR_CAPTURE, BAR_FOUR);
		ksft_test_result(least, "depth %d: fewer than other sources\n", depth[i]);
	}
	exit(ksft_cnt.ksft_fail ? 1 : 0);
}
