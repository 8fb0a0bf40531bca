/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_user.h - walks the user stack of the task that runs, by unwind rules.
 *
 * It is the same walk as kmod/walk.c, for kernels into which no module is to be loaded: the same
 * tables, the same steps (kmod/walk_special.h), the same ends.
 *
 * Whatever the stack, the mappings and the tables say, a walk makes no more than WALK_MAX steps.
 */
#ifndef BPF_WALK_USER_H
#define BPF_WALK_USER_H

#include "program.h"

enum { RULES_CUT_TABLE, RULES_CUT_RULE, RULES_CUT_KIND };

#include "mapping.h"
#include "table.h"

#include "kmod/return_probe_read.h"
#include "kmod/walk_special.h"

#include "plain_rule.h"
#ifdef WALK_X86
#include "loop_x86.h"
#else
#include "loop_arm64.h"
#endif

#define ROUNDS \
	(2 * (WALK_MAX + 1)) /* a round passes a frame, or reads a piece for the next round */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk);
} MAP(walks) SEC(".maps");

/* Adds the frame to the chain, with its @marks. Returns GO_ON, or how the walk ends. */
static __always_inline int add_entry(struct walk *w, const struct frame *f, u64 marks)
{
	if (!f->pc)
		return WALK_ZERO;
	if (w->nr >= w->max)
		return WALK_ROOM;
	w->entry[MASKED(w->first + w->nr, WALK_ENTRIES)] = f->pc | marks;
	w->nr++;
	return GO_ON;
}

/*
 * Ends the walk at an address without code. A return address that leads there is no return address
 * and is removed. A program counter may be there after a signal that followed a wild jump, but it
 * is not in the kernel's addresses, which a forged signal frame may hold.
 */
static __always_inline int no_code(struct walk *w)
{
	if (w->exact && (w->frame.pc < TASK_SIZE_MAX || !w->nr))
		return WALK_NO_TABLE;
	if (w->nr)
		w->nr--;
	return WALK_NO_CODE;
}

static __always_inline bool is_unknown(const struct packed_rule *rule)
{
	return rule->cfa & PACKED_SPECIAL && packed_kind(rule->cfa) == SHSTK_RULE_NONE;
}

/*
 * Returns the mark of an entry: a signal frame was passed if what it interrupted is a program counter
 * again. Then the entry before is the trampoline, unless that is where the walk began.
 */
static __always_inline u64 mark_signal(struct walk *w)
{
	if (!w->exact)
		return 0;
	if (w->nr)
		w->entry[MASKED(w->first + w->nr - 1, WALK_ENTRIES)] |= WALK_SIGNAL;
	return WALK_PC;
}

/* Returns whether a frame of code without a rule may be left by its frame record. */
static __always_inline bool may_use_record(const struct walk *w, const struct mapping *m)
{
	return w->records == WALK_RECORDS_ALWAYS ||
	       (w->records == WALK_RECORDS_NO_FILE && !m->file);
}

/* Begins at the innermost frame. Returns false if its code is not 64-bit. */
static __always_inline bool begin_frames(struct walk *w)
{
	struct task_struct *task = current;
	const struct uprobe_task *utask = ushstk_own_utask();

	if (!walk_arch_start(&w->frame, (void *)bpf_task_pt_regs((void *)task)))
		return false;
	w->instance = utask ? ushstk_returns(utask) : NULL;
	if (utask)
		w->frame.pc = ushstk_unstepped(w->frame.pc);
	w->nr = 0;
	w->signals = 0;
	w->exact = true;
	w->sp_known = true;
	w->chain.guesses = 0;
	return true;
}

/* Begins again: a rule needs rbx, which pass_known() does not follow. */
static noinline int start_again(struct walk *w)
{
	w->careful = true;
	return begin_frames(w) ? GO_ON : WALK_REFUSED;
}

/* Passes from a frame to its caller's frame. Returns GO_ON, or how the walk ends. */
static __always_inline int pass_frame(struct walk *w, struct remembered *all)
{
	struct frame *f = &w->frame;
	const u64 records = w->count[COUNT_RECORD];
	u64 at = f->pc - !w->exact;
	struct mapping *m = find_mapping(w, at);
	u64 guesses;
	int ret;

	if (!m)
		return no_code(w);
	find_rule(w, all, m, at);
	if (!may_use_record(w, m) && is_unknown(&w->rule))
		return m->file && !m->table ? WALK_NO_TABLE : WALK_NO_RULE;
	if (w->rule.cfa & PACKED_SPECIAL)
		ret = step_special(w, f, m, &w->rule, w->careful);
	else
		ret = step_plain(w, f, &w->rule);
	if (ret >= 0)
		return ret;
	if (ret == GO_CAREFULLY && !WALK_LINK_REGISTER)
		return start_again(w);
	guesses = w->count[COUNT_RECORD] - records;
	w->chain.guesses += guesses;
	if (w->instance && !w->exact)
		f->pc = through_trampoline(w, f->pc, f->sp);
	return add_entry(w, f, guesses << 63 | mark_signal(w));
}

/* What the rounds of a walk get. */
struct round {
	struct walk *w;
	struct remembered *rules;
};

/* Returns whether a rule is remembered under this key, and says that its frame is the outermost one. */
static __always_inline bool is_outermost(const struct packed_rule *rule, u64 key)
{
	return rule->key == key && rule->cfa & PACKED_SPECIAL &&
	       packed_kind(rule->cfa) == SHSTK_RULE_END;
}

/*
 * Passes up to ROUND frames of plain rules that were met before, whose code is in one mapping that is
 * stored, and whose words are in the piece of the stack that was read. Most frames are such ones, and are
 * passed with what is known in registers. Ends before the first one of any other kind. If only the piece
 * ends there, the next one is read. Returns GO_ON if the next frames may be passed in the same way, as behind
 * the mapping's last frame, GO_SPECIAL if the next one may not, or how the walk ends.
 *
 * On x86 rbx is not followed. A return address of 0 is seen behind the loop: no mapping has code there.
 *
 * The loop ends at a constant: Linux 6.1's verifier does not see that it ends where its count is compared
 * with a variable. So a round may make more entries than are wanted, which walk_on() leaves out.
 */
static noinline int pass_known(struct walk *w, struct remembered *all)
{
	u64 *to = &w->entry[MASKED(w->first + w->nr, WALK_ENTRIES)];
	const struct mapping *m = find_stored(w, w->frame.pc - !w->exact);
	const u64 base = w->piece.at, size = w->piece.size;
	struct frame f = w->frame;
	u64 at, ruled, key;
	u32 i;

	if (!m || w->nr > w->max || (WALK_LINK_REGISTER && w->exact) || !w->sp_known ||
	    w->instance || w->careful || f.sp & 7)
		return GO_SPECIAL;
	/* The rule of a return address is that of the call before it. */
	at = m->ruled.at + 1;
	ruled = m->ruled.size;
	key = (u64)m->table << 32 | (u32)(m->ruled.at - m->table_at);
	w->piece.missed = 0;
	f.pc += w->exact;
	f.sp -= base;
	for (i = 0; i < ROUND; i++) {
		const struct packed_rule *rule = place_of(all, key + (f.pc - at));

		if (f.pc - at >= ruled || rule->key != key + (f.pc - at) ||
		    !pass_plain(&w->piece, base, size, rule, &f))
			break;
		*to++ = f.pc;
		/* The verifier knows how far it is behind the first one, and compilers need no copy of the count. */
		asm volatile("" : "+r"(to), "+r"(i));
	}
	/* So what follows is looked at once, and not for each number of frames. */
	FORGET(i, f.pc);
	w->nr += i;
	if (i) {
		if (!f.pc) {
			w->nr--;
			return WALK_ZERO;
		}
		f.sp += base;
		w->frame = f;
		w->exact = false;
	}
	if (i == ROUND || (i && f.pc - at >= ruled))
		return GO_ON;
	if (is_outermost(place_of(all, key + (f.pc - at)), key + (f.pc - at)) && f.pc - at < ruled)
		return WALK_WHOLE;
	return read_missed(&w->piece) ? GO_ON : GO_SPECIAL;
}

/* Makes one round of bpf_loop(). */
static long pass(u32 i, struct round *r)
{
	struct walk *w = r->w;
	int ret = pass_known(w, r->rules);

	(void)i;
	if (ret == GO_SPECIAL)
		ret = pass_frame(w, r->rules);
	if (ret == GO_ON)
		return 0;
	w->end = ret;
	return 1;
}

/*
 * Begins a walk that makes at most @max entries, with the program counter. The caller sets
 * @w->first. Returns false if the task has no user space, or no code that can be walked.
 */
static __always_inline bool begin_walk(struct walk *w, const struct walk_config *c, u32 max)
{
	struct task_struct *task = current;
	struct mm_struct *mm = task->mm;

	w->mm = mm;
	if (!mm || task->flags & PF_KTHREAD || !begin_frames(w))
		return false;
	w->regs = (void *)bpf_task_pt_regs((void *)task);
	w->vdso = (u64)mm->context.vdso;
	check_stamp(w, mm, c);
	w->piece.size = 0;
	/* Most innermost frames are small, so their return address is in the piece at sp. */
	w->piece.missed = w->frame.sp;
	read_missed(&w->piece);
	w->careful = false;
	w->end = WALK_ROOM;
	w->records = c->records;
	w->page = c->page;
	w->max = max - 1 < WALK_MAX ? max - 1 : WALK_MAX;
	return true;
}

/* Walks to the end, and counts how it ended. */
static __always_inline void walk_on(struct walk *w)
{
	u32 zero = 0;
	struct round r = { w, bpf_map_lookup_elem(&MAP(rules), &zero) };

	if (r.rules)
		bpf_loop(ROUNDS, pass, &r, 0);
	if (w->nr > w->max) {
		w->nr = w->max;
		w->end = WALK_ROOM;
	}
	walk_count(MASKED(w->end, 16));
}

static __always_inline bool is_whole(const struct walk *w)
{
	return w->end == WALK_WHOLE || w->end == WALK_ZERO;
}

#endif /* BPF_WALK_USER_H */
