/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree.h - random call trees through frames of every kind: small, large, with a
 * frame pointer, of variable size, over-aligned, through a pointer.
 */
#ifndef TREE_H
#define TREE_H

#include <stdint.h>

/* Called at random places; its caller's frames are the truth. */
typedef void (*tree_visit)(void *arg);

struct tree {
	uint64_t seed;
	tree_visit visit;
	void *arg;
	int depth; /* of the tree, in calls */
};

uint32_t tree_random(struct tree *t);

/* Visit, call one or two random children, visit again. */
void tree_call(struct tree *t, int level);

#endif
