/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blocks.h - the blocks that are in use in processes, counted by the stacks that allocated them, as
 * the probes at the processes' allocators report them (probe_records.c).
 */
#ifndef TOOLS_RECORD_HEAP_BLOCKS_H
#define TOOLS_RECORD_HEAP_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/probes/bpf/event.h"
#include "tools/record/heap/heap.h"

struct blocks;

/* A stack that allocates, with its counts. */
struct site;

/* Makes an empty set of blocks. Returns NULL if there is no memory. */
struct blocks *blocks_create(const struct heap_opts *opts);
void blocks_destroy(struct blocks *b);

/**
 * struct site_stack - a stack that allocates something
 * @number: number of its site; not set by the caller of blocks_site().
 * @process: number of the process.
 * @tid: thread ID.
 * @comm: name of the thread, PROBE_COMM bytes.
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each entry.
 */
struct site_stack {
	uint32_t number;
	uint32_t process;
	uint32_t tid;
	const char *comm;
	uint32_t nr;
	int end;
	const uint64_t *pcs;
	const uint8_t *marks;
};

/* Returns the site of a stack, which is added if it is new; NULL if there is no memory. */
struct site *blocks_site(struct blocks *b, const struct site_stack *stack);

/* Counts a block that was allocated. Returns 0 or -ENOMEM. */
int blocks_allocated(struct blocks *b, struct site *site, const struct probe_event *e);

/* Counts the block at @addr as freed, if it is known. */
void blocks_freed(struct blocks *b, const struct probe_event *e, uint64_t addr);

/*
 * Counts those blocks as freed for which @gone returns true, because the records of their frees
 * were lost.
 */
void blocks_check(struct blocks *b, bool (*gone)(void *arg, const struct probe_block *block),
		  void *arg);

/**
 * blocks_report() - hand out all sites
 * @b: the blocks.
 * @fn: called with the stack of each site and its values. Returns 0, or a value that ends the loop.
 * @arg: passed to @fn.
 * @snapshot: with &heap_opts.snapshots, the values include by how much a site has grown since the
 *	last call that had @snapshot set; else these values are 0.
 *
 * Return: 0, -ENOMEM, or what @fn returned.
 */
int blocks_report(struct blocks *b,
		  int (*fn)(void *arg, const struct site_stack *stack, const int64_t *values),
		  void *arg, bool snapshot);

/* Fills the members of @ret that are known here: sums, what is in use, and the peak. */
void blocks_count(const struct blocks *b, struct heap_counts *ret);

#endif
