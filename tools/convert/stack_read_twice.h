/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_read_twice.h - finds the part of a stack above a copy that ended too soon, or on another
 * stack, by reading the living process.
 *
 * What the process has there when a sample is looked at may be newer than the sample. But what is
 * the same before and after the sample was probably the same at the sample. So the stack is read again
 * and again, and a sample between two looks is continued if both looks lead to the same callers at
 * the same places. It makes no difference if functions returned meanwhile and were called again by
 * the same callers at the same places. But if others called them in between, the callers at the sample
 * were these. So the callers that were read are marked as guesses, and callers on fibers, which come
 * and go all the time, are not read.
 */
#ifndef TOOLS_CONVERT_STACK_READ_TWICE_H
#define TOOLS_CONVERT_STACK_READ_TWICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/convert/mappings.h"

#define ABOVE_PIECES 32 /* stacks that a thread may be on at a time, by which it is continued */

/**
 * struct above_piece - a part of what was read
 * @addr: address of its first byte.
 * @at: where it begins in the bytes of its look.
 * @size: number of bytes.
 */
struct above_piece {
	uint64_t addr;
	size_t at;
	size_t size;
};

/**
 * struct above_look - what lay on a thread's stacks at one time
 * @bytes: the bytes.
 * @size: number of bytes.
 * @max: number of bytes for which @bytes has room.
 * @pieces: where they lay, room for ABOVE_PIECES; NULL before the first one. Code that splits its
 *	stack, or runs coroutines, is on several stacks.
 * @nr: number of @pieces.
 * @time: CLOCK_MONOTONIC in ns, when the last of them was read; 0: none was.
 */
struct above_look {
	uint8_t *bytes;
	size_t size;
	size_t max;
	struct above_piece *pieces;
	size_t nr;
	uint64_t time;
};

/**
 * struct above - two looks at a thread's stack
 * @before: the look before the last one.
 * @last: the last look.
 * @kept: bytes that are kept for the looks of all threads together.
 * @deeper: with the last look, the stack that could not be continued last has more entries than it
 *	has room for. above_continue() sets it, the caller resets it.
 */
struct above {
	struct above_look before;
	struct above_look last;
	size_t *kept;
	bool deeper;
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
 * @mappings: what the process has mapped.
 * @pid: the process, which may have ended.
 * @time: time of the sample, CLOCK_MONOTONIC in ns.
 * @copy: the copy from which the stack was unwound.
 * @stack: the stack, with @sps. It becomes the whole stack if both looks agree; entries that are not from
 *	the copy are marked as guesses.
 *
 * Return: whether the stack was continued.
 */
bool above_continue(struct above *a, struct mappings *mappings, pid_t pid, uint64_t time,
		    const struct stack_copy *copy, struct unwound *stack);

#endif
