// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stacks.c - makes the stack of a sample from the kernel's callchain or from a copy. See stacks.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/profile.h"
#include "bpf/walk.h"
#include "tools/convert/callchain.h"
#include "tools/convert/go_stacks.h"
#include "tools/convert/stack_deep.h"
#include "tools/convert/stacks.h"
#include "tools/perf/regs.h"
#include "tools/proc/shadow.h"

#define ASK_AGAIN 1000000 /* ns until a process is asked again whether it has a shadow stack */

bool stacks_are_copied(const struct stacks *st)
{
	return st->source == STACK_COPIES || st->source == STACK_SHADOW_OR_COPIES;
}

/* ---- Callchains ---- */

/* Returns the marks of an entry that the walk in the kernel made: SHSTK_MARK_*. */
static uint8_t walked_marks(uint64_t entry)
{
	return (entry & WALK_GUESS ? SHSTK_MARK_GUESS : 0) | (entry & WALK_PC ? SHSTK_MARK_PC : 0) |
	       (entry & WALK_SIGNAL ? SHSTK_MARK_SIGNAL : 0);
}

/* Adds the part of a callchain behind @context, whose first entry is a program counter. */
static void add_chain(struct stacks *st, const struct perf_sample *sample, uint64_t context,
		      unsigned int max, struct stack *s)
{
	const bool walked = sample->walked && context == PERF_CONTEXT_USER;
	bool wanted = false, first = false;

	for (uint64_t i = 0; i < sample->nr; i++) {
		uint64_t pc = sample->chain[i];

		if (pc >= PERF_CONTEXT_MAX) {
			first = wanted = pc == context;
		} else if (wanted && s->nr < max) {
			st->marks[s->nr] = first ? SHSTK_MARK_PC : 0;
			if (walked)
				st->marks[s->nr] |= walked_marks(pc);
			st->pcs[s->nr++] = walked ? pc & ~WALK_MARKS : pc;
			first = false;
		}
	}
}

static void add_user_chain(struct stacks *st, const struct perf_sample *sample, struct stack *s)
{
	const struct callchain chain = perf_sample_user(sample);

	/* A walker wrote it beside the sample, where there was no room for it. */
	if (!chain.nr && sample->abi == PERF_SAMPLE_REGS_ABI_32) {
		st->marks[s->nr] = SHSTK_MARK_PC;
		st->pcs[s->nr++] = sample->regs.pc;
		s->end = SHSTK_END_NO_RULE;
		return;
	}
	add_chain(st, sample, PERF_CONTEXT_USER, STACKS_MAX, s);
	s->end = chain.nr >= chain.max ? SHSTK_END_CAPACITY : SHSTK_END_COMPLETE;
}

/* Adds only the innermost entry. The kernel followed frame pointers, which may be anything here. */
static void add_innermost(struct stacks *st, const struct perf_sample *sample, struct stack *s)
{
	const struct callchain chain = perf_sample_user(sample);

	if (!chain.nr)
		return;
	st->marks[s->nr] = SHSTK_MARK_PC;
	st->pcs[s->nr++] = chain.ips[0];
	s->end = SHSTK_END_NO_RULE;
	s->no_shadow = true;
}

/* ---- Shadow stacks ---- */

uint64_t stacks_no_shadow_for(const struct process *p, uint64_t time)
{
	return time > p->unknown_since ? time - p->unknown_since : 0;
}

/*
 * Returns whether the process has a shadow stack, so that its callchains come from it. A program
 * gets it some time after it begins, perhaps after its first sample. So it is looked for again once
 * twice as much time has passed; without delay if everything depends on it, as stacks are not
 * copied yet.
 *
 * The answer is of the program that runs when it is asked. A program has its shadow stack only after the
 * record that it was executed was written, so it is looked for that record after the answer, and an answer of
 * a later program proves nothing. No callchain could prove it by itself: one that follows frame pointers
 * reaches the first function, too, where only some functions have none. Of a process that cannot be asked
 * any more it is taken for granted, since it was started among such that have shadow stacks.
 */
static bool has_shadow_stack(const struct stacks *st, const struct population *all,
			     struct process *p)
{
	const uint64_t time = all->time;
	int any;

	if (p->shadow)
		return true;
	if (!p->unknown_since)
		p->unknown_since = time;
	if (time < p->ask_at)
		return false;
	p->ask_at = time + ASK_AGAIN;
	if (st->source != STACK_SHADOW)
		p->ask_at += stacks_no_shadow_for(p, time);
	any = shadow_stacks_any(p->pid);
	if (any >= 0) {
		p->shadow = any && !population_is_later(all, p);
		p->no_shadow = !p->shadow;
	}
	return p->shadow;
}

/* ---- Labels ---- */

/* Finds addresses on the stack of the goroutine to which a sample belongs. */
static void find_places(const struct mappings *mappings, const struct stack_copy *copy,
			const struct unwound *user, bool spliced, struct golabels_hints *hints)
{
	bool x86 = perf_regs_arch() == SHSTK_ARCH_X86;
	const uint64_t *r = copy->regs->r;

	hints->g = r[x86 ? 14 : 28];
	if (!spliced && user->nr && user->end == SHSTK_END_COMPLETE)
		hints->places[hints->nr++] = user->sps[user->nr - 1];
	hints->places[hints->nr++] = splice_frame(copy, x86 ? 6 : 29, x86 ? 7 : 31);
	/*
	 * While the vdso is called on another stack, this register has the goroutine's stack pointer. Else it may
	 * have that of a goroutine that ran before.
	 */
	if (splice_in_vdso(mappings, user))
		hints->places[hints->nr++] = r[x86 ? 12 : 20];
}

/*
 * Finds the labels of the goroutine, in a process that runs code of Go. The process must live to be
 * asked.
 */
static void find_labels(struct stacks *st, const struct population *all, struct process *p,
			const struct stack_copy *copy, const struct unwound *user, struct stack *s)
{
	struct golabels_hints hints = { .nr = 0 };

	if (!st->labels || !all->live || !mappings_has_go(p->mappings))
		return;
	if (!p->golabels)
		p->golabels = golabels_create(p->pid, &st->next_search);
	if (!p->golabels)
		return;
	find_places(p->mappings, copy, user, s->spliced, &hints);
	s->labels = st->label_text;
	s->labels_size = golabels_find(p->golabels, &hints, st->label_text);
}

static void add_outer_label(struct stacks *st, struct stack *s)
{
	if (!st->labels || s->by == OUTER_NOTHING)
		return;
	s->labels = st->label_text;
	s->labels_size += outer_label(s->by, st->label_text + s->labels_size);
}

/* ---- Copies ---- */

/* Adds what follows behind the copy, if it is known. */
static void add_outer(const struct population *all, struct task *t,
		      const struct perf_sample *sample, const struct stack_copy *copy,
		      struct unwound *user, struct stack *s)
{
	const struct callchain chain = perf_sample_user(sample);
	struct mappings *mappings = t->process->mappings;

	/*
	 * With other memory of the same moment it is known whether there is a goroutine's stack to
	 * go on with, so an end that was reached is that of the whole stack. Without it, it may be
	 * only that of the thread's own stack.
	 */
	t->above.deeper = false;
	s->by_pieces = copy->nr_more && user->end == SHSTK_END_COMPLETE;
	s->spliced = !s->by_pieces && splice_stack(mappings, &chain, user);
	user->elsewhere |= user->end == SHSTK_END_READ && sample->stack_ends;
	s->too_short = !s->spliced && unwound_too_short(user);
	if (user->end == SHSTK_END_READ && !s->spliced && all->live && !mappings_has_go(mappings) &&
	    above_continue(&t->above, mappings, t->process->pid, sample->time, copy, user))
		s->by = OUTER_READ;
	else if (!s->spliced)
		s->by = outer_continue(&t->whole, mappings, user, copy, &chain);
}

/* Returns whether the stack has more entries than @user has room for, and is to be shortened. */
static bool is_deeper(const struct stacks *st, const struct task *t, const struct unwound *user)
{
	return st->fold && (user->end == SHSTK_END_CAPACITY ||
			    (user->end == SHSTK_END_READ && t->above.deeper));
}

void stacks_deinit(struct stacks *st)
{
	deep_deinit(&st->whole);
}

/*
 * Keeps a deep stack as it was unwound, as the functions of an interpreter are placed among all of
 * its frames. Without memory it is not kept.
 */
static void keep_whole(struct stacks *st, const struct unwound *deep)
{
	if (!st->whole.max && !deep_init(&st->whole))
		return;
	memcpy(st->whole.pcs, deep->pcs, deep->nr * sizeof(*deep->pcs));
	memcpy(st->whole.sps, deep->sps, deep->nr * sizeof(*deep->sps));
	memcpy(st->whole.marks, deep->marks, deep->nr);
	st->whole.nr = deep->nr;
	st->whole.end = deep->end;
}

/*
 * Unwinds the copy of a deep stack again, with room for more entries, and shortens what is found.
 * Returns 0 or a negative errno.
 */
static int add_deep(struct stacks *st, const struct population *all, struct task *t,
		    const struct perf_sample *sample, const struct stack_copy *copy,
		    struct unwound *user, struct stack *s)
{
	struct process *p = t->process;
	struct unwound deep;
	int ret;

	if (!deep_init(&deep))
		return -ENOMEM;
	ret = mappings_unwind(p->mappings, p->pid, copy, &deep);
	if (!ret) {
		const unsigned int copied = deep.nr;

		add_outer(all, t, sample, copy, &deep, s);
		find_labels(st, all, p, copy, &deep, s);
		if ((p->language || mappings_has_jit(p->mappings)) && deep.nr == copied)
			keep_whole(st, &deep);
		s->folded = deep_fold(&deep, user);
	}
	deep_deinit(&deep);
	return ret;
}

struct stack_copy stacks_copy(const struct perf_sample *sample, const struct memory_pieces *more)
{
	return (struct stack_copy){
		.regs = &sample->regs,
		.bytes = sample->stack,
		.size = sample->stack_size,
		.more = more ? more->pieces : NULL,
		.nr_more = more ? more->nr : 0,
	};
}

/* Takes over a stack that was unwound ahead. */
static void take_over(struct unwound *user, const struct unwound *ahead)
{
	memcpy(user->pcs, ahead->pcs, ahead->nr * sizeof(*ahead->pcs));
	memcpy(user->sps, ahead->sps, ahead->nr * sizeof(*ahead->sps));
	memcpy(user->marks, ahead->marks, ahead->nr);
	user->nr = ahead->nr;
	user->end = ahead->end;
	user->elsewhere = ahead->elsewhere;
	user->missed = ahead->missed;
}

/*
 * Unwinds the copy of the stack, unless @ahead is what that leads to. Returns 0 or a negative errno.
 */
static int add_copy(struct stacks *st, const struct population *all, struct task *t,
		    const struct perf_sample *sample, const struct memory_pieces *more,
		    const struct unwound *ahead, struct stack *s)
{
	struct process *p = t->process;
	const struct stack_copy copy = stacks_copy(sample, more);
	struct unwound user = {
		.pcs = st->pcs + s->nr,
		.marks = st->marks + s->nr,
		.sps = st->sps,
		.max = st->depth,
	};
	int ret = 0;

	if (ahead)
		take_over(&user, ahead);
	else
		ret = mappings_unwind(p->mappings, p->pid, &copy, &user);
	if (ret)
		return ret;
	s->copied = s->nr;
	s->nr_copied = user.nr;
	add_outer(all, t, sample, &copy, &user, s);
	if (is_deeper(st, t, &user))
		ret = add_deep(st, all, t, sample, &copy, &user, s);
	else
		find_labels(st, all, p, &copy, &user, s);
	if (ret)
		return ret;
	add_outer_label(st, s);
	s->nr += user.nr;
	s->end = user.end;
	s->elsewhere = user.elsewhere && user.end == SHSTK_END_READ;
	return 0;
}

/*
 * Returns the note for a stack that cannot be unwound. While a program is being executed, the
 * registers are those of the old one, whose stack is gone; a process that ends has no stack. A
 * thread that begins has touched no page of its stack yet; only the first thread of a process
 * executes programs.
 */
static int find_note(const struct task *t, const struct perf_sample *sample)
{
	const struct process *p = t->process;

	if (!sample->abi)
		return mappings_empty(p->mappings) ? SHSTK_NOTE_NONE : SHSTK_NOTE_EXIT;
	if (sample->user_mode)
		return SHSTK_NOTE_NONE;
	return (!sample->stack_size && t->tid == p->pid) ||
			       (p->executed && !mappings_has(p->mappings, sample->regs.pc)) ?
		       SHSTK_NOTE_LOADER :
		       SHSTK_NOTE_NONE;
}

/* ---- The stack of a sample ---- */

/* Returns whether the part of user space comes from the callchain. */
static bool is_chain(const struct stacks *st, const struct population *all, struct process *p,
		     const struct perf_sample *sample)
{
	if (sample->walked || !stacks_are_copied(st) || sample->abi == PERF_SAMPLE_REGS_ABI_32)
		return true;
	return st->source == STACK_SHADOW_OR_COPIES && has_shadow_stack(st, all, p);
}

/*
 * Returns whether the kernel's part is wanted. With KERNEL_ALONE it is only wanted where stacks are
 * copied and there is no other part.
 */
static bool wants_kernel(const struct stacks *st, const struct perf_sample *sample, bool chain,
			 int note)
{
	return st->kernel == KERNEL_ALWAYS ||
	       (st->kernel == KERNEL_ALONE && !chain && (note || !sample->abi));
}

int stacks_make(struct stacks *st, const struct population *all, struct task *t,
		const struct perf_sample *sample, const struct memory_pieces *more,
		const struct unwound *ahead, struct stack *ret)
{
	struct process *p = t->process;
	const bool chain = is_chain(st, all, p, sample);

	*ret = (struct stack){
		.pcs = st->pcs,
		.marks = st->marks,
		.time = sample->time,
		.walked = sample->walked,
		.compat = sample->abi == PERF_SAMPLE_REGS_ABI_32,
	};
	st->whole.nr = 0;
	if (!chain)
		ret->note = find_note(t, sample);
	if (wants_kernel(st, sample, chain, ret->note))
		add_chain(st, sample, PERF_CONTEXT_KERNEL, STACKS_MAX_KERNEL, ret);
	if (chain && st->source == STACK_SHADOW && !has_shadow_stack(st, all, p) && p->no_shadow)
		add_innermost(st, sample, ret);
	else if (chain)
		add_user_chain(st, sample, ret);
	return chain || !sample->abi || ret->note ? 0 :
						    add_copy(st, all, t, sample, more, ahead, ret);
}
