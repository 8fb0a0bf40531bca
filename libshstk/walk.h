/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * walk.h - a walk over the calling thread's frames, one after the other.
 *
 * source_walk.c steps over frames of any kind, and walk_ordinary.c over ordinary frames with
 * a handful of instructions each. walk_memo.c makes walks short: it notes the frames, and
 * when the walk meets a frame of the thread's last trace (same pc, same sp, and same fp if a
 * later step uses it), it takes the rest from the memo, after it has read again every word
 * that the old walk depended on. A walk is a function of its start and of the words it reads,
 * so equal words mean an equal walk; the proof is in Documentation/design.rst.
 */
#ifndef SHSTK_WALK_H
#define SHSTK_WALK_H

#include "call.h"
#include "memo.h"
#include "calling_thread.h"

/**
 * struct capture - one capture in progress
 * @calling: the thread, and the stack that is walked.
 * @pcs: the caller's array of entries.
 * @marks: the caller's array of marks, or NULL.
 * @sps: the caller's array of stack pointers, or NULL; the memo is not used if there is one.
 * @max: capacity of @pcs, @marks and @sps, in entries.
 * @n: number of entries written.
 * @skip: number of entries still to be left out.
 * @pc: program counter of the frame that comes next, which is not written yet.
 * @sp: stack pointer of that frame.
 * @fp: frame pointer of that frame.
 * @slot: address of the stack slot that @pc was read from; 0 if it is not from a slot.
 * @raw: the word that was read from @slot.
 * @mark: marks of the frame that comes next.
 * @number: number of the generation of the unwind rules in use.
 * @gen: that generation, as it is in keys of the cache of rules.
 * @go_g0_sp: where the thread's own stack continues below the next call of Go by C, or 0; as
 *	in struct cursor.
 * @crossed: the walk came through a signal frame, or to another stack.
 * @memo: the capture records into the memo, and reuses it.
 * @waits: the capture does not use the memo, because that has not paid recently.
 * @probed_returns: number of probed returns whose caller was looked for.
 * @place: if @waits, a number that identifies the frame where the capture began.
 * @joined: the rest of the trace is the same as in the last trace.
 * @w: the capture's view of the memo.
 * @end: enum shstk_end.
 * @end_by_rule: the outermost frame was recognised by its rule, not by a word that was read.
 * @end_pc: the address at which the trace ended, as in struct shstk_info.
 * @reused: number of entries that were verified.
 * @guessed: number of entries that were guessed.
 */
struct capture {
	struct calling_thread calling;
	uint64_t *pcs;
	uint8_t *marks;
	uint64_t *sps;
	unsigned int max, n, skip;
	uint64_t pc, sp, fp;
	uint64_t slot, raw;
	uint8_t mark;
	uint64_t number;
	uint64_t gen;
	uint64_t go_g0_sp;
	bool crossed, memo, waits, joined;
	uint8_t probed_returns;
	uint64_t place;
	struct memo_walk w;
	int end;
	bool end_by_rule;
	uint64_t end_pc;
	unsigned int reused, guessed;
};

/*
 * The result of a part of a walk. GO_ON: the walk continues at the frame in struct capture.
 * FINISHED: the trace has ended. NEED_FULL: a rule needs registers that the walk does not follow.
 * PROBED: that frame is the kernel's trampoline for probed returns.
 */
enum outcome { GO_ON, FINISHED, NEED_FULL, PROBED };

/* Ends the trace at @pc with @end, an enum shstk_end. Returns FINISHED. */
static inline enum outcome walk_finish(struct capture *c, int end, uint64_t pc)
{
	c->end = end;
	c->end_pc = pc;
	return FINISHED;
}

/*
 * Writes one entry, whose frame has the stack pointer @sp, or leaves it out while @c->skip is not 0.
 * Returns false if there is no room.
 */
static inline bool walk_append(struct capture *c, uint64_t pc, uint64_t sp, uint8_t mark)
{
	if (unlikely(c->skip)) {
		c->skip--;
		return true;
	}
	if (unlikely(c->n == c->max))
		return false;
	if (unlikely(c->marks != NULL))
		c->marks[c->n] = mark;
	if (unlikely(c->sps != NULL))
		c->sps[c->n] = sp;
	if (unlikely(mark & SHSTK_MARK_GUESS))
		c->guessed++;
	c->pcs[c->n++] = pc;
	return true;
}

/* ---- What a capture notes for the next one ---- */

/* Clears the memo and stops using it. A nested capture has no @c->memo: an outer one uses it. */
static inline void walk_forget(struct capture *c)
{
	if (c->memo)
		memo_clear(&c->calling.t->memo);
	c->memo = false;
}

/* Adds the frame in @c to the memo. */
static inline void walk_record(struct capture *c)
{
	if (c->memo && !memo_record(&c->w, c->raw, c->slot, c->sp))
		walk_forget(c);
}

/* Notes if the step out of the frame in @c, by @rule, uses the frame pointer. */
static inline void walk_record_use(struct capture *c, uint64_t rule)
{
	if (c->memo && rule & (RULE_SPECIAL | RULE_FP) && RULE_KIND(rule) != RULE_END)
		memo_use_fp(&c->w, c->w.fresh->end - 1, c->fp);
}

/*
 * Starts the memo's trace again with the next frame: the frames so far belong to another stack or
 * to a signal handler, or the last of them has no rule, and are left out.
 */
static inline void walk_restart_memo(struct capture *c)
{
	if (c->memo)
		memo_start(&c->w, &c->calling.t->memo, c->calling.stack.hi);
}

/*
 * Takes the unchanged frames from the memo. The frame in @c is written, and is frame @c->w.met of
 * the memo. If it returns GO_ON, the frame in @c is the last one that was taken; its entry is
 * written, and the walk continues from it.
 */
enum outcome walk_reuse(struct capture *c);

/*
 * Notes how the walk came to the next frame, which is in @c, by a step that no simple rule
 * describes.
 * @fp: frame pointer of the frame that was left. @reads: what the step has read, or NULL if that is
 * not known.
 */
void walk_note_step(struct capture *c, uint64_t fp, const struct step_reads *reads);

/* Decides before a walk whether the capture uses the memo, and sets @c->memo. */
void walk_open_memo(struct capture *c);

/* Makes the trace that was walked the last trace of the memo, if the capture uses the memo. */
void walk_store_memo(struct capture *c);

/*
 * These functions write frames and step out of them as long as the frames are ordinary. This takes
 * only additions and loads, and as few as possible between one return address and the next. They
 * return with the first frame in @c that is not ordinary or that the memo may have; it is not
 * written yet. walk_ordinary_memo() records into the memo, walk_ordinary_plain() does not.
 */
void walk_ordinary_memo(struct capture *c);
void walk_ordinary_plain(struct capture *c);

/* Begins a capture whose trace is to be walked. */
void walk_begin(struct capture *c, const struct request *r);

/* Ends a capture. Returns the number of entries. */
int walk_end(struct capture *c, const struct request *r);

/*
 * Walks from the frame in @c, which belongs to the function that called the library. To be called
 * between walk_begin() and walk_end().
 */
void walk_from_caller(struct capture *c, const struct request *r);

/*
 * Walks from interrupted code, with all its registers. @cur: the frame of that code, from
 * walk_context_cursor(). To be called between walk_begin() and walk_end().
 */
void walk_from_context(struct capture *c, const struct request *r, const void *ucontext,
		       struct cursor *cur);

/* Makes @cur the frame of the code that a signal interrupted, by the handler's @ucontext. */
void walk_context_cursor(struct cursor *cur, const void *ucontext);

#endif
