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
#include "tools/record/sample_counts.h"

/* Most process images of a recording: a process that executes a program counts again. */
#define AGENT_RECORDING_MAX_PROCESSES (1u << 18)

/**
 * struct agent_recording_opts - how to sample
 * @clock: enum rec_clock.
 * @period: ns between samples.
 * @ring_size: bytes of a thread's ring, a power of two.
 * @max_depth: most entries of a stack.
 * @fold: deeper stacks are shortened, so that both ends of a recursion remain.
 * @keep_times: for how many samples the times are kept; 0: for none.
 * @labels: take the labels of goroutines.
 */
struct agent_recording_opts {
	int clock;
	uint64_t period;
	uint32_t ring_size;
	uint32_t max_depth;
	size_t keep_times;
	bool fold;
	bool labels;
};

struct agent_recording;

/* Makes the shared memory. Returns 0 or a negative errno. */
int agent_recording_create(const struct agent_recording_opts *opts, struct shstk_symbols *symbols,
			   struct shstk_profile *profile, struct agent_recording **ret);
void agent_recording_destroy(struct agent_recording *d);

/*
 * Returns the most samples per second and thread that are possible, 0 if there is no limit below
 * the rate that was asked for. Threads without perf events of their own are sampled in the kernel's
 * tick.
 */
unsigned int agent_recording_most(const struct agent_recording *d);

/* Returns the value of REC_ENV for the command. */
const char *agent_recording_env(const struct agent_recording *d);

/* Returns how many bytes of the shared memory are in use. */
uint64_t agent_recording_shared(const struct agent_recording *d);

/* Takes everything that is in the rings. Returns 0 or -ENOMEM. */
int agent_recording_take(struct agent_recording *d);

/*
 * Looks for threads and processes that came or went without the agent's knowledge. Called 4 times a
 * second.
 */
void agent_recording_watch(struct agent_recording *d);

/*
 * Tells that process @pid, which the recorder started and has waited for, used @cpu ns of CPU time
 * with its children.
 */
void agent_recording_reaped(struct agent_recording *d, int pid, uint64_t cpu);

/* Calls @fn for CPU time of programs that no agent entered. Called after agent_recording_stop(). */
struct ledger_gap;
void agent_recording_gaps(struct agent_recording *d,
			  void (*fn)(void *arg, const struct ledger_gap *gap), void *arg);

/* Has the agents stop sampling, and empties the rings a last time. Returns 0 or -ENOMEM. */
int agent_recording_stop(struct agent_recording *d);

/* Calls @fn for each process that the agent entered and that still lives. */
void agent_recording_alive(struct agent_recording *d, void (*fn)(void *arg, int pid), void *arg);

/* Fills in the counts so far. */
void agent_recording_count(const struct agent_recording *d, struct sample_counts *ret);

/**
 * struct lossy_thread - a thread that lost samples
 * @pid: its process ID.
 * @tid: its thread ID.
 * @comm: its name, ASCII without control characters.
 * @lost: its samples that were lost because the ring was full.
 * @taken: all samples that were taken of it, including the lost ones.
 */
struct lossy_thread {
	int pid;
	int tid;
	char comm[REC_COMM];
	uint64_t lost;
	uint64_t taken;
};

/* Calls @fn for each thread that lost samples. */
void agent_recording_lost(const struct agent_recording *d,
			  void (*fn)(void *arg, const struct lossy_thread *l), void *arg);

#endif
