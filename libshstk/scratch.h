/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scratch.h - memory of the thread for variables that are too large for the program's stack.
 *
 * A capture may run in a signal handler on a coroutine's stack of a few KiB, most of
 * which the kernel's signal frame takes. So the large variables of a capture's slow paths
 * (rows of unwind information, searches in code) live in the thread's state, and a capture
 * needs little of the stack it is called on (SHSTK_STACK_NEED).
 *
 * Captures nest in signal handlers, and a handler gives back what it takes before it
 * returns, so this memory is used as a stack. A longjmp() may leave a handler or a capture
 * without giving its memory back; that memory is free again when a function further up the
 * same stack asks for some.
 */
#ifndef SHSTK_SCRATCH_H
#define SHSTK_SCRATCH_H

#include "internal.h"

#define SCRATCH_BYTES 6144
#define SCRATCH_DEPTH 8

/**
 * struct scratch - the scratch memory of a thread
 * @n: number of uses in progress.
 * @use: for each use the stack address of its function, and where its memory ends in @mem, in
 *	bytes.
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
 * Calls @fn with @size bytes of memory, whose content is undefined. The memory is the
 * thread's scratch memory; if too little is left, or the thread has no state, it is on the
 * stack. Returns what @fn returns. Async-signal-safe.
 */
int scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg);

#endif
