/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callchain.h - finds the part of a stack behind its copy in the kernel's callchain, which follows
 * frame pointers.
 */
#ifndef TOOLS_CONVERT_CALLCHAIN_H
#define TOOLS_CONVERT_CALLCHAIN_H

#include "tools/convert/mappings.h"
#include "tools/perf/sample.h"

/**
 * callchain_rest() - find what a callchain has behind a stack
 * @chain: the callchain.
 * @copy: registers and stack of the same sample.
 * @stack: the same stack, unwound until the copy ended, with @sps.
 * @mappings: what the process had mapped.
 * @ret: receives the entries that follow the last one of @stack; points into @chain.
 *
 * The frame records in the copy tell the place in the stack of each entry of the callchain. Stack
 * and callchain must agree on the outermost of these entries, and the next record must lie behind
 * the copy. So no entry is taken twice or missed where a function calls itself. An entry that is
 * not code is left out with all that follow it.
 *
 * Return: number of entries.
 */
size_t callchain_rest(const struct callchain *chain, const struct stack_copy *copy,
		      const struct unwound *stack, const struct mappings *mappings,
		      const uint64_t **ret);

#endif
