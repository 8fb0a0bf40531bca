/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * above.h - the part of a stack above a copy that ended too soon, or on another stack, from the
 * living process.
 *
 * What the process has there when a sample is looked at may be newer than the sample. But what is
 * the same before the sample and after it was the same at it: so it is read, and a sample that was
 * taken between two looks goes on where both lead to the same callers at the same places. Functions
 * that returned meanwhile, and were called again by the same callers at the same places, make no
 * difference.
 */
#ifndef TOOLS_CONVERT_ABOVE_H
#define TOOLS_CONVERT_ABOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/convert/layout.h"

/**
 * struct above_look - what lay on a thread's stack
 * @bytes: the bytes, room for @max,
 * @size: so many.
 * @addr: of the first one.
 * @time: when they were read, CLOCK_MONOTONIC in ns; 0: they were not.
 */
struct above_look {
	uint8_t *bytes;
	size_t size;
	size_t max;
	uint64_t addr;
	uint64_t time;
};

/**
 * struct above - two looks at a thread's stack; zero: none so far
 * @before: the one before,
 * @last: and the last one.
 */
struct above {
	struct above_look before;
	struct above_look last;
};

void above_deinit(struct above *a);

/* The thread executes another program, in other memory. */
void above_forget(struct above *a);

/**
 * above_continue() - continue a stack that goes on behind its copy, or on another stack
 * @a: of this thread.
 * @layout: what the process has mapped.
 * @pid: the process, which may have ended.
 * @time: of the sample, CLOCK_MONOTONIC in ns.
 * @copy: what the stack was unwound from.
 * @stack: the stack, with @sps. It becomes the whole one, if that is proven.
 *
 * Return: whether it did.
 */
bool above_continue(struct above *a, struct layout *layout, pid_t pid, uint64_t time,
		    const struct stack_copy *copy, struct unwound *stack);

#endif
