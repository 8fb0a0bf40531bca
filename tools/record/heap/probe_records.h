/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe_records.h - records allocations of running processes, for `shstk record --heap -p`. BPF
 * probes at the functions of the allocators report them (tools/probes/), and stacks are unwound
 * here.
 */
#ifndef TOOLS_RECORD_HEAP_PROBE_RECORDS_H
#define TOOLS_RECORD_HEAP_PROBE_RECORDS_H

#include "tools/reason.h"
#include "tools/record/heap/heap.h"

/**
 * struct probe_recording_opts - what to record
 * @heap: the options that the heap agent has too.
 * @pids: process IDs.
 * @nr_pids: number of @pids.
 * @ring_size: bytes of the ring between the kernel and this command.
 */
struct probe_recording_opts {
	struct heap_opts heap;
	const pid_t *pids;
	unsigned int nr_pids;
	size_t ring_size;
};

/**
 * struct probe_recording_counts - counts beside those of struct heap_counts
 * @functions: functions that have probes.
 * @too_short: stacks that are longer than their copy.
 * @elsewhere: stacks that continue on another stack.
 * @cut: stacks that end at code without unwind information.
 * @deep: stacks that lack the outer end because they are too deep.
 * @folded: deep stacks that were shortened.
 * @copy: bytes of each stack that are copied now.
 * @unseen: allocations that are missing because their return was not seen.
 */
struct probe_recording_counts {
	unsigned int functions;
	uint64_t too_short;
	uint64_t elsewhere;
	uint64_t cut;
	uint64_t deep;
	uint64_t folded;
	unsigned int copy;
	uint64_t unseen;
};

struct probe_recording;

/**
 * probe_recording_create() - begin to record
 * @opts: what to record.
 * @symbols: finds names for addresses.
 * @ret: receives the recording.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int probe_recording_create(const struct probe_recording_opts *opts, struct shstk_symbols *symbols,
			   struct probe_recording **ret, struct reason *why);
void probe_recording_destroy(struct probe_recording *p);

/* Returns the bytes of the ring. */
uint64_t probe_recording_shared(const struct probe_recording *p);

/* Takes what is in the ring. Returns 0 or -ENOMEM. */
int probe_recording_take(struct probe_recording *p);

/* Reads what the processes have mapped now. */
void probe_recording_watch(struct probe_recording *p);

/* Returns how many of the processes still live. */
unsigned int probe_recording_alive(const struct probe_recording *p);

/* Stops recording and takes what is left. Returns 0 or a negative errno. */
int probe_recording_stop(struct probe_recording *p);

/*
 * With &heap_opts.follow, adds what was counted since the last call to a profile. Returns 0 or a
 * negative errno.
 */
int probe_recording_follow(struct probe_recording *p, struct shstk_profile *profile);

/*
 * Adds to a profile everything that was counted and that it does not have yet. Returns 0 or a
 * negative errno.
 */
int probe_recording_report(struct probe_recording *p, struct shstk_profile *profile);

/* Finds names of addresses by other symbols from now on. */
void probe_recording_renew(struct probe_recording *p, struct shstk_symbols *symbols);

/* Fills in the counts so far. @more may be NULL. */
void probe_recording_count(const struct probe_recording *p, struct heap_counts *ret,
			   struct probe_recording_counts *more);

#endif
