// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * marker.c - place markers, find them, take them back; see marker.h and
 * Documentation/markers.rst.
 *
 * A marker counts only if a walk comes to its slot and finds it there: then the
 * frame is the one that was marked, and all frames further out have been waiting
 * since. So longjmp() and the like need not be noticed. What must be known is when
 * a trampoline may have another use: if it was returned through (it says so), or
 * its slot was given the true address again. Of frames that were left in another
 * way a copy might come back; their trampolines are never used again.
 */
#include <errno.h>
#include <sys/mman.h>

#include "identity.h"
#include "marker.h"
#include "rulecache.h"
#include "self.h"
#include "thread.h"

/* Captures by one marker until a nearer one is tried: at least, at most. */
#define PATIENCE 16
#define PATIENCE_MAX 4096

/* Chunks of trampolines that were given out, from the first one on. */
static unsigned int chunks;

void marker_forget_rules(struct markers *m, uint64_t gen)
{
	memset(m->records, 0, sizeof(m->records));
	memset(m->rules, 0, sizeof(m->rules));
	/* Not 0, and no address that belongs there. */
	m->records[0] = m->records[1] = ~0ull;
	m->rules[0].pc = 1;
	m->gen = gen;
}

/* Where the next marker is placed: after a change of @near or the trail. */
static void set_due(struct markers *m)
{
	marker_set_bare(m, m->stop - m->young <= MARKER_BARE);
	m->bare_near = min(m->near, MARKER_BARE + 1);
	m->due = m->stop != m->young && m->stop - m->frames > m->near ?
		 m->stop - m->near : NULL;
}

/* No trail; the next one begins at the youngest marker. */
static void forget_trail(struct markers *m)
{
	unsigned int at = m->n ? m->mark[m->n].at : MARKER_ROOM;

	marker_not_again(m);
	marker_set_bare(m, true);
	m->young = m->stop = &m->none;
	m->due = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->none.fp = ~0ull;
	m->known = &m->none;
	if (!m->frames)
		return;
	m->frames[at].fp = ~0ull;
	m->known = m->frames + at;
	m->young = m->stop = m->known;
}

/* The trail from @young on goes to the youngest marker, if it comes so far. */
static void set_trail(struct markers *m, struct frame *young)
{
	struct frame *stop = m->frames + m->mark[m->n].at;

	if (!m->n || young >= stop || stop >= m->known) {
		forget_trail(m);
		return;
	}
	m->stop = stop;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->young = young;
	set_due(m);
}

void markers_reset(struct markers *m)
{
	m->n = 0;
	forget_trail(m);
	m->since = 0;
	m->probe = 0;
	m->bulk = 0;
	m->bulk_miss = 0;
	m->bulk_wait = 0;
	m->used = 0;
	m->lost = 0;
	m->epoch = 0;
	m->rest = 0;
	m->asked = 0;
	m->on = false;
	m->off = SHSTK_MARKERS_NOT_ASKED;
	m->plain = false;
	m->simple = sizeof(struct shstk_opts);
	marker_forget_rules(m, 0);
	m->dist = MARKER_NEAR;
	m->good = 0;
	m->poor = false;
	m->misses = 0;
	m->wait = 0;
	m->patience = PATIENCE;
	m->dear = 0;
	m->nap = 0;
	m->dear_since = 0;
	m->asleep = MARKER_AWAKE;
}

/* After any change of @n or @dist: when to place the next one. */
static void set_near(struct thread *t)
{
	struct markers *m = &t->marker;
	int gap = MARKER_GAP;

	/* Few are left for deep stacks. */
	if (m->n > MARKER_DENSE)
		gap <<= m->n - MARKER_DENSE;
	m->near = m->n < MARKER_MAX ? (int)m->dist + gap : MARKER_ROOM;
	m->probe = t->captures + m->patience;
	set_due(m);
}

static void turn_off(struct markers *m, int why)
{
	m->on = false;
	m->off = why;
	m->near = MARKER_ROOM;
	set_due(m);
}

/*
 * Trampolines.
 */

/* The thread's trampolines; none for a thread too many. */
static bool take_chunk(struct markers *m)
{
	unsigned int i;

	if (m->chunk)
		return true;
	if (!HAVE_TRAMPOLINE ||
	    load_relaxed(&chunks) >= TRAMPOLINE_RECORDS / MARKER_CHUNK)
		return false;
	i = __atomic_fetch_add(&chunks, 1, __ATOMIC_RELAXED);
	if (i >= TRAMPOLINE_RECORDS / MARKER_CHUNK)
		return false;
	/* Its first ones may be none. */
	m->chunk = i * MARKER_CHUNK + TRAMPOLINE_HEADER;
	return true;
}

static struct trampoline *record(const struct markers *m, unsigned int i)
{
	return trampoline_of(trampoline_address(m->chunk + i));
}

/* One that was not used for long. -1: none. */
static int take_record(struct markers *m)
{
	unsigned int i;

	for (i = 0; i < MARKER_EACH; i++) {
		unsigned int r = (m->next + i) % MARKER_EACH;

		if (m->used & 1u << r)
			continue;
		m->next = r + 1;
		m->used |= 1u << r;
		return r;
	}
	return -1;
}

/*
 * Did it save the walk over more frames than it cost to place it and to return
 * through it? If not, place the next one further out, or later.
 */
static void judge(struct markers *m, const struct mark *k)
{
	const struct mark *older = k - 1;
	uint64_t gap = (older > m->mark ? older->at : MARKER_ROOM) - k->at;

	if (k->base) {
		if (k->uses >= MARKER_BASE) {
			m->misses = 0;
			return;
		}
		if (m->misses < 8)
			m->misses++;
		m->wait = 1u << m->misses;
		return;
	}
	if (k->uses * gap >= MARKER_WORTH) {
		m->misses = 0;
		m->poor = false;
		m->patience = max(m->patience / 2, PATIENCE);
		if (++m->good % 8 == 0 && m->dist > MARKER_NEAR)
			m->dist--;
		return;
	}
	m->good = 0;
	m->patience = min(m->patience * 2, PATIENCE_MAX);
	m->poor = !m->poor;
	if (m->poor)
		return;		/* one does not count */
	if (m->dist < k->far) {
		m->dist = min(m->dist + m->dist / 2 + 1, k->far);
		return;
	}
	if (older > m->mark)
		return;
	if (m->misses < 8)
		m->misses++;
	m->wait = 1u << m->misses;
}

static void lose(struct markers *m, const struct mark *k)
{
	m->lost |= 1u << k->record;
	if (__builtin_popcount(m->lost) >= MARKER_LOST)
		turn_off(m, SHSTK_MARKERS_LEFT);
}

/* Captures so far ended at the youngest marker. */
static void count_uses(struct thread *t)
{
	struct markers *m = &t->marker;

	m->mark[m->n].uses += t->captures - m->since;
	m->since = t->captures;
}

/* The youngest marker was not met: its frame is gone. */
static void drop(struct thread *t)
{
	struct markers *m = &t->marker;
	struct mark *k = &m->mark[m->n];
	struct frame *young = m->young;

	/* A handler may leave at any time: without a marker, there is no trail. */
	marker_not_again(m);
	m->young = m->stop = &m->none;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	count_uses(t);
	judge(m, k);
	if (load_relaxed(&record(m, k->record)->state) != TRAMPOLINE_SET)
		m->used &= ~(1u << k->record);
	else
		lose(m, k);
	m->frames[k->at].raw = k->raw;
	m->n--;
	set_trail(m, young);
	set_near(t);
}

bool marker_returned(struct thread *t)
{
	struct markers *m = &t->marker;
	int n = m->n;

	while (m->n && load_relaxed(&record(m, m->mark[m->n].record)->state) ==
		       TRAMPOLINE_FREE)
		drop(t);
	if (m->n && m->n < n && m->mark[m->n + 1].at - m->mark[m->n].at < -MARKER_BARE)
		marker_set_bare(m, false);
	return m->n < n;
}

void marker_passed(struct thread *t, uint64_t slot)
{
	struct markers *m = &t->marker;

	while (m->n && m->mark[m->n].slot < slot)
		drop(t);
}

/*
 * The slot gets the true address again if it still has the marker. Another thread
 * may be running there (a coroutine that was started on this stack): only one of
 * the two gets to write.
 */
static no_sanitize bool put_back(const struct mark *k)
{
	uint64_t *slot = (uint64_t *)(uintptr_t)k->slot;
	uint64_t value = k->value;

	return load_relaxed(slot) == value &&
	       __atomic_compare_exchange_n(slot, &value, k->raw, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void markers_take_back(struct thread *t, uint64_t sp)
{
	struct markers *m = &t->marker;
	bool native = t->native_known && range_has(&t->native, sp);
	int i;

	count_uses(t);
	for (i = m->n; i > 0; i--) {
		const struct mark *k = &m->mark[i];

		if (load_relaxed(&record(m, k->record)->state) !=
		    TRAMPOLINE_SET)
			judge(m, k);
		/* Below the stack pointer memory may not even be there. */
		else if ((native && k->slot < sp - NATIVE_RED_ZONE) ||
			 !put_back(k))
			lose(m, k);
	}
	m->used = m->lost;
	marker_not_again(m);
	m->young = m->stop = &m->none;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	forget_trail(m);
}

/* What is known of them stays: captures find out later that they are gone. */
static void give_back(struct markers *m, const struct trampoline *only)
{
	int i;

	for (i = m->n; i > 0; i--) {
		const struct mark *k = &m->mark[i];
		struct trampoline *r = record(m, k->record);

		if ((!only || r == only) &&
		    load_relaxed(&r->state) == TRAMPOLINE_SET && put_back(k))
			store_relaxed(&r->state, TRAMPOLINE_TAKEN_BACK);
	}
}

void marker_give_back(struct markers *m, const struct trampoline *r)
{
	give_back(m, r);
}

/*
 * Placing.
 */

/* What the C++ ABI says of it: the caught ones, and how many are not. */
struct exceptions {
	void *caught;
	unsigned int uncaught;
};

extern struct exceptions *__cxa_get_globals_fast(void) __attribute__((weak));

/*
 * Does an exception unwind the stack? Its frames are to stay as they are: it has
 * taken the markers back that it will come by (personality.c).
 */
static bool exception_flies(void)
{
	return __cxa_get_globals_fast && __cxa_get_globals_fast()->uncaught;
}

/*
 * Walk over @limit ordinary frames from @w on. Returns how many there are; less if
 * there comes a marker, which is the last of them.
 */
static no_sanitize int go_out(struct thread *t, struct trail *w, int limit)
{
	int n;

	for (n = 0; n < limit; ) {
		if (!trail_step(w, marker_rule(t, w->pc)))
			break;
		n++;
		if (trampoline_has(w->pc))
			break;
	}
	return n;
}

/* Mark the frame whose pc was read at @w->slot; its trace begins at entry @at. */
static no_sanitize bool put_mark(struct thread *t, const struct trail *w, int at,
				 int far)
{
	struct markers *m = &t->marker;
	struct trampoline *r;
	struct mark *k;
	uint64_t value;
	int record_at;

	record_at = take_record(m);
	if (record_at < 0) {
		turn_off(m, SHSTK_MARKERS_LEFT);
		return false;
	}
	if (!trampoline_encode(trampoline_address(m->chunk + record_at), w->raw,
			       w->sp, &value)) {
		m->used &= ~(1u << record_at);
		return false;
	}
	marker_not_again(m);
	r = record(m, record_at);
	r->ra = w->pc;
	store_relaxed(&r->state, TRAMPOLINE_SET);
	count_uses(t);
	m->since++;		/* not this capture */
	k = &m->mark[m->n + 1];
	k->slot = w->slot;
	k->value = value;
	k->raw = w->raw;
	k->at = at;
	k->record = record_at;
	k->uses = 0;
	k->far = far;
	k->hashed = false;
	k->base = false;
	m->frames[at].raw = value;
	/* Handlers find the marker only once all that belongs to it is there. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)(uintptr_t)k->slot = value;
	set_near(t);
	return true;
}

/*
 * Mark the frame behind the first @i of the @n young ones whose addresses are @pcs,
 * or nearer, since only @far can be left by ordinary rules.
 */
static no_sanitize void place(struct thread *t, uint64_t raw, uint64_t sp, uint64_t fp,
			      int i, const uint64_t *pcs, int n, int far)
{
	struct markers *m = &t->marker;
	int top = m->n ? m->mark[m->n].at : MARKER_ROOM;
	struct trail w = {
		.pc = native_strip(raw), .sp = sp, .fp = fp, .hi = t->native.hi,
	};

	i = min(i, far);
	if (m->n == MARKER_MAX || i < MARKER_NEAR || n - i < 2 || top < n - i ||
	    exception_flies() || go_out(t, &w, i) != i || w.pc != pcs[i])
		return;
	top -= n - i;
	forget_trail(m);
	memcpy(m->pcs + top, pcs + i, (n - i) * sizeof(*pcs));
	put_mark(t, &w, top, far);
	forget_trail(m);
}

/* The same for frame @i of the trail. */
static void place_on_trail(struct thread *t, int i)
{
	struct markers *m = &t->marker;
	int far = m->stop - m->young;
	struct frame *f = m->young + i;
	struct trail w;

	if (m->n == MARKER_MAX || i < MARKER_NEAR || far - i < 2 ||
	    exception_flies())
		return;
	w.pc = *marker_out(m, f);
	w.raw = f->raw;
	w.slot = f[-1].fp + 8;
	w.sp = native_record_cfa(marker_rule(t, *marker_out(m, f - 1)), f[-1].fp);
	if (put_mark(t, &w, f - m->frames, far)) {
		m->stop = f;
		set_due(m);
	}
}

/* Nothing is as it was, or the thread's own switch is not that of last time. */
bool markers_on(struct markers *m)
{
	uint32_t epoch = load_relaxed(&marker_switch.epoch);

	if (m->epoch != epoch) {
		m->epoch = epoch;
		m->asleep = MARKER_AWAKE;
		if (m->off <= SHSTK_MARKERS_NOT_ASKED) {	/* not for good */
			m->on = m->asked ? m->asked == 1 :
					   load_relaxed(&marker_switch.on);
			m->off = m->on ? SHSTK_MARKERS_ON :
					 SHSTK_MARKERS_NOT_ASKED;
		}
	}
	markers_set_rest(m);
	return m->on && m->asleep == MARKER_AWAKE;
}

bool marker_sleep(struct thread *t)
{
	struct markers *m = &t->marker;
	bool often = t->captures - m->dear_since < 2 * MARKER_DEAR;

	m->dear = 0;
	m->nap = often ? min(max(2 * m->nap, 4 * MARKER_DEAR), MARKER_NAP) : m->nap / 2;
	if (often)
		m->asleep = t->captures + m->nap;
	return often;
}

void marker_wake(struct markers *m)
{
	m->asleep = MARKER_AWAKE;
	markers_set_rest(m);
}

static bool prepare(struct markers *m)
{
	const size_t bytes = MARKER_ROOM * sizeof(*m->pcs) +
			     (2 * MARKER_ROOM + 1) * sizeof(*m->frames);
	void *p;

	if (!take_chunk(m)) {
		turn_off(m, SHSTK_MARKERS_NO_ROOM);
		return false;
	}
	if (m->pcs)
		return true;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		turn_off(m, SHSTK_MARKERS_NO_ROOM);
		return false;
	}
	m->pcs = p;
	m->frames = (struct frame *)(m->pcs + MARKER_ROOM);
	m->end = m->pcs + MARKER_ROOM;
	m->half = (uintptr_t)m->pcs - ((uintptr_t)m->frames >> 1);
	forget_trail(m);
	return true;
}

void marker_consider(struct thread *t, const uint64_t *pcs, int n, int far, int records,
		     uint64_t raw, uint64_t sp, uint64_t fp)
{
	struct markers *m = &t->marker;
	/* By frame records it is cheap to come far. */
	bool base = records > MARKER_PLAIN / 2 ||
		    (records > 2 * MARKER_NEAR && n - records <= MARKER_PLAIN / 2);
	int saved = errno;

	while (m->n)
		drop(t);
	if (m->wait) {
		m->wait--;
		return;
	}
	if (!markers_on(m) || n > MARKER_ROOM || !t->native_known ||
	    !range_has(&t->native, sp))
		return;
	if (!prepare(m)) {
		errno = saved;
		return;
	}
	place(t, raw, sp, fp, base ? records : (int)m->dist, pcs, n, min(far, n - 2));
	if (m->n)
		m->mark[m->n].base = base;
}

/*
 * Finding.
 */

static uint64_t hash_range(const uint64_t *pcs, int from, int end, uint64_t h)
{
	while (end-- > from)
		h = identity_add(h, pcs[end]);
	return h;
}

uint64_t marker_identity(struct markers *m, struct mark *k, const uint64_t *pcs,
			 int n)
{
	if (!k->hashed) {
		const struct mark *older = k - 1;
		uint64_t h = IDENTITY_START;
		int end = MARKER_ROOM;

		while (older > m->mark && !older->hashed)
			older--;
		if (older > m->mark) {
			h = older->hash;
			end = older->at;
		}
		k->hash = hash_range(m->pcs, k->at, end, h);
		k->hashed = true;
	}
	return hash_range(pcs, 0, n, k->hash);
}

/* The one that was there gets the other place. */
static void remember_record(struct markers *m, uint64_t pc)
{
	uint64_t at = pc >> NATIVE_CODE_SHIFT & (MARKER_RECORDS - 1);

	if (m->records[at] && !marker_is_record(m, pc))
		m->records[at ^ 1] = m->records[at];
	m->records[at] = pc;
}

uint64_t marker_rule(struct thread *t, uint64_t pc)
{
	struct markers *m = &t->marker;
	uint64_t rule;

	rule = rulecache_get(pc, m->gen, load_relaxed(&rulecache.mask));
	if (unlikely(rule == RULE_NONE && pc)) {
		/* Modules that are looked at stay: see thread_enter(). */
		store_relaxed(&t->depth, 1);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		rule = self_rule(pc, false);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		store_release(&t->depth, 0);
	}
	if (native_is_record(rule)) {
		remember_record(m, pc);
	} else if ((rule & (RULE_SPECIAL | RULE_RA_SAVED)) == RULE_RA_SAVED) {
		marker_rule_at(m, pc)->rule = rule;
		marker_rule_at(m, pc)->pc = pc;
	}
	return rule;
}

const struct mark *marker_older(struct thread *t, uint64_t slot, uint64_t raw)
{
	const struct markers *m = &t->marker;
	const struct mark *k;

	marker_passed(t, slot);
	k = &m->mark[m->n];
	return m->n && k->slot == slot && k->value == raw ? k : NULL;
}

/* Is another marker to be placed, nearer than the one @n frames away? */
static bool wanted(struct thread *t, int n)
{
	struct markers *m = &t->marker;
	bool probe = t->captures >= m->probe;

	if (probe)
		m->probe = t->captures + m->patience;
	if (!markers_on(m))
		return false;
	/* The marker has stood for long: is a nearer one any good? */
	if (probe && (int)m->dist > 2 * n / 3)
		m->dist = max(2 * n / 3, MARKER_NEAR);
	return true;
}

void marker_met(struct thread *t, const uint64_t *pcs, int n, int far, uint64_t sp,
		uint64_t fp)
{
	struct markers *m = &t->marker;

	if (wanted(t, n))
		place(t, m->ra, sp, fp, m->dist, pcs, n, far);
}

void marker_met_trail(struct thread *t)
{
	struct markers *m = &t->marker;

	if (wanted(t, m->stop - m->young))
		place_on_trail(t, m->dist);
}

/*
 * Keeping a long trail is dear. Where none of it is met again, do so less and less
 * often.
 */
static bool is_worth_keeping(struct thread *t, int n)
{
	struct markers *m = &t->marker;
	bool in_vain = t->captures - m->bulk == 1;

	if (n <= MARKER_BULK)
		return true;
	m->bulk = t->captures;
	if (!in_vain) {
		m->bulk_miss = m->bulk_wait = 0;
		return true;
	}
	if (m->bulk_wait) {
		m->bulk_wait--;
		return false;
	}
	if (m->bulk_miss < 8)
		m->bulk_miss++;
	m->bulk_wait = (1u << m->bulk_miss) - 1;
	return true;
}

bool marker_keep(struct thread *t, const uint64_t *pcs, int n, uint64_t fp)
{
	struct markers *m = &t->marker;
	const struct mark *k = &m->mark[m->n];
	struct frame *stop = m->frames + k->at;

	if (n >= k->at || !is_worth_keeping(t, n)) {
		forget_trail(m);
		return false;
	}
	memcpy(m->pcs + k->at - n, pcs, n * sizeof(*pcs));
	memcpy(stop - n, marker_fresh(m), n * sizeof(*stop));
	if (m->known <= stop || stop->fp != fp) {
		stop->fp = fp;
		stop->raw = k->value;
		m->known = stop + 1;
		m->known->fp = ~0ull;
	}
	set_trail(m, stop - n);
	return true;
}

void marker_bulk(struct thread *t, int n)
{
	if (!is_worth_keeping(t, n))
		forget_trail(&t->marker);
}

SHSTK_API void shstk_markers_withdraw(void)
{
	struct thread *t = thread_self;
	uint64_t sp = (uintptr_t)__builtin_frame_address(0);
	bool outermost;

	if (!t || !t->marker.n)
		return;
	outermost = thread_enter(t, sp);
	if (outermost)
		markers_take_back(t, sp);
	else
		give_back(&t->marker, NULL);	/* a capture is interrupted */
	thread_leave(t, outermost);
}

SHSTK_API uint64_t shstk_markers_resolve(uint64_t address)
{
	uint64_t pc = native_strip(address);

	return trampoline_has(pc) ? trampoline_of(pc)->ra : address;
}

SHSTK_API uint64_t shstk_trace_id(const uint64_t *pcs, unsigned int n)
{
	return hash_range(pcs, 0, n, IDENTITY_START);
}
