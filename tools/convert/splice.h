/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * splice.h - stacks of Go programs that lie on two stacks, of which a copy has but one.
 *
 * Work that the runtime does for a goroutine is done on the thread's own stack: that is
 * copied, and the goroutine's is not. The kernel's callchain of the same moment follows
 * frame pointers, which lead on to it, though not past code that has put none there.
 */
#ifndef TOOLS_CONVERT_SPLICE_H
#define TOOLS_CONVERT_SPLICE_H

#include "tools/convert/callchain.h"
#include "tools/convert/layout.h"

/**
 * splice_stack() - complete a stack with the callchain, if that leads where a goroutine begins
 * @layout: what the process had mapped.
 * @chain: the callchain.
 * @stack: the stack; its @sps are not those of the entries that are added.
 *
 * A stack that cannot be completed is marked so, though it looked complete: the thread's
 * own stack has an end, too. One that ends where its copy does goes on with the callchain if
 * that has all of its frames.
 *
 * Return: whether it was completed.
 */
bool splice_stack(const struct layout *layout, const struct callchain *chain,
		  struct unwound *stack);

/**
 * splice_frame() - where the frame pointers of a copy lead
 * @copy: registers and stack.
 * @fp: DWARF number of the frame pointer, and
 * @sp: of the stack pointer.
 *
 * Return: the first frame pointer that is not in the copy, or the last one: on the
 * goroutine's stack, if its work is done on another one.
 */
uint64_t splice_frame(const struct stack_copy *copy, unsigned int fp, unsigned int sp);

#endif
