/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scratch.h - memory of the thread for what is too large for the program's stack.
 *
 * A capture may run in a signal handler on a coroutine's stack of a few KiB, most of
 * which the kernel's signal frame takes. So the large variables of its slow ways (rows
 * of unwind information, searches in code) live in the thread's state: a capture needs
 * little of the stack it is called on (SHSTK_STACK_NEED).
 *
 * Captures nest in signal handlers, and what a handler takes it gives back before it
 * returns, so this is a stack as well. A handler may leave by longjmp(), or a capture be
 * left in that way: what it had taken is taken back when a function further up the same
 * stack asks.
 */
#ifndef SHSTK_SCRATCH_H
#define SHSTK_SCRATCH_H

#include "internal.h"

#define SCRATCH_BYTES 6144
#define SCRATCH_DEPTH 8

/**
 * struct scratch - what is taken of a thread's memory
 * @n: uses in progress.
 * @use: for each: the stack address of its function; where its memory ends.
 * @mem: the memory.
 */
struct scratch {
	uint32_t n;
	struct {
		uint64_t sp;
		uint32_t end;
	} use[SCRATCH_DEPTH];
	uint64_t mem[SCRATCH_BYTES / 8];
};

/*
 * Call @fn with @size bytes of memory, which hold nothing in particular: the thread's,
 * or if it has none left or no state, some of the stack. Returns what @fn returns.
 * Async-signal-safe.
 */
int scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg);

#endif
