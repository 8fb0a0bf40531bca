/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walker.h - load the BPF program that walks stacks by unwind rules (bpf/walk.bpf.c), and give it
 * the tables of rules.
 *
 * A separate process loads the program, and then makes the tables of files that walks meet. Until a
 * file has its table, chains end in it.
 */
#ifndef TOOLS_BPF_WALKER_H
#define TOOLS_BPF_WALKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/walk.h"
#include "tools/perf/rings.h"
#include "tools/reason.h"

/**
 * struct walker_opts - options of the walk
 * @max: maximum number of user-space entries in a chain.
 * @kernel: put the kernel's part into chains, too.
 * @both: write chains that are not whole, too, and take the samples in any case.
 * @records: where a frame may be left by its frame record.
 * @nice: nice value of the process, if that is permitted.
 * @cache: folder in which tables are kept (tools/rules/cache.h), or NULL: none are kept.
 * @lent: load the program that walks for ordinary users (bpf/lend.bpf.c). It has leases instead of
 *	@max, @kernel, @both and @records, and no processes that it leaves.
 */
struct walker_opts {
	unsigned int max;
	bool kernel;
	bool both;
	enum walk_records records;
	int nice;
	const char *cache;
	bool lent;
};

struct walker;

/*
 * Returns whether stacks can be walked, as far as that is known before the program is loaded: this
 * build has it, and the kernel and the rights of this process suffice.
 */
bool walker_possible(void);

/*
 * Prepares a walker, for which nothing is loaded yet. @opts stays the caller's; its @cache must
 * stay. Returns NULL without memory.
 */
struct walker *walker_plan(const struct walker_opts *opts);

/**
 * walker_start() - start the process that loads the program, unless it was started before
 * @w: the walker.
 * @why: receives the reason of a failure.
 *
 * The calling process must not have threads, because it forks: that process is its child.
 *
 * Return: 0 or a negative errno.
 */
int walker_start(struct walker *w, struct reason *why);

/* Returns whether walker_start() was called. */
bool walker_started(const struct walker *w);

/*
 * Has the callchain of user space be written beside each sample that is taken, with up to @max entries, since the
 * events' samples have none (@no_user of struct perf_opts); with 0, none any more. Returns 0 or a negative errno.
 */
int walker_write_callchains(const struct walker *w, unsigned int max);

/* Returns whether it can: not on arm64, nor with more than WALK_CALLCHAIN entries. */
bool walker_can_write_callchains(unsigned int max);

/*
 * Returns whether @pid, a child of this process that has ended, was the process that makes tables. From
 * then on the program has no more tables than it has.
 */
bool walker_ended(struct walker *w, pid_t pid);

/**
 * walker_ready() - find out whether the program is loaded
 * @w: the walker, which was started.
 * @wait: wait for it.
 * @why: receives the reason of a failure.
 *
 * Return: 1 if it is; 0, without @wait, if it is not yet; a negative errno if it cannot be loaded.
 */
int walker_ready(struct walker *w, bool wait, struct reason *why);

/**
 * walker_create() - load the program, and start the process that makes tables
 * @opts: options of the walk.
 * @ret: receives the walker.
 * @why: receives the reason of a failure.
 *
 * This is walker_plan(), walker_start() and walker_ready() that waits.
 *
 * Return: 0 or a negative errno.
 */
int walker_create(const struct walker_opts *opts, struct walker **ret, struct reason *why);
void walker_destroy(struct walker *w);

/*
 * Has the stacks of all samples in @rings walked from now on, see perf_rings_walk().
 * The chains go only to these rings from now on. Returns 0, or a negative errno if it does not walk.
 */
int walker_begin(const struct walker *w, struct perf_rings *rings);

/* Returns the program with its maps, once it is loaded. */
const struct bpf_loaded *walker_loaded(const struct walker *w);

/*
 * Excludes the process @pid, as numbered here, from walks: its samples are taken. Returns 0 or a
 * negative errno.
 */
int walker_leave(const struct walker *w, int pid);

/*
 * Has another BPF program, @program, run at samples of excluded processes. Returns 0 or a negative
 * errno.
 */
int walker_set_next(const struct walker *w, int program);

/*
 * Calls @fn for each file in which walks ended because it has no table or no rule for its code.
 * Without BPF it is called for none.
 */
void walker_cuts(const struct walker *w, void (*fn)(void *arg, const struct walk_cut *cut),
		 void *arg);

/* Returns true if each file that was asked for has its table, as far as it can have one. */
bool walker_idle(const struct walker *w);

/**
 * walker_count() - count how the walks so far ended
 * @w: the walker.
 * @ret: receives the sums over all CPUs.
 *
 * Return: 0 or a negative errno.
 */
int walker_count(const struct walker *w, uint64_t ret[NR_COUNTS]);

#endif
