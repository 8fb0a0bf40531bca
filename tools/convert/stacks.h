/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stacks.h - makes the stack of a sample: from the kernel's callchain or a copy that is unwound,
 * and from other sources where neither goes on.
 */
#ifndef TOOLS_CONVERT_STACKS_H
#define TOOLS_CONVERT_STACKS_H

#include "tools/convert/contexts.h"
#include "tools/convert/living_golabels.h"
#include "tools/convert/population.h"
#include "tools/convert/wakers.h"
#include "tools/language/languages.h"
#include "tools/perf/sample.h"

/**
 * enum stack_source - what the stacks of user space are made of
 * @STACK_CHAINS: the kernel's callchains.
 * @STACK_SHADOW: callchains, of processes that have a shadow stack. Of other processes only the
 *	innermost entry is taken, as what follows would come from frame pointers, which may be
 *	anything.
 * @STACK_COPIES: copies of stacks, which are unwound; callchains for 32-bit code, which cannot be
 *	unwound.
 * @STACK_SHADOW_OR_COPIES: callchains of processes that have a shadow stack, and copies of others.
 */
enum stack_source {
	STACK_CHAINS,
	STACK_SHADOW,
	STACK_COPIES,
	STACK_SHADOW_OR_COPIES,
};

/**
 * enum kernel_part - which stacks have a kernel part
 * @KERNEL_NEVER: none.
 * @KERNEL_ALONE: those that have no other part, where stacks are copied.
 * @KERNEL_ALWAYS: all that were in the kernel.
 */
enum kernel_part {
	KERNEL_NEVER,
	KERNEL_ALONE,
	KERNEL_ALWAYS,
};

#define STACKS_MAX_KERNEL 512 /* entries of the kernel's part */
#define STACKS_MAX (STACKS_MAX_KERNEL + 4096) /* entries of a stack */

#define STATE_LABEL 16 /* bytes of a label that says why a thread left its CPU */

/**
 * struct stacks - how stacks are made, and room for one
 * @source: what stacks are made of. The recorder may change it between two samples.
 * @kernel: which stacks have a kernel part. Set at the beginning.
 * @depth: most entries of a copy that is unwound. Set at the beginning.
 * @fold: unwind deeper stacks, too, and shorten them (stack_deep.h). Set at the beginning.
 * @labels: give stacks the labels of their goroutines, and a label for an outer part that is not
 *	from the copy. Set at the beginning.
 * @pcs: entries of the stack that was made last.
 * @sps: the stack pointer of each entry that was unwound.
 * @marks: SHSTK_MARK_* of each entry.
 * @whole: the same stack before it was shortened, if its process has an interpreter or Java, and the copy had
 *	it to its end; else it has no entries. Freed by stacks_deinit().
 * @next_search: CLOCK_MONOTONIC in ns, before which no process is searched for its goroutines.
 * @label_text: the labels of that stack, with room for those of its trace context and of time off the
 *	CPU.
 */
struct stacks {
	enum stack_source source;
	enum kernel_part kernel;
	unsigned int depth;
	bool fold;
	bool labels;
	uint64_t next_search;
	struct unwound whole;
	uint64_t pcs[STACKS_MAX];
	uint64_t sps[STACKS_MAX];
	uint8_t marks[STACKS_MAX];
	char label_text[GOLABELS_MAX + OUTER_LABEL + LANGUAGES_LABEL + CONTEXT_LABELS +
			WAKERS_LABEL + STATE_LABEL];
};

/* Frees what stacks_make() has taken. */
void stacks_deinit(struct stacks *st);

/* Returns whether samples need copies of stacks. */
bool stacks_are_copied(const struct stacks *st);

/**
 * stacks_make() - make the stack of a sample
 * @st: how stacks are made.
 * @all: the population to which @t belongs; its time is that of the sample.
 * @t: the thread that was sampled.
 * @sample: the sample.
 * @more: memory of the same moment beside the copy, or NULL.
 * @ahead: what unwinding the copy leads to, if that was done ahead (ahead.h), or NULL.
 * @ret: receives the stack, which lies in @st until the next one is made.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int stacks_make(struct stacks *st, const struct population *all, struct task *t,
		const struct perf_sample *sample, const struct memory_pieces *more,
		const struct unwound *ahead, struct stack *ret);

/* Returns what the stack of a sample is unwound from. */
struct stack_copy stacks_copy(const struct perf_sample *sample, const struct memory_pieces *more);

/*
 * Returns for how many ns until @time the process is known by its samples without a shadow stack.
 */
uint64_t stacks_no_shadow_for(const struct process *p, uint64_t time);

#endif
