/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callchain.h - the part of a stack behind its copy, from the kernel's callchain, which
 * followed frame pointers.
 */
#ifndef TOOLS_CONVERT_CALLCHAIN_H
#define TOOLS_CONVERT_CALLCHAIN_H

#include "tools/convert/layout.h"
#include "tools/perf/sample.h"

/**
 * callchain_rest() - find what a callchain has behind a stack
 * @chain: the callchain.
 * @copy: registers and stack of the same sample.
 * @stack: the same stack, unwound until the copy ended, with @sps.
 * @layout: what the process had mapped.
 * @ret: receives the entries that follow the last one of @stack; points into @chain.
 *
 * The frame records in the copy say where in the stack each entry of the callchain is. Both
 * must agree on the outermost of these, and the next record must lie behind the copy: so
 * that no entry is there twice, or is missing where a function calls itself. What is no
 * code is left out with all behind it.
 *
 * Return: number of entries.
 */
size_t callchain_rest(const struct callchain *chain, const struct stack_copy *copy,
		      const struct unwound *stack, const struct layout *layout,
		      const uint64_t **ret);

#endif
