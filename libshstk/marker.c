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
	m->records[0] = 1;
	m->rules[0].pc = 1;
	m->gen = gen;
}

void markers_reset(struct markers *m)
{
	m->n = 0;
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
}

/* After any change of @n or @dist: when to place the next one. */
static void set_near(struct markers *m)
{
	int gap = MARKER_GAP;

	/* Few are left for deep stacks. */
	if (m->n > MARKER_DENSE)
		gap <<= m->n - MARKER_DENSE;
	m->near = m->n < MARKER_MAX ? (int)m->dist + gap : MARKER_ROOM;
	m->left = m->patience;
}

static void turn_off(struct markers *m, int why)
{
	m->on = false;
	m->off = why;
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

/* The youngest marker was not met: its frame is gone. */
static void drop(struct markers *m)
{
	struct mark *k = &m->mark[m->n];

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	judge(m, k);
	if (load_relaxed(&record(m, k->record)->state) != TRAMPOLINE_SET)
		m->used &= ~(1u << k->record);
	else
		lose(m, k);
	m->n--;
	set_near(m);
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
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n = 0;
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
static no_sanitize int go_out(struct trail *w, int limit)
{
	const uint64_t mask = load_relaxed(&rulecache.mask);
	const uint64_t gen = rulecache_gen();
	int n;

	for (n = 0; n < limit; ) {
		if (!trail_step(w, rulecache_get(w->pc, gen, mask)))
			break;
		n++;
		if (trampoline_has(w->pc))
			break;
	}
	return n;
}

/*
 * Mark the frame behind the first @i of the @n young ones whose addresses are @pcs,
 * or nearer, since only @far can be left by ordinary rules.
 */
static no_sanitize bool place(struct thread *t, uint64_t raw, uint64_t sp, uint64_t fp,
			      int i, const uint64_t *pcs, int n, int far)
{
	struct markers *m = &t->marker;
	int top = m->n ? m->mark[m->n].at : MARKER_ROOM;
	struct trail w = {
		.pc = native_strip(raw), .sp = sp, .fp = fp, .hi = t->native.hi,
	};
	struct trampoline *r;
	struct mark *k;
	uint64_t value;
	int at;

	i = min(i, far);
	if (m->n == MARKER_MAX || i < MARKER_NEAR || n - i < 2 || top < n - i ||
	    exception_flies() || go_out(&w, i) != i || w.pc != pcs[i])
		return false;
	at = take_record(m);
	if (at < 0) {
		turn_off(m, SHSTK_MARKERS_LEFT);
		return false;
	}
	if (!trampoline_encode(trampoline_address(m->chunk + at), w.raw, w.sp,
			       &value)) {
		m->used &= ~(1u << at);
		return false;
	}
	r = record(m, at);
	r->ra = w.pc;
	store_relaxed(&r->state, TRAMPOLINE_SET);
	k = &m->mark[m->n + 1];
	k->slot = w.slot;
	k->value = value;
	k->raw = w.raw;
	k->at = top - (n - i);
	k->record = at;
	k->uses = 0;
	k->far = far;
	k->hashed = false;
	memcpy(m->pcs + k->at, pcs + i, (n - i) * sizeof(*pcs));
	/* Handlers find the marker only once all that belongs to it is there. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)(uintptr_t)k->slot = value;
	set_near(m);
	return true;
}

/* Nothing is as it was, or the thread's own switch is not that of last time. */
bool markers_on(struct markers *m)
{
	uint32_t epoch = load_relaxed(&marker_switch.epoch);

	if (m->epoch != epoch) {
		m->epoch = epoch;
		if (m->off <= SHSTK_MARKERS_NOT_ASKED) {	/* not for good */
			m->on = m->asked ? m->asked == 1 :
					   load_relaxed(&marker_switch.on);
			m->off = m->on ? SHSTK_MARKERS_ON :
					 SHSTK_MARKERS_NOT_ASKED;
		}
	}
	markers_set_rest(m);
	return m->on;
}

static bool prepare(struct markers *m)
{
	void *p;

	if (!take_chunk(m)) {
		turn_off(m, SHSTK_MARKERS_NO_ROOM);
		return false;
	}
	if (m->pcs)
		return true;
	p = mmap(NULL, MARKER_ROOM * sizeof(*m->pcs), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		turn_off(m, SHSTK_MARKERS_NO_ROOM);
		return false;
	}
	m->pcs = p;
	return true;
}

void marker_consider(struct thread *t, const uint64_t *pcs, int n, int far,
		     uint64_t raw, uint64_t sp, uint64_t fp)
{
	struct markers *m = &t->marker;
	int saved = errno;

	while (m->n)
		drop(m);
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
	place(t, raw, sp, fp, m->dist, pcs, n, min(far, n - 2));
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
		*marker_record(m, pc) = pc;
	} else if ((rule & (RULE_SPECIAL | RULE_RA_SAVED)) == RULE_RA_SAVED) {
		marker_rule_at(m, pc)->rule = rule;
		marker_rule_at(m, pc)->pc = pc;
	}
	return rule;
}

const struct mark *marker_older(struct markers *m, uint64_t slot, uint64_t raw)
{
	const struct mark *k;

	while (m->n && m->mark[m->n].slot < slot)
		drop(m);
	k = &m->mark[m->n];
	return m->n && k->slot == slot && k->value == raw ? k : NULL;
}

void marker_met(struct thread *t, const uint64_t *pcs, int n, int far, uint64_t sp,
		uint64_t fp)
{
	struct markers *m = &t->marker;
	bool probe = m->left <= 0;

	if (probe)
		m->left = m->patience;
	if (!markers_on(m))
		return;
	/* The marker has stood for long: is a nearer one any good? */
	if (probe && (int)m->dist > 2 * n / 3)
		m->dist = max(2 * n / 3, MARKER_NEAR);
	place(t, m->ra, sp, fp, m->dist, pcs, n, far);
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
