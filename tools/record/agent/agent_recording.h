/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agent_recording.h - makes the memory that is shared with the agents, and moves the samples in it
 * to a profile.
 */
#ifndef TOOLS_RECORD_AGENT_AGENT_RECORDING_H
#define TOOLS_RECORD_AGENT_AGENT_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"
#include "tools/inject/protocol.h"

/* Most process images of a recording: a process that executes a program counts again. */
#define DRAIN_MAX_PROCESSES (1u << 18)

/**
 * struct drain_opts - how to sample
 * @clock: enum rec_clock.
 * @period: ns between samples.
 * @ring_size: bytes of a thread's ring, a power of two.
 * @max_depth: most entries of a stack.
 * @keep_times: for how many samples the times are kept; 0: for none.
 * @labels: take the labels of goroutines.
 */
struct drain_opts {
	int clock;
	uint64_t period;
	uint32_t ring_size;
	uint32_t max_depth;
	size_t keep_times;
	bool labels;
};

/**
 * struct drain_counts - counts of what was taken from the rings so far
 * @samples: samples in the profile.
 * @weight: time that the samples stand for, in ns.
 * @late: the part of @weight, in ns of CPU time, that the kernel's ticks noticed only after it
 *	passed.
 * @truncated: samples whose outermost frames are missing.
 * @lost: samples that were lost because a ring was full.
 * @lost_weight: time that the lost samples stand for, in ns.
 * @threads: threads that were sampled.
 * @lost_threads: threads that lost samples.
 * @processes: processes that the agent entered, forked children included.
 * @images: programs that the agent entered; each exec counts.
 * @no_slot: threads that were not sampled because there were too many at once.
 * @left_out: records that were left out because there were too many processes before.
 * @no_timer: threads that were not sampled because the kernel gave no timer.
 * @sandboxed: threads and processes that were not sampled because a seccomp filter may forbid it.
 * @damaged: how often invalid content made the rest of a ring be skipped.
 * @stretch: most periods between two samples of a thread that waits, if above 1.
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
};

struct drain;

/* Makes the shared memory. Returns 0 or a negative errno. */
int drain_create(const struct drain_opts *opts, struct shstk_symbols *symbols,
		 struct shstk_profile *profile, struct drain **ret);
void drain_destroy(struct drain *d);

/*
 * Returns the most samples per second and thread that are possible, 0 if there is no limit below
 * the rate that was asked for. Threads without perf events of their own are sampled in the kernel's
 * tick.
 */
unsigned int drain_most(const struct drain *d);

/* Returns the value of REC_ENV for the command. */
const char *drain_env(const struct drain *d);

/* Returns how many bytes of the shared memory are in use. */
uint64_t drain_shared(const struct drain *d);

/* Takes everything that is in the rings. Returns 0 or -ENOMEM. */
int drain_rings(struct drain *d);

/*
 * Looks for threads and processes that came or went without the agent's knowledge. Called 4 times a
 * second.
 */
void drain_watch(struct drain *d);

/*
 * Tells that process @pid, which the recorder started and has waited for, used @cpu ns of CPU time
 * with its children.
 */
void drain_reaped(struct drain *d, int pid, uint64_t cpu);

/* Calls @fn for CPU time of programs that no agent entered. Called after drain_stop(). */
struct ledger_gap;
void drain_gaps(struct drain *d, void (*fn)(void *arg, const struct ledger_gap *gap), void *arg);

/* Has the agents stop sampling, and empties the rings a last time. Returns 0 or -ENOMEM. */
int drain_stop(struct drain *d);

/* Calls @fn for each process that the agent entered and that still lives. */
void drain_alive(struct drain *d, void (*fn)(void *arg, int pid), void *arg);

/* Fills in the counts so far. */
void drain_count(const struct drain *d, struct drain_counts *ret);

/**
 * struct drain_loser - a thread that lost samples
 * @pid: its process ID.
 * @tid: its thread ID.
 * @comm: its name, ASCII without control characters.
 * @lost: its samples that were lost because the ring was full.
 * @taken: all samples that were taken of it, including the lost ones.
 */
struct drain_loser {
	int pid;
	int tid;
	char comm[REC_COMM];
	uint64_t lost;
	uint64_t taken;
};

/* Calls @fn for each thread that lost samples. */
void drain_lost(const struct drain *d, void (*fn)(void *arg, const struct drain_loser *l),
		void *arg);

#endif
