/* SPDX-License-Identifier: GPL-2.0-only */
/* variable_walk.h - finds a thread-local variable of the thread that is sampled (struct context_variable). */
#ifndef BPF_VARIABLE_WALK_H
#define BPF_VARIABLE_WALK_H

#include "context.h"
#include "program.h"

/*
 * glibc's table of a thread's blocks (sysdeps/generic/dl-dtv.h, elf/dl-tls.c): elements of 16 bytes.
 * In front of it is the number of elements; the first one is its generation. An element begins with
 * the address of the block, or has all bits set if the thread did not use it yet.
 */
#define TABLE_ELEMENT 16
#define TABLE_NO_BLOCK (~0ull)

static __always_inline u64 context_word(u64 at)
{
	u64 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (void *)at) ? 0 : value;
}

/* Returns the address of the thread's variable, or 0. */
static __always_inline u64 find_variable(const struct context_variable *v, u64 thread)
{
	u64 table, block;

	if (!thread)
		return 0;
	if (!v->module)
		return thread + v->offset;
	table = context_word(thread + WALK_THREAD_TABLE);
	if (!table || context_word(table - TABLE_ELEMENT) < v->module ||
	    context_word(table) < v->generation)
		return 0;
	block = context_word(table + v->module * TABLE_ELEMENT);
	return block && block != TABLE_NO_BLOCK ? block + v->offset : 0;
}

#endif /* BPF_VARIABLE_WALK_H */
