/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_read_twice.h - finds the part of a stack above a copy that ended too soon, or on another
 * stack, by reading the living process.
 *
 * What the process has there when a sample is looked at may be newer than the sample. But what is
 * the same before and after the sample was also the same at the sample. So the stack is read again
 * and again, and a sample between two looks is continued if both looks lead to the same callers at
 * the same places. It makes no difference if functions returned meanwhile and were called again by
 * the same callers at the same places.
 */
#ifndef TOOLS_CONVERT_STACK_READ_TWICE_H
#define TOOLS_CONVERT_STACK_READ_TWICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/convert/mappings.h"

/**
 * struct above_look - what lay on a thread's stack at one time
 * @bytes: the bytes.
 * @size: number of bytes.
 * @max: number of bytes for which @bytes has room.
 * @addr: address of the first byte.
 * @time: CLOCK_MONOTONIC in ns, when they were read; 0: they were not.
 */
struct above_look {
	uint8_t *bytes;
	size_t size;
	size_t max;
	uint64_t addr;
	uint64_t time;
};

/**
 * struct above - two looks at a thread's stack
 * @before: the look before the last one.
 * @last: the last look.
 * @kept: bytes that are kept for the looks of all threads together.
 */
struct above {
	struct above_look before;
	struct above_look last;
	size_t *kept;
};

/*
 * Begins without a look. @kept is the same for all threads, and 0 before the first one; it has to
 * outlive @a.
 */
void above_init(struct above *a, size_t *kept);
void above_deinit(struct above *a);

/* Forgets both looks, because the thread executes another program in other memory. */
void above_forget(struct above *a);

/**
 * above_continue() - continue a stack that goes on behind its copy, or on another stack
 * @a: the looks at this thread's stack.
 * @layout: what the process has mapped.
 * @pid: the process, which may have ended.
 * @time: time of the sample, CLOCK_MONOTONIC in ns.
 * @copy: the copy from which the stack was unwound.
 * @stack: the stack, with @sps. It becomes the whole stack if that is proven.
 *
 * Return: whether the stack was continued.
 */
bool above_continue(struct above *a, struct layout *layout, pid_t pid, uint64_t time,
		    const struct stack_copy *copy, struct unwound *stack);

#endif
