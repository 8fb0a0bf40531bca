/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walker.h - the BPF program that walks stacks by unwind rules (bpf/walk.bpf.c), loaded, with the
 * tables that it walks by.
 *
 * A process of its own gives it the tables of files that walks meet: until a file has one, chains
 * end there.
 */
#ifndef TOOLS_BPF_WALKER_H
#define TOOLS_BPF_WALKER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/walk.h"
#include "tools/reason.h"

/**
 * struct walker_opts - how walks are to be
 * @max: most entries of a chain of user space.
 * @kernel: chains are to have the kernel's part, too.
 * @both: also chains that are not whole are written, and samples are taken in any case.
 * @records: frames in files' code that has no rule may be left by their frame record.
 * @cache: folder in which tables are kept (tools/rules/cache.h); NULL: none are.
 */
struct walker_opts {
	unsigned int max;
	bool kernel;
	bool both;
	bool records;
	const char *cache;
};

struct walker;

/**
 * walker_create() - load the program, and begin to serve it
 * @opts: how walks are to be.
 * @ret: receives it.
 * @why: receives why not.
 *
 * To be called by a process without threads: the one that serves it is its child.
 *
 * Return: 0 or a negative errno.
 */
int walker_create(const struct walker_opts *opts, struct walker **ret, struct reason *why);
void walker_destroy(struct walker *w);

/* Descriptor of the program. */
int walker_program(const struct walker *w);

/* From now on chains of @cpu are written to event @fd. Returns 0 or a negative errno. */
int walker_connect(const struct walker *w, int cpu, int fd);

/*
 * From now on process @pid, as this process sees it, is not walked: its samples are taken. Returns
 * 0 or a negative errno.
 */
int walker_leave(const struct walker *w, int pid);

/* Has each file that was asked for its table, as far as it can have one? */
bool walker_idle(const struct walker *w);

/**
 * walker_count() - what became of the walks so far
 * @w: the program.
 * @ret: receives the sums of all CPUs.
 *
 * Return: 0 or a negative errno.
 */
int walker_count(const struct walker *w, uint64_t ret[NR_COUNTS]);

#endif
