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
 * struct probed_opts - what to record
 * @heap: the options that the heap agent has too.
 * @pids: process IDs.
 * @nr_pids: number of @pids.
 * @ring_size: bytes of the ring between the kernel and this command.
 */
struct probed_opts {
	struct heap_opts heap;
	const pid_t *pids;
	unsigned int nr_pids;
	size_t ring_size;
};

/**
 * struct probed_counts - counts beside those of struct heap_counts
 * @functions: functions that have probes.
 * @too_short: stacks that are longer than their copy.
 * @elsewhere: stacks that continue on another stack.
 * @cut: stacks that end at code without unwind information.
 * @copy: bytes of each stack that are copied now.
 * @unseen: allocations that are missing because their return was not seen.
 */
struct probed_counts {
	unsigned int functions;
	uint64_t too_short;
	uint64_t elsewhere;
	uint64_t cut;
	unsigned int copy;
	uint64_t unseen;
};

struct probed;

/**
 * probed_create() - begin to record
 * @opts: what to record.
 * @symbols: finds names for addresses.
 * @ret: receives the recording.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int probed_create(const struct probed_opts *opts, struct shstk_symbols *symbols,
		  struct probed **ret, struct reason *why);
void probed_destroy(struct probed *p);

/* Returns the bytes of the ring. */
uint64_t probed_shared(const struct probed *p);

/* Takes what is in the ring. Returns 0 or -ENOMEM. */
int probed_take(struct probed *p);

/* Reads what the processes have mapped now. */
void probed_watch(struct probed *p);

/* Returns how many of the processes still live. */
unsigned int probed_alive(const struct probed *p);

/* Stops recording and takes what is left. Returns 0 or a negative errno. */
int probed_stop(struct probed *p);

/* Adds everything that was counted so far to a profile. Returns 0 or a negative errno. */
int probed_report(struct probed *p, struct shstk_profile *profile);

/* Finds names of addresses by other symbols from now on. */
void probed_renew(struct probed *p, struct shstk_symbols *symbols);

/* Fills in the counts so far. @more may be NULL. */
void probed_count(const struct probed *p, struct heap_counts *ret, struct probed_counts *more);

#endif
