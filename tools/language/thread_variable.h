/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread_variable.h - where a thread has a thread-local variable (struct context_variable): find_variable() of
 * bpf/variable_walk.h, which says how glibc's table of a thread's blocks looks, outside of the kernel.
 */
#ifndef TOOLS_LANGUAGE_THREAD_VARIABLE_H
#define TOOLS_LANGUAGE_THREAD_VARIABLE_H

#include <stdint.h>

#include "bpf/context.h"

/* Offset from the thread pointer of the address of the table, and bytes of one of its elements. */
#ifdef __aarch64__
#define THREAD_TABLE 0
#else
#define THREAD_TABLE 8
#endif
#define THREAD_TABLE_ELEMENT 16

/*
 * Returns the address of the variable @v of the thread with the thread pointer @pointer; 0: it has none yet, or
 * it cannot be read. @word reads a word of the thread's memory, or returns 0; @arg is its first argument.
 */
static inline uint64_t thread_variable_at(const struct context_variable *v, uint64_t pointer,
					  uint64_t (*word)(const void *arg, uint64_t at),
					  const void *arg)
{
	uint64_t table, block;

	if (!v->module)
		return pointer + v->offset;
	table = word(arg, pointer + THREAD_TABLE);
	if (!table || word(arg, table - THREAD_TABLE_ELEMENT) < v->module ||
	    word(arg, table) < v->generation)
		return 0;
	block = word(arg, table + v->module * THREAD_TABLE_ELEMENT);
	return block && block != UINT64_MAX ? block + v->offset : 0;
}

#endif
