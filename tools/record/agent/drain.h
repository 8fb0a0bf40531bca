/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drain.h - the memory shared with the agents: made, emptied into a profile.
 */
#ifndef TOOLS_RECORD_AGENT_DRAIN_H
#define TOOLS_RECORD_AGENT_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"
#include "tools/inject/protocol.h"

/* Most processes of a recording: one that executes a program counts again. */
#define DRAIN_MAX_PROCESSES (1u << 18)

/**
 * struct drain_opts - how to sample
 * @clock: enum rec_clock.
 * @period: ns between samples.
 * @ring_size: bytes per thread, a power of two.
 * @max_depth: most entries of a stack.
 * @keep_times: keep the times of so many samples; 0: of none.
 * @check: compare hardware and software.
 * @labels: take the labels of goroutines.
 */
struct drain_opts {
	int clock;
	uint64_t period;
	uint32_t ring_size;
	uint32_t max_depth;
	size_t keep_times;
	bool check;
	bool labels;
};

/**
 * struct drain_counts - what came out of the rings so far
 * @samples: samples in the profile.
 * @weight: their time in ns.
 * @late: of that, ns of CPU time that the kernel's ticks did not see as it passed.
 * @truncated: samples whose outermost frames are missing.
 * @lost: samples that found a ring full.
 * @lost_weight: their time in ns.
 * @threads: threads sampled.
 * @lost_threads: threads that lost samples.
 * @processes: processes that the agent entered (forked children included).
 * @images: programs that the agent entered (each exec counts).
 * @left_out: records left out because there were too many processes before.
 * @no_slot: threads not sampled because there were too many at once.
 * @no_timer: threads not sampled because the kernel gave no timer.
 * @sandboxed: threads and processes not sampled because a seccomp filter may
 *	forbid it.
 * @damaged: rings with nonsense in them, given up up to their end.
 * @stretch: see struct rec_header.
 * @same, @later, @differ, @unchecked: see struct rec_header.
 */
struct drain_counts {
	uint64_t samples;
	uint64_t weight;
	uint64_t late;
	uint64_t truncated;
	uint64_t lost;
	uint64_t lost_weight;
	uint32_t threads;
	uint32_t lost_threads;
	uint32_t processes;
	uint32_t images;
	uint32_t no_slot;
	uint64_t left_out;
	uint32_t no_timer;
	uint32_t sandboxed;
	uint32_t damaged;
	uint32_t stretch;
	uint32_t same;
	uint32_t later;
	uint32_t differ;
	uint32_t unchecked;
};

struct drain;

/* Makes the shared memory. Returns 0 or a negative errno. */
int drain_create(const struct drain_opts *opts, struct shstk_symbols *symbols,
		 struct shstk_profile *profile, struct drain **ret);
void drain_destroy(struct drain *d);

/*
 * Without perf events of their own threads are sampled in the kernel's tick: that many times
 * a second at most. 0: as often as was asked for.
 */
unsigned int drain_most(const struct drain *d);

/* Value of REC_ENV for the target. */
const char *drain_env(const struct drain *d);

/* Bytes of the shared memory. */
uint64_t drain_shared(const struct drain *d);

/* Takes all that is in the rings. Returns 0 or -ENOMEM. */
int drain_rings(struct drain *d);

/* Looks for threads and processes that came or went unseen; 4 times a second. */
void drain_watch(struct drain *d);

/* The command, waited for by the recorder, used @cpu ns with its children. */
void drain_reaped(struct drain *d, int pid, uint64_t cpu);

/* After drain_stop(): CPU time of programs that no agent entered. */
struct ledger_gap;
void drain_gaps(struct drain *d, void (*fn)(void *arg, const struct ledger_gap *gap), void *arg);

/* No more samples from now on; empties the rings a last time. */
int drain_stop(struct drain *d);

/* Calls @fn for each process entered by the agent that still lives. */
void drain_alive(struct drain *d, void (*fn)(void *arg, int pid), void *arg);

void drain_count(const struct drain *d, struct drain_counts *ret);

/**
 * struct drain_loser - a thread that lost samples
 * @pid, @tid: its process and itself.
 * @comm: its name; all ASCII, no control characters.
 * @lost: samples that found its ring full,
 * @taken: of so many that it took.
 */
struct drain_loser {
	int pid;
	int tid;
	char comm[REC_COMM];
	uint64_t lost;
	uint64_t taken;
};

/* Calls @fn for each of them. */
void drain_lost(const struct drain *d, void (*fn)(void *arg, const struct drain_loser *l),
		void *arg);

#endif
