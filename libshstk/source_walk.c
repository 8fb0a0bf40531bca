// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_walk.c - walks over frames of any kind; see walk.h.
 */
#include "enter.h"
#include "frame.h"
#include "meant.h"
#include "modmap.h"
#include "return_probes.h"
#include "rulecache.h"
#include "scratch.h"
#include "step.h"
#include "walk.h"

meant_fn meant_by;

/* Adds marks to the entry that was written last. */
static void mark_last(struct capture *c, uint8_t mark)
{
	if (c->marks && c->n)
		c->marks[c->n - 1] |= mark;
}

/*
 * Makes @cur the frame that comes next in the walk. @reads: what the step to it has read, or NULL
 * if that is not known.
 */
static enum outcome take_cursor(struct capture *c, const struct cursor *cur,
				const struct step_reads *reads)
{
	const struct machine *m = &NATIVE_MACHINE;
	uint64_t fp = c->fp;

	c->pc = cur->regs.r[REG_PC];
	c->sp = cur->regs.r[m->sp];
	c->fp = cur->regs.known & 1ull << m->fp ? cur->regs.r[m->fp] : 0;
	c->slot = 0;
	c->raw = c->pc;
	c->mark = cur->mark;
	c->go_g0_sp = cur->go_g0_sp;
	if (c->memo)
		walk_note_step(c, fp, reads);
	if (c->sp <= c->calling.stack.hi)
		return GO_ON;
	return walk_finish(c, SHSTK_END_BAD_STACK, c->pc);
}

/*
 * Continues the walk on the stack of @sp, another one than before. Returns false and ends the
 * trace if the stack is not found. The memo's trace starts again there.
 */
static bool cross(struct capture *c, uint64_t sp)
{
	if (!calling_thread_find_stack(&c->calling, sp)) {
		walk_finish(c, SHSTK_END_BAD_STACK, c->pc);
		return false;
	}
	c->crossed = true;
	walk_restart_memo(c);
	return true;
}

/*
 * Steps out of @cur, whose entry is written. Frames of interrupted code that follow, whose
 * pc is exact, are written and left too.
 */
static enum outcome step_cursor(struct capture *c, const struct view *v, struct cursor *cur)
{
	for (;;) {
		uint64_t pc = cur->regs.r[REG_PC];
		uint8_t mark;
		int err;

		err = cursor_step(v, cur, &mark);
		if (err == -SHSTK_END_NO_REGISTER && !v->full)
			return NEED_FULL;
		meant_regs(&cur->regs);
		mark_last(c, mark);
		if (err) {
			return walk_finish(c, err == STEP_COMPLETE ? SHSTK_END_COMPLETE : -err, pc);
		}
		if (!cur->exact && !cur->switched)
			return GO_ON;
		c->pc = cur->regs.r[REG_PC];
		if (cur->exact && !walk_append(c, c->pc, cur->regs.r[v->m->sp], cur->mark)) {
			return walk_finish(c, SHSTK_END_CAPACITY, c->pc);
		}
		if (!cross(c, cur->regs.r[v->m->sp]))
			return FINISHED;
		cur->switched = false;
		if (!cur->exact)
			return GO_ON;
	}
}

/* The variables of a step by a rule that is no plain addition. */
struct special {
	struct cursor cur;
	struct step_reads reads;
};

static int step_special_in(void *mem, void *arg)
{
	struct special *s = mem;
	struct capture *c = arg;
	const struct view *v = calling_thread_view(&c->calling, false);
	enum outcome out;

	s->reads.n = 0;
	s->reads.lowest = c->sp;
	/* A step out of Go's code depends on more than the stack and the rules. */
	s->reads.unknown = !c->memo || modmap_has_go();
	c->calling.reads = s->reads.unknown ? NULL : &s->reads;
	calling_thread_cursor(&s->cur, c->pc, c->sp, c->fp);
	s->cur.go_g0_sp = c->go_g0_sp;
	out = step_cursor(c, v, &s->cur);
	c->calling.reads = NULL;
	return out == GO_ON ? take_cursor(c, &s->cur, s->reads.unknown ? NULL : &s->reads) : out;
}

/* Steps out of the frame in @c, whose entry is written, by the general walker (cursor.h). */
static enum outcome call_special(struct capture *c)
{
	return (enum outcome)scratch_call(sizeof(struct special), step_special_in, c);
}

/* Steps out of the frame in @c, whose entry is written, by a rule that is no plain addition. */
static enum outcome step_special(struct capture *c, uint64_t rule)
{
	if (RULE_KIND(rule) == RULE_END) {
		c->end_by_rule = true;
		return walk_finish(c, SHSTK_END_COMPLETE, c->pc);
	}
	return call_special(c);
}

/*
 * Steps out of the frame in @c, whose entry is written, if its frame pointer leads to another
 * stack: code that switches stacks keeps the old stack pointer there, as __morestack() of
 * -fsplit-stack does. Each step writes an entry, so a circle of stacks ends where the room does.
 */
static __attribute__((noinline)) enum outcome step_to_other(struct capture *c, uint64_t rule)
{
	if (RULE_KIND(rule) != RULE_FP || range_has(&c->calling.stack, c->fp))
		return walk_finish(c, SHSTK_END_BAD_STACK, c->pc);
	if (!cross(c, c->fp))
		return FINISHED;
	c->sp = c->fp;
	return call_special(c);
}

/* Steps out of the frame in @c, whose entry is written, by @rule. */
static no_sanitize enum outcome step(struct capture *c, uint64_t rule)
{
	const uint64_t hi = c->calling.stack.hi;
	struct frame_exit x;

	if (unlikely(!frame_is_ordinary(rule)))
		return step_special(c, rule);
	if (unlikely(!frame_leave(rule, c->sp - hi, c->fp - hi, &x)))
		return step_to_other(c, rule);
	if (rule & RULE_FP_SAVED) {
		c->fp = frame_word(hi, x.fp);
		if (c->memo)
			memo_restored_fp(&c->w, c->w.fresh->end, hi + x.fp);
	}
	c->slot = hi + x.ra;
	c->raw = frame_word(hi, x.ra);
	c->pc = native_strip(c->raw);
	c->sp = hi + x.cfa;
	c->mark = 0;
	return GO_ON;
}

/*
 * Writes the frame in @c, which is a frame of the last trace, and the unchanged frames behind it.
 * *@rule receives the rule of the last frame written.
 */
static inline enum outcome add_met(struct capture *c, uint64_t *rule)
{
	walk_record(c);
	if (!walk_append(c, c->pc, c->sp, c->mark)) {
		c->joined = true;
		return walk_finish(c, SHSTK_END_CAPACITY, c->pc);
	}
	if (c->memo && walk_reuse(c) == FINISHED)
		return FINISHED;
	*rule = rulecache_get(c->pc, c->gen, load_relaxed(&rulecache.mask));
	if (unlikely(*rule == RULE_NONE))
		*rule = modmap_rule(c->pc, false);
	return likely(*rule != RULE_NONE) ? GO_ON : walk_finish(c, SHSTK_END_NO_RULE, c->pc);
}

/*
 * Returns how a trace ends at a return address of 0: it is the end of the stack, unless frames
 * were guessed or the frame pointer contradicts.
 */
static int end_at_zero(const struct capture *c)
{
	return !c->guessed && frame_zero_ends(c->fp) ? SHSTK_END_COMPLETE : SHSTK_END_BAD_PC;
}

/* Tells what to do with the frame in @c, which is no code of a module. */
static __attribute__((noinline)) enum outcome meet_no_code(struct capture *c)
{
	if (calling_thread_is_probe_return(&c->calling, c->pc))
		return PROBED;
	return walk_finish(c, SHSTK_END_BAD_PC, c->pc);
}

/*
 * Writes the trampoline that @cur is at, in place of the caller that is not known, and steps to the
 * caller's caller.
 */
static enum outcome leave_probed(struct capture *c, const struct view *v, struct cursor *cur)
{
	enum outcome out;

	c->mark = SHSTK_MARK_GUESS | SHSTK_MARK_PC;
	if (!walk_append(c, c->pc, c->sp, c->mark))
		return walk_finish(c, SHSTK_END_CAPACITY, c->pc);
	/* The trampoline has no rule by which the next capture could go on from it. */
	walk_restart_memo(c);
	cur->exact = true;
	out = step_cursor(c, v, cur);
	return out == GO_ON ? take_cursor(c, cur, NULL) : out;
}

static int pass_probed_in(void *mem, void *arg)
{
	struct capture *c = arg;
	struct cursor *cur = mem;
	const struct view *v = calling_thread_view(&c->calling, false);
	uint64_t caller = 0;

	calling_thread_cursor(cur, c->pc, c->sp, c->fp);
	cur->guessed = true;
	/* The function that returns is not known where frames are left out. */
	if (c->n && c->probed_returns < PROBED_MAX) {
		c->probed_returns++;
		caller = probed_caller(v, cur, c->pcs[c->n - 1]);
	}
	/* The word in the slot does not tell the caller, so the memo must not rely on it. */
	c->slot = 0;
	c->raw = c->pc;
	if (!caller)
		return leave_probed(c, v, cur);
	c->pc = c->raw = caller;
	c->mark = SHSTK_MARK_GUESS;
	return GO_ON;
}

/*
 * Makes the frame in @c, which is the kernel's trampoline for probed returns, the frame of the
 * caller, or if that is not known, writes it and steps out of it.
 */
static enum outcome pass_probed(struct capture *c)
{
	return (enum outcome)scratch_call(sizeof(struct cursor), pass_probed_in, c);
}

/* Finds the rule of the frame in @c, which is not in the last trace, and writes the frame. */
static inline enum outcome add_new(struct capture *c, uint64_t *rule)
{
	*rule = rulecache_get(c->pc, c->gen, load_relaxed(&rulecache.mask));
	if (unlikely(*rule == RULE_NONE)) {
		if (!c->pc)
			return walk_finish(c, end_at_zero(c), c->pc);
		*rule = modmap_rule(c->pc, false);
		if (*rule == RULE_NONE)
			return meet_no_code(c);
	}
	/* Also the frame that has no room: that there is one is what the next capture verifies. */
	walk_record(c);
	if (!walk_append(c, c->pc, c->sp, c->mark))
		return walk_finish(c, SHSTK_END_CAPACITY, c->pc);
	return GO_ON;
}

/* Walks from the frame in @c outwards. */
static enum outcome walk(struct capture *c)
{
	if (!c->memo && !c->skip && !c->mark && !c->sps)
		walk_ordinary_plain(c);
	for (;;) {
		enum outcome out;
		uint64_t rule, pc = meant_pc(c->pc);

		/*
		 * The slot holds a marker, and the true address may be put back into it at any
		 * time. So the memo must not compare the word in the slot.
		 */
		if (unlikely(pc != c->pc)) {
			c->pc = c->raw = pc;
			c->slot = 0;
		}
		if (c->memo && !c->skip && memo_meet(&c->w, c->pc, c->sp, c->fp))
			out = add_met(c, &rule);
		else
			out = add_new(c, &rule);
		if (out != GO_ON) {
			if (out == PROBED)
				out = pass_probed(c);
			if (out != GO_ON)
				return out;
			continue;
		}
		walk_record_use(c, rule);
		out = step(c, rule);
		if (out != GO_ON)
			return out;
		/*
		 * The fast loops can't handle frames without a slot, frames with marks, frames to be
		 * left out, or stack pointers that are to be stored.
		 */
		if (!c->slot || c->mark || c->skip || c->sps)
			continue;
		if (c->memo)
			walk_ordinary_memo(c);
		else
			walk_ordinary_plain(c);
	}
}

/*
 * Walks again from @cur with all registers, because a rule needed a register that the
 * fast loop does not follow. The frames below @until are the library's own.
 */
static void walk_full(struct capture *c, struct cursor *cur, uint64_t until)
{
	const struct view *v = calling_thread_view(&c->calling, true);
	uint8_t mark;
	int err;

	walk_forget(c);
	/* Step out of the library's own frames first. */
	while (cur->regs.r[v->m->sp] < until) {
		err = cursor_step(v, cur, &mark);
		if (err) {
			walk_finish(c, SHSTK_END_NO_REGISTER, 0);
			return;
		}
	}
	for (;;) {
		if (!walk_append(c, cur->regs.r[REG_PC], cur->regs.r[v->m->sp], cur->mark)) {
			walk_finish(c, SHSTK_END_CAPACITY, cur->regs.r[REG_PC]);
			return;
		}
		if (step_cursor(c, v, cur) != GO_ON)
			return;
		if (!calling_thread_is_code(cur->regs.r[REG_PC] - 1) &&
		    !calling_thread_is_probe_return(&c->calling, cur->regs.r[REG_PC])) {
			walk_finish(c, SHSTK_END_BAD_PC, cur->regs.r[REG_PC]);
			return;
		}
	}
}

/* ---- Beginning and end of a capture ---- */

void walk_begin(struct capture *c, const struct request *r)
{
	struct thread *t = c->calling.t;
	uint64_t sp = c->sp;

	enter_after_jump(t, sp);
	c->calling.outermost = enter(t, sp);
	c->crossed = false;
	c->go_g0_sp = 0;
	c->pcs = r->pcs;
	c->marks = r->marks;
	c->sps = r->sps;
	c->max = r->max;
	c->skip = r->skip;
	c->n = 0;
	c->mark = 0;
	c->reused = 0;
	c->guessed = 0;
	c->memo = false;
	c->waits = false;
	c->joined = false;
	c->probed_returns = 0;
	c->end_by_rule = false;
	if (unlikely(r->check))
		calling_thread_check_stack(t, sp);
	if (unlikely(modmap_loads_changed()))
		modmap_revalidate();
	c->number = rulecache_number();
	c->gen = rulecache_gen_of(c->number);
	if (c->calling.outermost && r->sources & SHSTK_USE_MEMO)
		walk_open_memo(c);
}

/* Tells whether the memo's last trace is just the trace of this capture, which has all frames. */
static bool is_in_memo(const struct capture *c)
{
	const struct memo *m = &c->calling.t->memo;
	const struct memo_side *s = &m->side[m->last];

	return c->memo && !c->crossed && c->end != SHSTK_END_CAPACITY && c->n &&
	       s->end - s->first == (int)c->n;
}

/* Returns the identity of the trace, from the memo if the trace is in it. */
static uint64_t trace_id(const struct capture *c)
{
	struct memo_side *s = &c->calling.t->memo.side[c->calling.t->memo.last];

	return is_in_memo(c) ? memo_id(s, s->first) : shstk_trace_id(c->pcs, c->n);
}

/* Lets a place keep the trace, if one is to. */
static void keep(const struct capture *c, const struct call *call)
{
	struct thread *t = c->calling.t;
	struct memo_side *s = t->memo.now;

	if (call && call->keep && s && is_in_memo(c))
		place_keep(t->places, call->keep, call, s, s->first,
			   call->hook ? memo_id(s, s->first) : 0, modmap_state_seen(c->number));
}

int walk_end(struct capture *c, const struct request *r)
{
	struct thread *t = c->calling.t;

	walk_store_memo(c);
	if (r->hook)
		call_tell_hook(r->hook, trace_id(c), c->end, c->crossed);
	keep(c, r->call);
	enter_count(t, c->reused);
	leave(t, c->calling.outermost);
	modmap_tidy(c->calling.outermost);
	if (r->info)
		call_tell(r->info, 0, c->n, c->end, c->end_pc, c->reused, c->guessed);
	return c->n;
}

/* Resets the capture to a state with nothing written, before it is walked again. */
static void restart(struct capture *c, const struct request *r)
{
	c->n = 0;
	c->skip = r->skip;
	c->guessed = 0;
	c->reused = 0;
}

/* Walks again from this function, and leaves the library's own frames, below @until, out. */
static __attribute__((noinline)) void again_from_here(struct capture *c, const struct request *r,
						      uint64_t until)
{
	struct cursor cur = { .mark = 0 };

	native_here(&cur.regs);
	cur.exact = true;
	restart(c, r);
	walk_full(c, &cur, until);
}

void walk_from_caller(struct capture *c, const struct request *r)
{
	uint64_t sp = c->sp;

	if (unlikely(!calling_thread_find_stack(&c->calling, sp))) {
		walk_finish(c, SHSTK_END_BAD_STACK, c->pc);
		c->memo = false;
		return;
	}
	walk_restart_memo(c);
	if (unlikely(walk(c) == NEED_FULL))
		again_from_here(c, r, sp);
}

void walk_context_cursor(struct cursor *cur, const void *ucontext)
{
	memset(cur, 0, sizeof(*cur));
	cur->exact = true;
	cur->innermost = true;
	cur->mark = SHSTK_MARK_PC;
	native_context(ucontext, &cur->regs);
	meant_regs(&cur->regs);
}

void walk_from_context(struct capture *c, const struct request *r, const void *ucontext,
		       struct cursor *cur)
{
	const struct view *v = calling_thread_view(&c->calling, false);
	uint64_t sp = c->sp;
	enum outcome out;

	if (!walk_append(c, c->pc, c->sp, SHSTK_MARK_PC)) {
		walk_finish(c, SHSTK_END_CAPACITY, c->pc);
		c->memo = false;
		return;
	}
	if (c->sp & 7 || !calling_thread_find_stack(&c->calling, sp)) {
		walk_finish(c, SHSTK_END_BAD_STACK, c->pc);
		c->memo = false;
		return;
	}
	walk_restart_memo(c);
	out = step_cursor(c, v, cur);
	if (out == GO_ON)
		out = take_cursor(c, cur, NULL);
	if (out == GO_ON)
		out = walk(c);
	if (out != NEED_FULL)
		return;
	walk_context_cursor(cur, ucontext);
	restart(c, r);
	if (calling_thread_find_stack(&c->calling, sp))
		walk_full(c, cur, 0);
}
