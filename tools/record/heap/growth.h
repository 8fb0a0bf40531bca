/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * growth.h - how much more memory each stack of a process has in use than at the snapshot before.
 */
#ifndef TOOLS_RECORD_HEAP_GROWTH_H
#define TOOLS_RECORD_HEAP_GROWTH_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct in_use - what a stack has in use
 * @counter: number of the stack's counter (tools/inject/heap/region.h), or of its site.
 * @objects: blocks in use.
 * @bytes: bytes in use.
 */
struct in_use {
	uint32_t counter;
	int64_t objects;
	int64_t bytes;
};

/**
 * struct growth - the stacks of a process at two snapshots; all 0 if there was no snapshot yet
 * @before: the stacks at the previous snapshot, sorted by counter.
 * @nr_before: number of stacks in @before.
 * @now: the stacks of the snapshot that is being made.
 * @nr_now: number of stacks in @now.
 * @max_now: number of stacks for which @now has room.
 */
struct growth {
	struct in_use *before;
	size_t nr_before;
	struct in_use *now;
	size_t nr_now;
	size_t max_now;
};

/**
 * growth_take() - add a stack to the snapshot that is being made
 * @g: the snapshots of the process.
 * @now: what the stack has in use.
 * @more: receives by how much that is more than at the previous snapshot.
 *
 * Return: 0 or -ENOMEM.
 */
int growth_take(struct growth *g, const struct in_use *now, struct in_use *more);

/* Completes the snapshot: the next one is compared with it. */
void growth_turn(struct growth *g);

void growth_deinit(struct growth *g);

#endif
