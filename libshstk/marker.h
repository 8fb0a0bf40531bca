/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marker.h - marked return addresses: a capture that meets one copies what was
 * found above it. See Documentation/markers.rst.
 *
 * The state is the thread's own. It is written by captures that interrupt no other
 * one, on the thread's native stack; what handlers do is said at each function.
 */
#ifndef SHSTK_MARKER_H
#define SHSTK_MARKER_H

#include "rulecache.h"
#include "trampoline.h"

#define MARKER_CHUNK 32		/* trampolines of a thread, a power of two */
#define MARKER_EACH (MARKER_CHUNK - TRAMPOLINE_HEADER)	/* those in use */
#define MARKER_MAX 22		/* markers on a stack at a time */
#define MARKER_LOST 8		/* frames left without a return before giving up */
#define MARKER_ROOM 16384	/* entries of a trace */
#define MARKER_NEAR 2		/* distance from the youngest frame: at least */
#define MARKER_GAP 8		/* so much further, and another one is placed */
#define MARKER_DENSE 16		/* so many so near to each other */
#define MARKER_PLAIN 24		/* young frames without a frame pointer: at most */
#define MARKER_BULK 6		/* so many new frames are kept, whatever became of others */
#define MARKER_BARE 16		/* so far to a marker, and a trail is not worth it */
#define MARKER_DEAR 16u		/* captures that the memo makes faster: in a row, or so */
#define MARKER_NAP 4096u		/* captures before markers are tried again: at most */
#define MARKER_AWAKE UINT64_MAX
#define MARKER_WORTH 64		/* frames that a marker has to save */
#define MARKER_BASE 16		/* captures that end at the outermost marker: at least */
#define MARKER_RECORDS 1024	/* return addresses into code with frame pointers */
#define MARKER_RULES 128	/* ... and into other code */

/**
 * struct mark - one marker on the stack
 * @slot: where it lies.
 * @value: what was written there.
 * @raw: what was there before.
 * @hash: identity of the trace from the marked frame outwards, if @hashed.
 * @at: first entry of that trace in the thread's array.
 * @uses: captures that ended at it, up to when it was not the youngest any more.
 * @far: no marker can be put further out than so many frames from where the
 *	capture was made that placed it.
 * @record: its trampoline, from the first of the thread's chunk.
 * @hashed: see @hash.
 * @base: there are none further out, nor can be.
 */
struct mark {
	uint64_t slot;
	uint64_t value;
	uint64_t raw;
	uint64_t hash;
	int32_t at;
	uint32_t uses;
	uint32_t far;
	uint8_t record;
	bool hashed;
	bool base;
} __attribute__((aligned(64)));

/**
 * struct frame - one with a frame record, as a walk came to it
 * @fp: its frame pointer: where the next one's frame pointer and pc are.
 * @raw: its pc, as it was read.
 */
struct frame {
	uint64_t fp;
	uint64_t raw;
};

/**
 * struct marker_rule - the rule for a return address, as the thread last found it
 * @pc: the return address.
 * @rule: its rule, an ordinary one.
 */
struct marker_rule {
	uint64_t pc;
	uint64_t rule;
};

/**
 * struct markers - a thread's markers
 * @epoch: of the process-wide switch, as last seen.
 * @rest: the same if there are no markers and none to be placed; else not it.
 * @asked: this thread's own switch: SHSTK_MARKERS_* or 0.
 * @on: place some.
 * @off: enum shstk_markers_off.
 * @plain: the last walk without a marker met too many frames without frame
 *	pointers: what serves until the next marker is the memo.
 * @n: number of @mark.
 * @near: so many young frames, and another marker is placed.
 * @probe: when the thread has made so many captures, a nearer one is tried.
 * @since: so many when the youngest one became that.
 * @ra: return address of the capture that begins.
 * @young: first frame of the trail.
 * @stop: the frame of the youngest marker in it; @young if there is no trail.
 * @half: see marker_out().
 * @end: of @pcs.
 * @due: if @young is this or before it, another marker is placed.
 * @simple: the first word of options that ask for nothing special.
 * @again_sp: stack pointer of the last capture, if the trail was its trace and all
 *	was as it had been before; else 0.
 * @again_ra: the capture's return address.
 * @again: its trace, in @pcs.
 * @again_n: entries of that.
 * @records: return addresses whose rule is native_is_record(), at their lowest
 *	bits.
 * @rules: rules for others.
 * @gen: generation of those two.
 * @pcs: MARKER_ROOM entries; traces end at its end.
 * @frames: the frames of these entries, where they are known; behind them is
 *	marker_fresh().
 * @known: behind the last known one.
 * @none: in the place of @frames while there are none.
 * @bare: the marker is so near, or so little is found again, that no trail is kept.
 * @bare_near: the lesser of @near and MARKER_BARE + 1.
 * @quick_limit: the frame that leads to the youngest marker, if @bare; else 0.
 * @quick_value: that marker.
 * @quick_rest: entries from there on.
 * @quick_out: the first of them.
 * @bare_fp: frame pointer of the last capture that kept none; one more if there were
 *	two such in a row.
 * @bulk: captures made when a long trail was kept last.
 * @bulk_miss: how often in a row that was in vain.
 * @bulk_wait: long ones to come that are not kept.
 * @mark: markers on the native stack, oldest first, from index 1 on.
 * @chunk: first of the thread's trampolines; 0: none so far.
 * @next: where to look for a free one.
 * @used: those that are in @mark or lost.
 * @lost: those whose frame was left without returning through them.
 * @dist: how far from the youngest frame the next one goes.
 * @good: markers in a row that were worth it.
 * @poor: the last one was not.
 * @misses: markers in a row that were not, as far out as they may be.
 * @wait: captures that go without.
 * @patience: what @left starts from.
 * @dear: captures that the memo would have made faster, from @dear_since on.
 * @dear_since: captures made then.
 * @nap: captures that pass without markers after too many such.
 * @asleep: none is placed until the thread has made so many captures; MARKER_AWAKE.
 */
struct markers {
	uint32_t epoch;
	uint32_t rest;
	uint8_t asked;
	bool on;
	uint8_t off;
	bool plain;
	int n;
	int near;
	uint64_t ra;
	uint64_t simple;
	uint64_t again_sp;
	uint64_t again_ra;
	uint64_t *again;
	int again_n;
	uint64_t gen;
	struct frame *young;
	struct frame *stop;
	struct frame *due;
	uint64_t half;
	uint64_t *end;
	uint64_t probe;
	uint64_t since;
	uint64_t *pcs;
	struct frame *frames;
	struct frame *known;
	struct frame none;
	bool bare;
	int bare_near;
	uint64_t quick_limit;
	uint64_t quick_value;
	int64_t quick_rest;
	const uint64_t *quick_out;
	uint64_t bare_fp;
	uint64_t bulk;
	unsigned int bulk_miss;
	unsigned int bulk_wait;
	struct mark mark[MARKER_MAX + 1];
	unsigned int chunk;
	unsigned int next;
	uint32_t used;
	uint32_t lost;
	unsigned int dist;
	unsigned int good;
	bool poor;
	unsigned int misses;
	unsigned int wait;
	int patience;
	unsigned int dear;
	unsigned int nap;
	uint64_t dear_since;
	uint64_t asleep;
	uint64_t records[MARKER_RECORDS];
	struct marker_rule rules[MARKER_RULES];
};

/* The process-wide switch; @epoch goes up with each change. */
struct marker_switch {
	uint32_t epoch;
	bool on;
};

extern struct marker_switch marker_switch __attribute__((visibility("hidden")));

struct thread;

/* Does @pc lead into code that keeps a frame pointer? It lies in one of two places. */
static inline bool marker_is_record(const struct markers *m, uint64_t pc)
{
	uint64_t at = pc >> NATIVE_CODE_SHIFT & (MARKER_RECORDS - 1);

	return likely(m->records[at] == pc) || m->records[at ^ 1] == pc;
}

static inline struct marker_rule *marker_rule_at(struct markers *m, uint64_t pc)
{
	return &m->rules[pc >> NATIVE_CODE_SHIFT & (MARKER_RULES - 1)];
}

/*
 * The entry of a frame. Frames are twice as large, so that this is half the address
 * and a constant.
 */
static inline uint64_t *marker_out(const struct markers *m, const struct frame *f)
{
	return (uint64_t *)(((uintptr_t)f >> 1) + m->half);
}

/* The frames that a walk is coming by. */
static inline struct frame *marker_fresh(const struct markers *m)
{
	return m->frames + MARKER_ROOM + 1;
}

/* The trail is not what it was. */
static inline void marker_not_again(struct markers *m)
{
	store_relaxed(&m->again_sp, 0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* After a change of @n, or: is @bare so? */
static inline void marker_set_bare(struct markers *m, bool bare)
{
	const struct mark *k = &m->mark[m->n];

	m->bare = bare;
	m->quick_limit = 0;
	if (!bare || !m->n)
		return;
	m->quick_value = k->value;
	m->quick_rest = MARKER_ROOM - k->at;
	m->quick_out = m->pcs + k->at;
	m->quick_limit = k->slot - 8;
}

/* There are new rules: @gen. */
void marker_forget_rules(struct markers *m, uint64_t gen);

static inline void marker_new_rules(struct markers *m)
{
	if (unlikely(m->gen != rulecache_gen()))
		marker_forget_rules(m, rulecache_gen());
}

/*
 * The rule for @pc, RULE_NONE if there is none. Remembers ordinary ones where
 * marker_is_record() and marker_rule_at() look.
 */
uint64_t marker_rule(struct thread *t, uint64_t pc);

/* Nothing is on the stack, nobody asked. */
void markers_reset(struct markers *m);

/*
 * Put all true return addresses back, seen from stack pointer @sp. May be called
 * in a handler, if it does not interrupt a capture: no trampoline gets another
 * use before the interrupted code has gone on.
 */
void markers_take_back(struct thread *t, uint64_t sp);

/**
 * struct trail - a walk over ordinary frames of the native stack
 * @pc: the frame it has come to.
 * @raw: what was read at @slot.
 * @slot: where @pc was read; 0: at the start.
 * @sp: the frame's registers.
 * @fp: see @sp.
 * @hi: end of the stack.
 */
struct trail {
	uint64_t pc, raw, slot, sp, fp, hi;
};

/* Leave a frame by @rule. False: it is not ordinary. */
static inline __attribute__((always_inline)) no_sanitize
bool trail_step(struct trail *w, uint64_t rule)
{
	uint64_t cfa, slot;

	if (unlikely((rule & (RULE_SPECIAL | RULE_RA_SAVED)) != RULE_RA_SAVED))
		return false;
	cfa = (rule & RULE_FP ? w->fp : w->sp) + rule_cfa_off(rule);
	slot = cfa + native_ra_off(rule);
	if (unlikely(slot - w->sp >= w->hi - w->sp || slot & 7 ||
		     native_beyond(cfa, w->hi)))
		return false;
	if (rule & RULE_FP_SAVED) {
		uint64_t addr = cfa + rule_fp_off(rule);

		if (unlikely(addr - w->sp >= w->hi - w->sp))
			return false;
		w->fp = *(const volatile uint64_t *)(uintptr_t)addr;
	}
	w->slot = slot;
	w->raw = *(const volatile uint64_t *)(uintptr_t)slot;
	w->pc = native_strip(w->raw);
	w->sp = cfa;
	return true;
}

/* Put the true return address back in the place of one marker, if it is of @m. */
void marker_give_back(struct markers *m, const struct trampoline *r);

/*
 * A walk came to a marker, but not to the youngest: frames were left. The mark that
 * it is, if it is one of ours.
 */
const struct mark *marker_older(struct thread *t, uint64_t slot, uint64_t raw);

/*
 * Was the youngest marker returned through? Then it is dropped, and those behind it if
 * they were too.
 */
bool marker_returned(struct thread *t);

/* A walk came to @slot without meeting any marker: there are none before it. */
void marker_passed(struct thread *t, uint64_t slot);

/*
 * A capture, of which @pcs is the result, met the youngest marker behind @n frames,
 * @far of which a marker may be put behind: is a nearer one due?
 */
void marker_met(struct thread *t, const uint64_t *pcs, int n, int far, uint64_t sp,
		uint64_t fp);

/* The same; the result is the trail. */
void marker_met_trail(struct thread *t);

/*
 * A walk over @n frames, those in marker_fresh(), whose addresses are @pcs, came to the
 * youngest marker, with frame pointer @fp: this is the trail, if it is worth it.
 */
bool marker_keep(struct thread *t, const uint64_t *pcs, int n, uint64_t fp);

/* After a capture that met @n new frames before the trail. */
void marker_bulk(struct thread *t, int n);

/*
 * A capture walked all the way: @pcs is the whole trace. No marker that there may
 * have been is on the stack. Place one, if that may pay, behind @far frames at most,
 * of which the first @records have frame records.
 */
void marker_consider(struct thread *t, const uint64_t *pcs, int n, int far, int records,
		     uint64_t raw, uint64_t sp, uint64_t fp);

/* Of the trace that begins with @n new entries, @pcs, and goes on at @k. */
uint64_t marker_identity(struct markers *m, struct mark *k, const uint64_t *pcs,
			 int n);

/* Place some? Looks at the switches again if they were changed. */
bool markers_on(struct markers *m);

/*
 * Captures by markers were dear. If that was so most of the time, there are to be none
 * for a while.
 */
bool marker_sleep(struct thread *t);

/* The while is over. */
void marker_wake(struct markers *m);

/* Is there any use in looking for markers? */
static inline bool markers_at_work(const struct markers *m)
{
	return unlikely(m->rest != load_relaxed(&marker_switch.epoch));
}

/* After a change of @on, @asleep or @n. */
static inline void markers_set_rest(struct markers *m)
{
	bool place = m->on && m->asleep == MARKER_AWAKE;

	m->rest = place || m->n ? ~m->epoch : m->epoch;
}

/* Did a switch change since the thread looked at them? */
static inline bool markers_stale(const struct markers *m)
{
	return m->epoch != load_relaxed(&marker_switch.epoch);
}

#endif
