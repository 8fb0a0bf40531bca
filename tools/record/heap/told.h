/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * told.h - what a profile has been told of each stack that allocates.
 *
 * The counters of a stack only say what holds now. To a profile that is written as it grows, and
 * that keeps times, one tells from time to time by how much the values of each stack have changed:
 * their sum up to a moment is what held at that moment, and the sum of all is the result.
 */
#ifndef TOOLS_RECORD_HEAP_TOLD_H
#define TOOLS_RECORD_HEAP_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"

struct told_stack;

/**
 * struct told - the stacks of a process that a profile knows; all 0 if there are none yet
 * @stacks: the stacks, by number.
 */
struct told {
	struct told_stack *stacks;
};

/* Returns the stack with that number, or NULL if the profile does not know it. */
struct told_stack *told_find(const struct told *told, uint32_t number);

/* What a stack in the profile lacks. */
enum told_lack {
	TOLD_FOLDED = 1, /* entries that others stand for */
	TOLD_DEEP = 2, /* its outer end, because it is too deep */
	TOLD_CUT = 4, /* its outer end, for another reason */
};

/* Notes what a stack lacks, values of enum told_lack; told_lacks() returns that. */
void told_set_lacks(struct told_stack *stack, unsigned int lacks);
unsigned int told_lacks(const struct told_stack *stack);

/**
 * told_new() - tell of a stack for the first time
 * @told: the stacks; it does not have this one.
 * @number: number of the stack.
 * @profile: the profile, always the same one.
 * @sample: the stack with its time and values.
 *
 * Return: 0 or -ENOMEM.
 */
int told_new(struct told *told, uint32_t number, struct shstk_profile *profile,
	     const struct shstk_sample *sample);

/**
 * told_again() - tell by how much a stack has changed, if it has
 * @stack: the stack.
 * @profile: the profile, always the same one.
 * @time: time in ns of CLOCK_MONOTONIC.
 * @values: HEAP_VALUES values that hold now.
 *
 * Return: 0 or -ENOMEM.
 */
int told_again(struct told_stack *stack, struct shstk_profile *profile, uint64_t time,
	       const int64_t *values);

/* Forgets all stacks, because the profile ends or another one begins. */
void told_forget(struct told *told);

#endif
