/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walker.h - load the BPF program that walks stacks by unwind rules (bpf/walk.bpf.c), and give it
 * the tables of rules.
 *
 * A separate process makes the tables of files that walks meet. Until a file has its table, chains
 * end in it.
 */
#ifndef TOOLS_BPF_WALKER_H
#define TOOLS_BPF_WALKER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/walk.h"
#include "tools/perf/rings.h"
#include "tools/reason.h"

/**
 * struct walker_opts - options of the walk
 * @max: maximum number of user-space entries in a chain.
 * @kernel: put the kernel's part into chains, too.
 * @both: write chains that are not whole, too, and take the samples in any case.
 * @records: a frame in a file's code without a rule may be left by its frame record.
 * @cache: folder in which tables are kept (tools/rules/cache.h), or NULL: none are kept.
 */
struct walker_opts {
	unsigned int max;
	bool kernel;
	bool both;
	bool records;
	const char *cache;
};

struct walker;

/*
 * Returns whether stacks can be walked, as far as that is known before the program is loaded: this
 * build has it, and the kernel and the rights of this process suffice.
 */
bool walker_possible(void);

/**
 * walker_create() - load the program and start the process that makes tables
 * @opts: options of the walk.
 * @ret: receives the walker.
 * @why: receives the reason of a failure.
 *
 * The calling process must not have threads, because it forks: the process that makes tables is its
 * child.
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

/* Returns the program with its maps. */
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
