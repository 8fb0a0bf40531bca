/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * walk.h - a walk over the calling thread's frames, one after the other.
 *
 * source_walk.c steps over frames of any kind, and walk_ordinary.c over ordinary ones with
 * a handful of instructions each. walk_memo.c is what makes a walk short: it notes the
 * frames, and when one of the thread's last trace is met (same pc, same sp, same fp if a
 * later step uses it), it takes the rest from the memo, reading every word again that the
 * old walk depended on. A walk is a function of its start and the words it reads, so equal
 * words mean an equal walk; the proof is in Documentation/design.rst.
 */
#ifndef SHSTK_WALK_H
#define SHSTK_WALK_H

#include "call.h"
#include "memo.h"
#include "calling_thread.h"

/**
 * struct capture - one capture in progress
 * @own: the thread, and the stack that is walked.
 * @pcs: the caller's arrays.
 * @marks: or NULL.
 * @max: their capacity.
 * @n: entries written.
 * @skip: entries still to be left out.
 * @pc: the frame that comes next, not yet written.
 * @sp: its registers.
 * @fp: see @sp.
 * @slot: where @pc was read; 0: not from a plain slot.
 * @raw: what was read there.
 * @mark: marks of that frame.
 * @gen: generation of the rules in use.
 * @go_g0_sp: see struct cursor.
 * @crossed: it came through a signal frame, or to another stack.
 * @memo: record into (and reuse) the memo.
 * @waits: goes without the memo because that has not paid of late.
 * @place: a number that tells from where, if @waits.
 * @joined: the rest of the trace is that of the last one.
 * @w: the memo's view of this capture.
 * @end: enum shstk_end.
 * @end_by_rule: the outermost frame was known by its rule, not by a word read.
 * @end_pc: see struct shstk_info.
 * @reused: entries verified.
 * @guessed: entries guessed.
 */
struct capture {
	struct own own;
	uint64_t *pcs;
	uint8_t *marks;
	unsigned int max, n, skip;
	uint64_t pc, sp, fp;
	uint64_t slot, raw;
	uint8_t mark;
	uint64_t gen;
	uint64_t go_g0_sp;
	bool crossed, memo, waits, joined;
	uint64_t place;
	struct memo_walk w;
	int end;
	bool end_by_rule;
	uint64_t end_pc;
	unsigned int reused, guessed;
};

/*
 * What a part of a walk came to: a frame from where it goes on; the end of the trace; a
 * rule that needs registers which the walk does not follow.
 */
enum outcome { GO_ON, FINISHED, NEED_FULL };

/* The trace ends, as enum shstk_end says, at @pc. */
static inline enum outcome walk_finish(struct capture *c, int end, uint64_t pc)
{
	c->end = end;
	c->end_pc = pc;
	return FINISHED;
}

/* Write one entry. False: there is no room. */
static inline bool walk_append(struct capture *c, uint64_t pc, uint8_t mark)
{
	if (unlikely(c->skip)) {
		c->skip--;
		return true;
	}
	if (unlikely(c->n == c->max))
		return false;
	if (unlikely(c->marks != NULL))
		c->marks[c->n] = mark;
	if (unlikely(mark & SHSTK_MARK_GUESS))
		c->guessed++;
	c->pcs[c->n++] = pc;
	return true;
}

/*
 * What is noted for the next capture.
 */

/* Nested captures leave the memo alone: an outer one is using it. */
static inline void walk_forget(struct capture *c)
{
	if (c->memo)
		memo_clear(&c->own.t->memo);
	c->memo = false;
}

/* The frame in @c becomes part of the memo. */
static inline void walk_record(struct capture *c)
{
	if (c->memo && !memo_record(&c->w, c->raw, c->slot, c->sp))
		walk_forget(c);
}

/* Its step, by @rule, may use fp. */
static inline void walk_record_use(struct capture *c, uint64_t rule)
{
	if (c->memo && rule & (RULE_SPECIAL | RULE_FP) && RULE_KIND(rule) != RULE_END)
		memo_use_fp(&c->w, c->w.fresh->end - 1, c->fp);
}

/* Frames so far belong to another stack or a signal handler: leave them out. */
static inline void walk_restart_memo(struct capture *c)
{
	if (c->memo)
		memo_start(&c->w, &c->own.t->memo, c->own.stack.hi);
}

/*
 * The frame in @c is frame @c->w.met of the memo, and written: take over what is unchanged
 * behind it. GO_ON: the frame in @c, written, is the last one that was.
 */
enum outcome walk_reuse(struct capture *c);

/* Before a walk: may the last trace be used at all? After it: it is the last trace. */
void walk_open_memo(struct capture *c);
void walk_store_memo(struct capture *c);

/*
 * Write and leave frames as long as they are ordinary: nothing but additions and loads,
 * as few of them as can be between one return address and the next. Comes back with the
 * first frame in @c that is not, not yet written, or that the memo may have.
 */
void walk_ordinary_memo(struct capture *c);
void walk_ordinary_plain(struct capture *c);

/* A capture begins, whose trace is to be walked. */
void walk_begin(struct capture *c, const struct request *r);

/* It is over. Returns the number of entries. */
int walk_end(struct capture *c, const struct request *r);

/*
 * Walk from the frame in @c, which is that of a function of the library's caller; between
 * walk_begin() and walk_end().
 */
void walk_from_caller(struct capture *c, const struct request *r);

/* The same from interrupted code, with all registers: @cur, by walk_context_cursor(). */
void walk_from_context(struct capture *c, const struct request *r, const void *ucontext,
		       struct cursor *cur);

/* The frame of interrupted code. */
void walk_context_cursor(struct cursor *cur, const void *ucontext);

#endif
