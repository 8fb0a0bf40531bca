/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * growth.h - how much more each stack of a process has in use than at the snapshot before.
 */
#ifndef TOOLS_RECORD_HEAP_GROWTH_H
#define TOOLS_RECORD_HEAP_GROWTH_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct in_use - what a stack has in use
 * @counter: number of its counter; see tools/inject/heap/layout.h.
 * @objects: blocks.
 * @bytes: their bytes.
 */
struct in_use {
	uint32_t counter;
	int64_t objects;
	int64_t bytes;
};

/**
 * struct growth - the stacks of a process; all zero: there was no snapshot
 * @before: at the snapshot before, sorted by counter,
 * @nr_before: so many.
 * @now: those of the snapshot that is being made,
 * @nr_now: so many,
 * @max_now: and room for so many.
 */
struct growth {
	struct in_use *before;
	size_t nr_before;
	struct in_use *now;
	size_t nr_now;
	size_t max_now;
};

/**
 * growth_take() - a stack of the snapshot that is being made
 * @g: the process.
 * @now: what the stack has in use.
 * @more: receives by how much that is more than before.
 *
 * Return: 0 or -ENOMEM.
 */
int growth_take(struct growth *g, const struct in_use *now, struct in_use *more);

/* The snapshot is complete: the next one is compared with it. */
void growth_turn(struct growth *g);

void growth_deinit(struct growth *g);

#endif
