/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job.h - a job is one source that is run in one scenario, on one chain, at one depth. */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include <stdint.h>
#include <time.h>

#include "chain.h"
#include "source.h"

#define MAX_PCS 1024

/**
 * enum scenario - when captures happen
 * @FIXED: again and again at the same place.
 * @RAMP: on entry and exit of each level, all the way down and up again.
 * @ONCE: one capture at the bottom, then return all the way, and start again.
 * @OSC: in a loop at the given depth, which captures 4 frames further down.
 * @FIRST: at the bottom of different frames each time. No return address of the last trace is in
 *	its old place, but all code was seen before.
 */
enum scenario { FIXED, RAMP, ONCE, OSC, FIRST, NR_SCENARIOS };

#define OSC_LEVELS 4u

struct chain_set {
	const char *name;
	unsigned int on; /* ON_FP or ON_NOFP */
	const chain_fn *fns;
	unsigned int count;
};

enum { CHAIN_FP, CHAIN_NOFP, CHAIN_NOFP1024, NR_CHAINS };

extern const struct chain_set chain_sets[NR_CHAINS];
extern const char *const scenario_names[NR_SCENARIOS];

/**
 * struct job - one source in one scenario
 * @source: the source that captures.
 * @scenario: when captures happen.
 * @set: the chain.
 * @depth: number of functions to go down.
 * @run: called at the bottom of the chain for FIXED and OSC, and on top of it for the others; it
 *	calls job_once() or job_repeat().
 * @seed: selects the first function of the next FIRST descent.
 * @ticks: time spent inside captures, in ticks (FIRST only).
 * @frames: number of entries that the captures returned.
 * @captures: number of captures.
 * @pcs: receives the trace.
 */
struct job {
	const struct source *source;
	enum scenario scenario;
	const struct chain_set *set;
	unsigned int depth;
	void (*run)(struct job *j);
	unsigned int seed;
	uint64_t ticks;
	uint64_t frames;
	uint64_t captures;
	uint64_t pcs[MAX_PCS];
};

/* Returns the number of captures in one job_once(). */
static inline unsigned int job_captures(const struct job *j)
{
	return j->scenario == RAMP ? 2 * j->depth : 1;
}

/* Goes to the place where @j->run is to be called, and calls it. */
void job_start(struct job *j);

/* Does the work of the scenario once, or @times times. */
void job_once(struct job *j);
void job_repeat(struct job *j, unsigned int times);

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns the time in ticks, of a clock that is cheap enough to be read around one capture. */
static inline uint64_t now_ticks(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(lo), "=d"(hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
#else
	return now_ns();
#endif
}

#endif
