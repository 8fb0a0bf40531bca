// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * walk_memo.c - takes frames from the thread's last trace in a walk, and stores the new
 * trace; see walk.h.
 */
#include "modmap.h"
#include "rulecache.h"
#include "walk.h"

/* Tells whether the step out of the frame at @pc restores fp without using it. */
static bool restores_fp(uint64_t pc)
{
	uint64_t rule = rulecache_get(pc, rulecache_gen(), load_relaxed(&rulecache.mask));

	return RULE_KIND(rule) == RULE_SP && rule & RULE_FP_SAVED;
}

/* Returns the address from which the word @val was read last, stripped if @strip; or 0. */
static uint64_t read_from(const struct step_reads *r, uint64_t val, bool strip)
{
	unsigned int i;

	for (i = r->n; i--;)
		if ((strip ? native_strip(r->word[i].val) : r->word[i].val) == val)
			return r->word[i].addr;
	return 0;
}

void walk_note_step(struct capture *c, uint64_t fp, const struct step_reads *reads)
{
	struct memo_walk *w = &c->w;
	uint64_t slot, fp_slot = 0;
	unsigned int i;

	slot = reads && w->fresh->end > w->fresh->first ? read_from(reads, c->pc, true) : 0;
	if (slot && c->fp != fp) {
		fp_slot = read_from(reads, c->fp, false);
		if (!fp_slot && !c->fp)
			fp_slot = (uintptr_t)&memo_no_fp;
	}
	if (!slot || (c->fp != fp && !fp_slot)) {
		memo_restored_fp(w, w->fresh->end, 0);
		return;
	}
	for (i = 0; i < reads->n; i++) {
		if (reads->word[i].addr == slot)
			c->raw = reads->word[i].val;
		if (!memo_add_word(w, reads->word[i].addr, reads->word[i].val, c->mark)) {
			walk_forget(c);
			return;
		}
	}
	c->slot = slot;
	if (c->fp != fp)
		memo_restored_fp(w, w->fresh->end, fp_slot);
}

/*
 * Adds the marks of the frames @j + 1 to @v of the last trace, which are about to be entries of the
 * capture. @x: the first word behind frame @j.
 */
static void add_marks(struct capture *c, const struct memo_word *x, int j, int v)
{
	int last = j;

	if (unlikely(c->marks != NULL))
		memset(c->marks + c->n, 0, v - j);
	for (; unlikely(x->frame <= v); x++) {
		if (unlikely(c->marks != NULL))
			c->marks[c->n + (x->frame - j - 1)] = x->mark;
		if (x->mark & SHSTK_MARK_GUESS && x->frame != last)
			c->guessed++;
		last = x->frame;
	}
}

enum outcome walk_reuse(struct capture *c)
{
	const struct memo_side *old = c->w.old;
	int j = c->w.met;
	int v = memo_verify(&c->w, c->pcs + c->n, c->max - c->n);
	const struct memo_word *words = old->word + c->w.old_word;
	int taken = j;

	if ((v == old->end - 1 && c->calling.t->memo.complete) ||
	    (v < old->end - 1 && c->n + (v - j) == c->max && memo_goes_on(&c->w, v))) {
		add_marks(c, words, j, v);
		c->n += v - j;
		c->reused += v - j;
		c->joined = true;
		if (v < old->end - 1)
			return walk_finish(c, SHSTK_END_CAPACITY, native_strip(old->raw[v + 1]));
		return walk_finish(c, SHSTK_END_COMPLETE, c->pcs[c->n - 1]);
	}
	if (v > j)
		taken = memo_take(&c->w, v, &c->fp, restores_fp);
	if (taken < 0) {
		walk_forget(c);
		return GO_ON;
	}
	if (taken == j) {
		c->w.met++;
		return GO_ON;
	}
	add_marks(c, words, j, taken);
	c->n += taken - j;
	c->reused += taken - j;
	c->sp = old->anchor + old->sp[taken];
	c->raw = old->raw[taken];
	c->pc = native_strip(c->raw);
	return GO_ON;
}

/*
 * Judges whether the memo pays. Storing a trace in it costs about as much as walking a quarter
 * of its new frames and 16 more. A capture that reused fewer frames than that is a miss. After the
 * second miss in a row one capture goes without the memo, and after each further miss twice as many
 * plus one, up to 31.
 *
 * The first capture after such a pause is compared with an old trace, and may be a miss for that
 * reason alone. So there is no pause after the ninth miss, and the next capture is compared with
 * the one just before it.
 */
static void judge_memo(struct capture *c)
{
	struct memo *m = &c->calling.t->memo;

	if (4 * c->reused >= 64 + (c->n - c->reused)) {
		m->misses = 0;
		return;
	}
	if (++m->misses == 9) {
		m->misses = 5;
		m->wait = 0;
		return;
	}
	m->wait = (1 << (min(m->misses, 6) - 1)) - 1;
}

/* Ends the pause without the memo if two traces in a row begin alike. */
static inline void note_trace(struct capture *c)
{
	struct memo *m = &c->calling.t->memo;
	uint64_t key = c->place + c->n;

	if (c->n > 4)
		key += c->pcs[1] * 3 + c->pcs[2] * 5 + c->pcs[4] * 7;
	if (m->wait_key == key)
		m->wait = 0;
	m->wait_key = key;
}

void walk_store_memo(struct capture *c)
{
	struct memo *m = &c->calling.t->memo;

	if (c->waits)
		note_trace(c);
	if (!c->memo)
		return;
	judge_memo(c);
	m->number = c->number;
	if (c->joined) {
		memo_join(&c->w);
	} else {
		memo_replace(&c->w);
		m->complete = c->end_by_rule;
	}
	memo_publish(m, c->calling.t->native_known ? c->calling.t->native.hi : 0, c->max,
		     modmap_state_seen(m->number));
	m->near = c->w.fresh->end - c->w.fresh->first <= MEMO_NEAR;
}

void walk_open_memo(struct capture *c)
{
	struct memo *m = &c->calling.t->memo;

	if (m->wait) {
		m->wait--;
		c->waits = true;
		c->place = c->pc * 9 + c->sp;
		return;
	}
	c->memo = true;
	if (unlikely(m->number != c->number))
		memo_clear(m);
}
