/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probed.h - allocations of what already runs, for `shstk record --heap -p`: probes at the
 * functions of its allocators tell of them (tools/probes/), and stacks are unwound here.
 */
#ifndef TOOLS_RECORD_HEAP_PROBED_H
#define TOOLS_RECORD_HEAP_PROBED_H

#include "tools/reason.h"
#include "tools/record/heap/heap.h"

/**
 * struct probed_opts - what to record
 * @heap: as for the agent.
 * @pids: processes,
 * @nr_pids: so many.
 * @ring_size: bytes of the ring between the kernel and this command.
 */
struct probed_opts {
	struct heap_opts heap;
	const pid_t *pids;
	unsigned int nr_pids;
	size_t ring_size;
};

/**
 * struct probed_counts - beside what struct heap_counts has
 * @functions: functions that have probes.
 * @too_short: stacks that go on behind what was copied.
 * @elsewhere: stacks that go on on another stack.
 * @cut: stacks that end at code without unwind information.
 * @copy: bytes of each stack that are copied.
 * @unseen: allocations that are missing as their return was not seen.
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
 * probed_create() - begin
 * @opts: what to record.
 * @symbols: names what is found.
 * @ret: receives it.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno.
 */
int probed_create(const struct probed_opts *opts, struct shstk_symbols *symbols,
		  struct probed **ret, struct reason *why);
void probed_destroy(struct probed *p);

/* Bytes of the ring. */
uint64_t probed_shared(const struct probed *p);

/* Takes what is in the ring. Returns 0 or -ENOMEM. */
int probed_take(struct probed *p);

/* Looks what the processes have mapped. */
void probed_watch(struct probed *p);

/* Number of the processes that still live. */
unsigned int probed_alive(const struct probed *p);

/* No more from now on; takes what is left. */
int probed_stop(struct probed *p);

/* Adds all that was counted so far to a profile. Returns 0 or -ENOMEM. */
int probed_report(struct probed *p, struct shstk_profile *profile);

/* Addresses are named by other symbols from now on. */
void probed_renew(struct probed *p, struct shstk_symbols *symbols);

void probed_count(const struct probed *p, struct heap_counts *ret, struct probed_counts *more);

#endif
