/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree.h - random call trees through frames of every kind: small, large, with a
 * frame pointer, of variable size, over-aligned, through a pointer.
 */
#ifndef TREE_H
#define TREE_H

#include <stdint.h>

/* A function that is called at random places; the frames of its caller are the truth. */
typedef void (*tree_visit)(void *arg);

struct tree {
	uint64_t seed;
	tree_visit visit;
	void *arg;
	int depth; /* depth of the tree, in calls */
};

uint32_t tree_random(struct tree *t);

/* Visits, calls one or two random children, and visits again. */
void tree_call(struct tree *t, int level);

#endif
