/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * go_stacks.h - completes stacks of Go programs that lie on two stacks, of which only one was
 * copied.
 *
 * The runtime does some work for a goroutine on the thread's own stack. Then that stack is copied,
 * and the goroutine's is not. The kernel's callchain of the same moment follows frame pointers,
 * which lead on to the goroutine's stack, though not past code that has stored none.
 */
#ifndef TOOLS_CONVERT_GO_STACKS_H
#define TOOLS_CONVERT_GO_STACKS_H

#include "tools/convert/callchain.h"
#include "tools/convert/mappings.h"

/**
 * splice_stack() - complete a stack with the callchain, if that leads to where a goroutine begins
 * @mappings: what the process had mapped.
 * @chain: the callchain.
 * @stack: the stack. Its @sps are not set for the entries that are added.
 *
 * A stack that cannot be completed is marked as incomplete, even if it looked complete: the
 * thread's own stack has an end, too. A stack that ends where its copy ends goes on with the
 * callchain if the callchain has all of its frames.
 *
 * Return: whether it was completed.
 */
bool splice_stack(const struct mappings *mappings, const struct callchain *chain,
		  struct unwound *stack);

/**
 * splice_in_vdso() - is the vdso called on another stack?
 * @mappings: what the process had mapped.
 * @stack: the stack.
 *
 * Return: whether the innermost function of Go is one that calls the vdso, and no signal handler runs.
 */
bool splice_in_vdso(const struct mappings *mappings, const struct unwound *stack);

/**
 * splice_frame() - follow the frame pointers of a copy
 * @copy: registers and stack.
 * @fp: DWARF number of the frame pointer.
 * @sp: DWARF number of the stack pointer.
 *
 * Return: the first frame pointer that is not in the copy, or the last one. It is on the
 * goroutine's stack if the goroutine's work is done on another stack.
 */
uint64_t splice_frame(const struct stack_copy *copy, unsigned int fp, unsigned int sp);

#endif
