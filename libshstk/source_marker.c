// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_marker.c - walk to the nearest marker, copy what was found behind it; place the
 * next one. See source_marker.h and Documentation/markers.rst.
 *
 * A marker counts only if a walk comes to its slot and finds it there: then the frame is
 * the one that was marked, and all frames further out have been waiting since. So
 * longjmp() and the like need not be noticed. What must be known is when a trampoline may
 * have another use: if it was returned through (it says so), or its slot was given the
 * true address again. Of frames that were left in another way a copy might come back;
 * their trampolines are never used again.
 */
#include "source_marker.h"

#if HAVE_TRAMPOLINE
#include <errno.h>
#include <sys/mman.h>

#include "capture_general.h"
#include "frame.h"
#include "identity.h"
#include "modmap.h"
#include "source_memo.h"
#include "source_near.h"

#define NEAREST 2 /* youngest frames that get none: they may read their return address */
#define FEWEST (2 * NEAREST) /* frames of which one may get one */
#define PRICE 512 /* frames that captures walk for each marker that is placed, */
#define PART 16 /* and for each frame in front of it */
#define MAX_BY_RULE 24 /* frames without a record on the way: at most */
#define ENTRIES_PER_RULE 25 /* entries that the memo compares while one such frame is left */
#define MAX_LOSSES 64 /* captures that the memo makes faster, until ... */
#define PAUSE 4096 /* ... as many are made without markers */
#define COPY_INLINE 8 /* entries that are copied without a call */

/* Chunks of trampolines that were given out, from the first one on. */
static unsigned int chunks;

static struct trampoline *trampoline_at(const struct markers *m, unsigned int i)
{
	return trampoline_of(trampoline_address(m->chunk + i));
}

/*
 * The walk.
 */

/**
 * struct way - how far a walk to a marker has come
 * @pc: the frame that comes next, not yet written.
 * @raw: what was read at @slot.
 * @slot: where @pc was read; 0: it is the first frame.
 * @sp: the frame's registers.
 * @fp: see @sp.
 * @out: behind the last entry written.
 * @start: the first entry.
 * @end: behind the room for them.
 * @by_rule_left: frames that may still be left by another rule than that of a frame record.
 * @first_by_rule: entries in front of the first of these, but for the youngest; -1: none was
 *	met.
 */
struct way {
	uint64_t pc, raw, slot, sp, fp;
	uint64_t *out, *start, *end;
	int by_rule_left, first_by_rule;
};

enum target { TO_MARKER, TO_END, TO_OTHER };

/* Field by field: a copy in wider words would wait for each of them to be stored. */
static inline __attribute__((always_inline)) void way_begin(struct way *w, const struct call *c,
							    uint64_t *out, unsigned int room)
{
	w->pc = native_strip(c->ra);
	w->raw = c->ra;
	w->slot = 0;
	w->sp = c->sp;
	w->fp = c->fp;
	w->out = w->start = out;
	w->end = out + room;
	w->by_rule_left = MAX_BY_RULE;
	w->first_by_rule = -1;
}

static uint64_t *record_place(struct markers *m, uint64_t pc)
{
	return &m->records[pc >> NATIVE_CODE_SHIFT & (MARKER_RECORDS - 1)];
}

/*
 * Over frames that have a frame record: two loads for each, and the checks of a careful
 * loop over frame pointers. Afterwards @w->sp is no more than the frame's.
 */
static inline __attribute__((always_inline)) no_sanitize void
walk_records(struct markers *m, struct way *w, uint64_t hi)
{
	uint64_t pc = w->pc, raw = w->raw, low = w->sp, fp = w->fp;
	const uint64_t limit = hi - 16;
	uint64_t *out = w->out;

	while (likely(*record_place(m, pc) == pc) && likely(out != w->end)) {
		if (unlikely(fp < low || fp > limit || fp & 7))
			break;
		*out++ = pc;
		low = fp + 16;
		raw = *(const stack_word *)(uintptr_t)(fp + 8);
		fp = *(const stack_word *)(uintptr_t)fp;
		pc = native_strip(raw);
	}
	if (out == w->out)
		return;
	w->pc = pc;
	w->raw = raw;
	w->slot = low - 8;
	w->sp = low;
	w->fp = fp;
	w->out = out;
}

/* The rule for @pc, from the cache or found out. */
static uint64_t rule_of(struct thread *t, uint64_t pc)
{
	uint64_t rule = rulecache_get(pc, rulecache_gen(), load_relaxed(&rulecache.mask));

	if (likely(rule != RULE_NONE) || !pc)
		return rule;
	enter_modules(t);
	rule = modmap_rule(pc, false);
	leave_modules(t);
	return rule;
}

/* Over any ordinary frames, to a marker or the outermost frame. All that is written was left. */
static __attribute__((noinline)) no_sanitize enum target walk_on(struct thread *t, struct way *w)
{
	const uint64_t hi = t->native.hi;
	struct frame_exit x;
	uint64_t rule;

	for (;;) {
		const uint64_t *out = w->out;

		walk_records(&t->marker, w, hi);
		if (trampoline_has(w->pc))
			return TO_MARKER;
		if (w->out != out)
			w->sp = native_record_cfa(rule_of(t, w->out[-1]), w->slot - 8);
		if (w->sp > hi || w->out == w->end)
			return TO_OTHER;
		rule = rule_of(t, w->pc);
		if (rule == RULE_NONE && !w->pc && w->out != w->start && frame_zero_ends(w->fp))
			return TO_END;
		if (RULE_KIND(rule) == RULE_END) {
			*w->out++ = w->pc;
			return TO_END;
		}
		if (native_is_record(rule))
			*record_place(&t->marker, w->pc) = w->pc;
		else if (!w->by_rule_left--)
			return TO_OTHER;
		else if (w->first_by_rule < 0 && w->out - w->start >= NEAREST)
			w->first_by_rule = w->out - w->start;
		if (!frame_is_ordinary(rule) || !frame_leave(rule, w->sp - hi, w->fp - hi, &x))
			return TO_OTHER;
		*w->out++ = w->pc;
		if (rule & RULE_FP_SAVED)
			w->fp = frame_word(hi, x.fp);
		w->slot = hi + x.ra;
		w->raw = frame_word(hi, x.ra);
		w->pc = native_strip(w->raw);
		w->sp = hi + x.cfa;
	}
}

/* Is all as it was when the markers were placed, on the thread's own stack? */
static inline bool may_walk(const struct thread *t, const struct call *c)
{
	return likely(t->native_known && range_has(&t->native, c->sp) && modmap_loads_same() &&
		      t->marker.gen == rulecache_gen() &&
		      t->marker.epoch == load_relaxed(&marker_switch.epoch));
}

/*
 * Markers that are gone.
 */

static void turn_off(struct markers *m, int why)
{
	m->on = false;
	m->off = why;
}

/* The youngest marker is no longer of use. */
static void mark_drop(struct markers *m)
{
	const uint32_t bit = 1u << m->mark[m->n].trampoline;

	if (!load_relaxed(&trampoline_at(m, m->mark[m->n].trampoline)->set))
		m->used &= ~bit;
	else
		m->lost |= bit;
	if (__builtin_popcount(m->lost) >= MARKER_LOST)
		turn_off(m, SHSTK_MARKERS_LEFT);
	m->n--;
}

/* A walk came by all slots below @slot, and found no marker: their frames are gone. */
static void mark_drop_below(struct markers *m, uint64_t slot)
{
	while (m->mark[m->n].slot < slot)
		mark_drop(m);
}

/* @w has come to a trampoline's address: is it one of our markers? Then it is the youngest. */
static struct mark *mark_find(struct markers *m, const struct way *w)
{
	struct mark *k;

	mark_drop_below(m, w->slot);
	k = &m->mark[m->n];
	return k->slot == w->slot && k->value == w->raw ? k : NULL;
}

/*
 * The slot gets the true address again if it still has the marker. Another thread may be
 * running there (a coroutine that was started on this stack): only one of the two gets to
 * write.
 */
static no_sanitize bool mark_put_back(const struct mark *k)
{
	uint64_t *slot = (uint64_t *)(uintptr_t)k->slot;
	uint64_t value = k->value;

	return load_relaxed(slot) == value &&
	       __atomic_compare_exchange_n(slot, &value, k->raw, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

void marker_give_back(struct thread *t, uint64_t sp, const struct trampoline *only)
{
	const struct markers *m = &t->marker;
	/* Below the stack pointer memory may not even be there. */
	bool native = t->native_known && range_has(&t->native, sp);
	uint64_t low = native ? sp - NATIVE_RED_ZONE : 0;
	int i;

	for (i = m->n; i > 0; i--) {
		const struct mark *k = &m->mark[i];
		struct trampoline *r = trampoline_at(m, k->trampoline);

		if ((!only || r == only) && load_relaxed(&r->set) && k->slot >= low &&
		    mark_put_back(k))
			store_relaxed(&r->set, false);
	}
}

void marker_take_back(struct thread *t, uint64_t sp)
{
	marker_give_back(t, sp, NULL);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	while (t->marker.n)
		mark_drop(&t->marker);
}

/*
 * Placing.
 */

void marker_reset(struct thread *t)
{
	struct markers *m = &t->marker;
	uint64_t *pcs = m->pcs;
	unsigned int chunk = m->chunk;

	memset(m, 0, sizeof(*m));
	m->pcs = pcs;
	m->chunk = chunk;
	m->off = SHSTK_MARKERS_NOT_ASKED;
	m->frames_to_pay = -MARKER_ADVANCE;
	m->mark[0].slot = UINT64_MAX;
	m->mark[0].at = MARKER_ROOM;
	m->gen = ~rulecache_gen();
}

bool marker_is_on(struct thread *t)
{
	uint32_t epoch = load_relaxed(&marker_switch.epoch);
	struct markers *m = &t->marker;

	if (m->epoch == epoch)
		return m->on;
	m->epoch = epoch;
	if (m->off <= SHSTK_MARKERS_NOT_ASKED) { /* not for good */
		m->on = m->asked ? m->asked == 1 : load_relaxed(&marker_switch.on);
		m->off = m->on ? SHSTK_MARKERS_ON : SHSTK_MARKERS_NOT_ASKED;
	}
	return m->on;
}

/* Place some? Forgets the records if the rules were changed. */
static bool may_place(struct thread *t)
{
	struct markers *m = &t->marker;

	if (m->gen != rulecache_gen()) {
		memset(m->records, 0xff, sizeof(m->records)); /* no address, nor 0 */
		m->gen = rulecache_gen();
	}
	return marker_is_on(t) && m->frames_to_pay <= 0;
}

/* The thread's trampolines and its array, at the first marker. None for a thread too many. */
static bool get_room(struct markers *m)
{
	unsigned int i;
	int saved = errno;
	void *p;

	if (!m->chunk && load_relaxed(&chunks) < TRAMPOLINE_RECORDS / MARKER_CHUNK) {
		i = __atomic_fetch_add(&chunks, 1, __ATOMIC_RELAXED);
		/* Its first ones may be none. */
		if (i < TRAMPOLINE_RECORDS / MARKER_CHUNK)
			m->chunk = i * MARKER_CHUNK + TRAMPOLINE_HEADER;
	}
	if (m->chunk && !m->pcs) {
		p = mmap(NULL, MARKER_ROOM * sizeof(*m->pcs), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		m->pcs = p == MAP_FAILED ? NULL : p;
		errno = saved;
	}
	if (!m->chunk || !m->pcs)
		turn_off(m, SHSTK_MARKERS_NO_ROOM);
	return m->on;
}

/* The free trampoline that was not used for longest: there are more than markers and losses. */
static unsigned int free_trampoline(struct markers *m)
{
	unsigned int i;

	do {
		i = m->next++ % MARKER_EACH;
	} while (m->used & 1u << i);
	return i;
}

_Static_assert(MARKER_EACH >= MARKER_MAX + MARKER_LOST, "one is always free");

/* Mark the frame that @w has come to; its trace begins at entry @at. */
static no_sanitize void mark_put(struct markers *m, const struct way *w, int at)
{
	unsigned int i = free_trampoline(m);
	struct trampoline *r = trampoline_at(m, i);
	struct mark *k = &m->mark[m->n + 1];

	*k = (struct mark){ .slot = w->slot, .raw = w->raw, .at = at, .trampoline = i };
	if (!trampoline_encode(trampoline_address(m->chunk + i), w->raw, w->sp, &k->value))
		return;
	m->used |= 1u << i;
	r->ra = w->pc;
	store_relaxed(&r->set, true);
	/* Handlers find the marker only once all that belongs to it is there. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)(uintptr_t)k->slot = k->value;
}

/* What the C++ ABI says of exceptions: the caught ones, and how many are not. */
struct exceptions {
	void *caught;
	unsigned int uncaught;
};

extern struct exceptions *__cxa_get_globals_fast(void) __attribute__((weak));

/*
 * Does an exception unwind the stack? Its frames are to stay as they are: it has taken the
 * markers back that it will come by (personality.c).
 */
static bool exception_flies(void)
{
	return __cxa_get_globals_fast && __cxa_get_globals_fast()->uncaught;
}

/*
 * Place one on the trace of @c, of which the @n entries before the youngest marker are new:
 * behind @i of these, or in front of the first one without a record, if that is nearer. The
 * price is higher where there are many, so that they last for deep stacks.
 */
static __attribute__((noinline)) void mark_place(struct thread *t, const struct call *c, int n,
						 int i)
{
	struct markers *m = &t->marker;
	int end = m->mark[m->n].at;
	struct way w;

	m->frames_to_pay = max(m->frames_to_pay, -MARKER_ADVANCE) + (PRICE << m->n / 4);
	if (n > end || m->n == MARKER_MAX || !marker_is_on(t) || exception_flies() || !get_room(m))
		return;
	i = min(i, n - NEAREST);
	do { /* once more to come to that place; what is written is of no use */
		way_begin(&w, c, m->pcs, max(i, NEAREST));
		walk_on(t, &w);
		i = w.first_by_rule;
	} while (i >= 0);
	i = w.out - m->pcs;
	if (i < NEAREST || i >= n || w.pc != c->pcs[i])
		return;
	m->frames_to_pay += PART * i << m->n / 4;
	memcpy(m->pcs + end - (n - i), c->pcs + i, (n - i) * sizeof(*c->pcs));
	mark_put(m, &w, end - (n - i));
}

void marker_learn(struct thread *t, const struct call *c, int n)
{
	if (!t->marker.pause && may_place(t) && n >= FEWEST && may_walk(t, c))
		mark_place(t, c, n, n);
}

/*
 * Captures.
 */

/* The sources behind this one. @learn: near_capture() and the walk call marker_learn(). */
static int next_source(uint64_t *pcs, struct thread *t, bool learn)
{
	const struct call *c = &t->call;

	if (!call_is_simple(pcs, c->max, c->opts, c->info, SHSTK_USE_MEMO))
		return capture_kept(t);
	if (learn || !memo_begins_again(t, c->max, c->ra, c->sp, c->fp))
		return near_capture(t);
	return memo_repeat(pcs, t);
}

/* No marker is of use: the stack is to have none, and the next source goes on. */
static __attribute__((noinline)) int otherwise(uint64_t *pcs, struct thread *t)
{
	struct markers *m = &t->marker;

	if (m->n)
		marker_take_back(t, t->call.sp);
	if (m->pause) {
		m->pause--;
		return next_source(pcs, t, false);
	}
	if (m->frames_to_pay > 0)
		m->frames_to_pay--;
	return next_source(pcs, t, may_place(t));
}

/*
 * Copy @n entries. A call for a few of them would take longer than they do: it pushes a caller
 * out of the processor's predictor of returns.
 */
static inline void copy_entries(const uint64_t *from, uint64_t *to, int n)
{
	int i;

	if (n > COPY_INLINE)
		memcpy(to, from, n * sizeof(*to));
	for (i = 0; i < n && n <= COPY_INLINE; i++) {
		to[i] = from[i];
		__asm__("" : : : "memory"); /* it stays a loop */
	}
}

/* What is seldom left to do after a capture. */
static __attribute__((noinline)) int after(const uint64_t *pcs, struct thread *t, int n, int reused)
{
	struct shstk_info *info = t->call.info;

	leave_outermost(t);
	if (info)
		call_tell(info, reused ? SHSTK_SOURCE_MARKER : 0, n, SHSTK_END_COMPLETE, pcs[n - 1],
			  reused, 0);
	if (modmap_has_retired())
		modmap_reclaim();
	return n;
}

/*
 * The memo would have made the capture faster. True: that was so too often, and there are no
 * markers for a while.
 */
static bool note_loss(struct markers *m)
{
	if (++m->losses < MAX_LOSSES)
		return false;
	m->losses = 0;
	m->pause = PAUSE;
	return true;
}

/*
 * A capture left @by_rule frames by their rules, where the memo would have compared @n entries.
 * What that saved helps to pay for the next marker. True: there are none for a while.
 */
static __attribute__((noinline)) bool note_saved(struct markers *m, int by_rule, int n)
{
	int saved = n - ENTRIES_PER_RULE * by_rule;

	if (saved < 0)
		return note_loss(m);
	m->losses -= m->losses > 0;
	m->frames_to_pay -= m->frames_to_pay > 0 ? saved : 0;
	return false;
}

/* Aligned: at other places in a cache line its loop makes "ramp" at 32 frames 16 % slower. */
__attribute__((aligned(64))) int marker_capture(uint64_t *pcs, struct thread *t)
{
	struct markers *m = &t->marker;
	int n, rest = 0;
	struct way w;
	struct mark *k;

	if (!may_walk(t, &t->call))
		return otherwise(pcs, t);
	way_begin(&w, &t->call, pcs, t->call.max);
	/* With no marker to be met, only frame records are left faster than the memo compares. */
	if (unlikely(!m->n) && (m->pause || !native_is_record(rule_of(t, w.pc))))
		return otherwise(pcs, t);
	walk_records(m, &w, t->native.hi);
	switch (trampoline_has(w.pc) ? TO_MARKER : walk_on(t, &w)) {
	case TO_MARKER:
		k = mark_find(m, &w);
		rest = MARKER_ROOM - (k ? k->at : 0);
		if (!k || rest > w.end - w.out)
			return otherwise(pcs, t);
		copy_entries(m->pcs + k->at, w.out, rest);
		break;
	case TO_END:
		mark_drop_below(m, t->native.hi);
		break;
	default:
		note_loss(m);
		return otherwise(pcs, t);
	}
	n = w.out - pcs;
	if (unlikely(n >= FEWEST && (m->frames_to_pay -= n) <= 0))
		mark_place(t, &t->call, n, rest ? n / 2 : n);
	if (unlikely(w.by_rule_left < MAX_BY_RULE) &&
	    note_saved(m, MAX_BY_RULE - w.by_rule_left, n + rest))
		marker_take_back(t, t->call.sp);
	enter_count(t, rest);
	if (unlikely(t->call.info || modmap_has_retired()))
		return after(pcs, t, n + rest, rest);
	leave_outermost(t);
	return n + rest;
}

/*
 * Identities.
 */

/* Of the trace from the marked frame outwards. */
static uint64_t hash_of(struct markers *m, const struct mark *k)
{
	uint64_t h = IDENTITY_START;
	struct mark *o;

	for (o = m->mark + 1; o <= k; o++) {
		if (!o->hashed)
			o->hash = identity_of(m->pcs, o->at, o[-1].at, h);
		o->hashed = true;
		h = o->hash;
	}
	return h;
}

int marker_identity(struct thread *t, uint64_t *id, uint64_t *end_pc, int *reused)
{
	struct markers *m = &t->marker;
	struct mark *k;
	struct way w;

	if (!may_walk(t, &t->call))
		return 0;
	/* What is new goes where no trace is. */
	way_begin(&w, &t->call, m->pcs, m->mark[m->n].at);
	k = walk_on(t, &w) == TO_MARKER ? mark_find(m, &w) : NULL;
	if (!k)
		return 0;
	*id = identity_of(m->pcs, 0, w.out - m->pcs, hash_of(m, k));
	*end_pc = m->pcs[MARKER_ROOM - 1];
	*reused = MARKER_ROOM - k->at;
	return w.out - m->pcs + *reused;
}
#endif
