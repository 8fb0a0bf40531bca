/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record.h - parts of `shstk record`.
 *
 *   cmd_record.c     options, the main loop, what the user sees
 *   record_target.c  can the command be recorded at all? starting it
 *   record_drain.c   the memory shared with the agents, and emptying it
 *   record_heap.c    allocations: the memory shared with the heap agents
 *   record_perf.c    the kernel's samples instead of the agents' (perf_rings.c)
 *   record_via.c     which of the two is exact
 */
#ifndef TOOLS_RECORD_H
#define TOOLS_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libshstk/symbol/profile.h"

/**
 * struct drain_opts - how to sample
 * @clock: enum rec_clock.
 * @period: ns between samples.
 * @ring_size: bytes per thread, a power of two.
 * @max_depth: most entries of a stack.
 * @keep_times: keep the time of each sample.
 * @check: compare hardware and software.
 */
struct drain_opts {
	int clock;
	uint64_t period;
	uint32_t ring_size;
	uint32_t max_depth;
	bool keep_times;
	bool check;
};

/**
 * struct drain_counts - what came out of the rings so far
 * @samples: samples in the profile.
 * @weight: their time in ns.
 * @late: of that, ns of CPU time that the kernel's ticks did not see as it passed.
 * @lost: samples that found a ring full.
 * @lost_weight: their time in ns.
 * @threads: threads sampled.
 * @lost_threads: threads that lost samples.
 * @processes: processes that the agent entered (forked children included).
 * @images: programs that the agent entered (each exec counts).
 * @no_slot: threads not sampled because there were too many at once.
 * @no_timer: threads not sampled because the kernel gave no timer.
 * @sandboxed: threads and processes not sampled because a seccomp filter may
 *	forbid it.
 * @damaged: rings with nonsense in them, given up up to their end.
 * @same, @differ, @unchecked: see struct rec_header.
 */
struct drain_counts {
	uint64_t samples;
	uint64_t weight;
	uint64_t late;
	uint64_t lost;
	uint64_t lost_weight;
	uint32_t threads;
	uint32_t lost_threads;
	uint32_t processes;
	uint32_t images;
	uint32_t no_slot;
	uint32_t no_timer;
	uint32_t sandboxed;
	uint32_t damaged;
	uint32_t same;
	uint32_t differ;
	uint32_t unchecked;
};

struct drain;

/* Makes the shared memory. Returns 0 or a negative errno. */
int drain_create(const struct drain_opts *opts, struct shstk_symbols *symbols,
		 struct shstk_profile *profile, struct drain **ret);
void drain_destroy(struct drain *d);

/* Value of REC_ENV for the target. */
const char *drain_env(const struct drain *d);

/* Takes all that is in the rings. Returns 0 or -ENOMEM. */
int drain_rings(struct drain *d);

/* Looks for threads and processes that came or went unseen; 4 times a second. */
void drain_watch(struct drain *d);

/* No more samples from now on; empties the rings a last time. */
int drain_stop(struct drain *d);

/* Number of processes entered by the agent that still live. */
unsigned int drain_alive(struct drain *d);

void drain_count(const struct drain *d, struct drain_counts *ret);

/* Calls @fn for each thread that lost samples. */
void drain_lost(const struct drain *d,
		void (*fn)(void *arg, int pid, int tid, const char *comm,
			   uint64_t lost, uint64_t taken),
		void *arg);

/**
 * target_check() - find a program and why it could not be recorded
 * @name: as on the command line: a path, or looked up in PATH.
 *
 * Says in one line what is wrong.
 *
 * Return: 0, or the exit status to end with.
 */
int target_check(const char *name);

/* As target_check(), but only whether the program is there. */
int target_find(const char *name);

/**
 * struct target - a command that waits to be executed
 * @pid: its process ID.
 * @gate: lets it go.
 * @report: tells if it could not be executed.
 */
struct target {
	pid_t pid;
	int gate;
	int report;
};

/**
 * target_hold() - make the process that will become the command
 * @argv: the command.
 * @agent: path of the agent to be preloaded, or NULL.
 * @env: value of REC_ENV.
 * @ret: receives it; it is for target_go() or target_drop().
 *
 * Return: 0, or the exit status to end with.
 */
int target_hold(char *const argv[], const char *agent, const char *env,
		struct target *ret);

/**
 * target_go() - have it execute the command
 * @argv: the command.
 * @target: as target_hold() made it.
 *
 * Return: 0, or the exit status to end with.
 */
int target_go(char *const argv[], struct target *target);

/* Have it end without executing anything. */
void target_drop(struct target *target);

#endif
