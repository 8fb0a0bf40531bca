/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stacks.h - the stack of a sample: what of it is the kernel's callchain, what is unwound from a
 * copy, and what is added where neither goes on.
 */
#ifndef TOOLS_CONVERT_STACKS_H
#define TOOLS_CONVERT_STACKS_H

#include "tools/convert/golabels.h"
#include "tools/convert/population.h"
#include "tools/convert/wakers.h"
#include "tools/perf/sample.h"

/**
 * enum stack_source - what the stacks of user space are made of
 * @STACK_CHAINS: the kernel's callchains.
 * @STACK_SHADOW: callchains of processes that have a shadow stack. Of others only the innermost
 *	entry is known, as what follows would be frame pointers, which are anything.
 * @STACK_COPIES: copies of stacks, which are unwound; callchains of 32-bit code, which is not.
 * @STACK_SHADOW_OR_COPIES: callchains of processes that have a shadow stack, else copies.
 */
enum stack_source {
	STACK_CHAINS,
	STACK_SHADOW,
	STACK_COPIES,
	STACK_SHADOW_OR_COPIES,
};

/**
 * enum kernel_part - which stacks have a part of the kernel's
 * @KERNEL_NEVER: none has.
 * @KERNEL_ALONE: those that have no other part, where stacks are copied.
 * @KERNEL_ALWAYS: all have that were in the kernel.
 */
enum kernel_part {
	KERNEL_NEVER,
	KERNEL_ALONE,
	KERNEL_ALWAYS,
};

#define STACKS_MAX_KERNEL 512 /* entries of the kernel's part */
#define STACKS_MAX (STACKS_MAX_KERNEL + 4096) /* entries of a stack */

/**
 * struct stacks - how stacks are made, and room for one
 * @source: what they are made of; who records may change it between two samples.
 * @kernel: enum kernel_part. Set by who begins.
 * @depth: most entries of a copy that is unwound. Set by who begins.
 * @labels: give stacks the labels of their goroutines, and that of an outer part which is not
 *	from the copy. Set by who begins.
 * @pcs: entries of the stack that was made last.
 * @sps: the stack pointer of each entry that was unwound.
 * @marks: SHSTK_MARK_* of each entry.
 * @label_text: the labels of that stack, and room for one more.
 */
struct stacks {
	enum stack_source source;
	enum kernel_part kernel;
	unsigned int depth;
	bool labels;
	uint64_t pcs[STACKS_MAX];
	uint64_t sps[STACKS_MAX];
	uint8_t marks[STACKS_MAX];
	char label_text[GOLABELS_MAX + BEYOND_LABEL + WAKERS_LABEL];
};

/* Do samples have copies of stacks, if these are made so? */
bool stacks_are_copied(const struct stacks *st);

/**
 * stacks_make() - the stack of a sample
 * @st: how.
 * @all: who @t is of; its time is that of the sample.
 * @t: the thread that was sampled.
 * @sample: the sample.
 * @more: memory beside the copy of the same moment; may be NULL.
 * @ret: receives the stack, which lies in @st until the next one is made.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int stacks_make(struct stacks *st, const struct population *all, struct task *t,
		const struct perf_sample *sample, const struct memory_pieces *more,
		struct stack *ret);

/* ns that a process is known by its samples, and not to have a shadow stack, at @time. */
uint64_t stacks_bare_for(const struct process *p, uint64_t time);

#endif
