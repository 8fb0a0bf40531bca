/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blocks.h - the blocks that are in use in processes, by the stacks that allocated them, as
 * the probes at their allocators tell (probed.c).
 */
#ifndef TOOLS_RECORD_HEAP_BLOCKS_H
#define TOOLS_RECORD_HEAP_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/probes/bpf/event.h"
#include "tools/record/heap/heap.h"

struct blocks;

/* A stack that allocates, and what is counted of it. */
struct site;

/* Begins with nothing. NULL when memory runs out. */
struct blocks *blocks_create(const struct heap_opts *opts);
void blocks_destroy(struct blocks *b);

/**
 * struct site_stack - where something is allocated
 * @process: number of the process.
 * @tid: thread.
 * @comm: its name, PROBE_COMM bytes.
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each.
 */
struct site_stack {
	uint32_t process;
	uint32_t tid;
	const char *comm;
	uint32_t nr;
	int end;
	const uint64_t *pcs;
	const uint8_t *marks;
};

/* The site of a stack; NULL when memory runs out. */
struct site *blocks_site(struct blocks *b, const struct site_stack *stack);

/* A block was allocated. Returns 0 or -ENOMEM. */
int blocks_allocated(struct blocks *b, struct site *site, const struct probe_event *e);

/* The block at @addr was freed, if it is known. */
void blocks_freed(struct blocks *b, const struct probe_event *e, uint64_t addr);

/* Takes those for free of which @gone says so: it was not told. */
void blocks_check(struct blocks *b, bool (*gone)(void *arg, const struct probe_block *block),
		  void *arg);

/**
 * blocks_report() - hand out all sites
 * @b: the blocks.
 * @fn: gets the stack of each, and its values. Returns 0, or what ends it.
 * @arg: for @fn.
 *
 * With snapshots the values have what grew since the last time.
 *
 * Return: 0, -ENOMEM, or what @fn returned.
 */
int blocks_report(struct blocks *b,
		  int (*fn)(void *arg, const struct site_stack *stack, const int64_t *values),
		  void *arg);

/* Fills what is known here: sums, what is in use, and the peak. */
void blocks_count(const struct blocks *b, struct heap_counts *ret);

#endif
