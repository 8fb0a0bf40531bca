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

/* Chunks of trampolines that were given out, from the first one on. */
static unsigned int chunks;

void markers_reset(struct markers *m)
{
	m->n = 0;
	m->used = 0;
	m->lost = 0;
	m->young.n = 0;
	m->epoch = 0;
	m->asked = 0;
	m->on = false;
	m->off = SHSTK_MARKERS_NOT_ASKED;
	m->dist = MARKER_NEAR;
	m->misses = 0;
	m->wait = 0;
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

/* Was it of use? If not, place the next one further out, or later. */
static void judge(struct markers *m, const struct mark *k)
{
	if (k->uses > 1) {
		m->misses = 0;
		if (m->dist > MARKER_NEAR)
			m->dist--;
		return;
	}
	if (m->dist < MARKER_FAR) {
		m->dist = min(2 * m->dist, (unsigned int)MARKER_FAR);
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
	struct mark *k = &m->mark[m->n - 1];

	m->young.n = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	judge(m, k);
	if (load_relaxed(&record(m, k->record)->state) != TRAMPOLINE_SET)
		m->used &= ~(1u << k->record);
	else
		lose(m, k);
	m->n--;
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

	m->young.n = 0;
	for (i = m->n - 1; i >= 0; i--) {
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

/* The same in a handler that interrupts a capture: that one finds out later. */
static void take_back_under(struct markers *m)
{
	int i;

	for (i = m->n - 1; i >= 0; i--) {
		const struct mark *k = &m->mark[i];
		struct trampoline *r = record(m, k->record);

		if (load_relaxed(&r->state) == TRAMPOLINE_SET && put_back(k))
			store_relaxed(&r->state, TRAMPOLINE_TAKEN_BACK);
	}
}

/*
 * Placing.
 */

/* Mark the frame behind the first @i young ones. */
static no_sanitize bool place(struct markers *m, int i)
{
	struct young *y = &m->young;
	struct mark *k;
	uint64_t value, raw = y->raw[i - 1];
	struct trampoline *r;
	int at;

	if (m->n == MARKER_MAX)
		return false;	/* soon there is none near, and all go */
	at = take_record(m);
	if (at < 0) {
		turn_off(m, SHSTK_MARKERS_LEFT);
		return false;
	}
	if (!trampoline_encode(trampoline_address(m->chunk + at), raw,
			       y->cfa[i - 1], &value)) {
		m->used &= ~(1u << at);
		return false;
	}
	r = record(m, at);
	r->ra = native_strip(raw);
	store_relaxed(&r->state, TRAMPOLINE_SET);
	k = &m->mark[m->n];
	k->slot = y->slot[i - 1];
	k->value = value;
	k->raw = raw;
	k->at = y->at + i;
	k->record = at;
	k->uses = 0;
	k->hashed = false;
	/* Handlers find the marker only once all that belongs to it is there. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)(uintptr_t)k->slot = value;
	y->raw[i - 1] = value;
	return true;
}

/*
 * Walk over up to @limit young frames, ordinary ones only. Returns their number;
 * *found: the next one is marked.
 */
static inline __attribute__((always_inline)) no_sanitize
int walk_young(struct thread *t, uint64_t raw, uint64_t sp, uint64_t fp,
	       int limit, bool *found)
{
	const uint64_t gen = rulecache_gen();
	const uint64_t mask = load_relaxed(&rulecache.mask);
	const uint64_t hi = t->native.hi;
	struct young *y = &t->marker.young;
	uint64_t pc = native_strip(raw), from = 0;
	int n, nfp = 0;
	bool used = false, uses_fp = false;

	*found = false;
	for (n = 0; n < limit; ) {
		uint64_t rule = rulecache_get(pc, gen, mask), cfa = sp, slot;

		if (unlikely(rule == RULE_NONE && pc))
			rule = self_rule(pc, false);
		if (unlikely((rule & (RULE_SPECIAL | RULE_RA_SAVED)) !=
			     RULE_RA_SAVED))
			break;
		if (rule & RULE_FP) {
			cfa = fp;
			if (!used && from) {
				y->fp_addr[nfp] = from;
				y->fp_val[nfp++] = fp;
			}
			uses_fp |= !from;
			used = true;
		}
		cfa += rule_cfa_off(rule);
		slot = cfa + native_ra_off(rule);
		if (unlikely(slot - sp >= hi - sp || slot & 7 ||
			     native_beyond(cfa, hi)))
			break;
		if (rule & RULE_FP_SAVED) {
			uint64_t addr = cfa + rule_fp_off(rule);

			if (unlikely(addr - sp >= hi - sp))
				break;
			fp = *(const volatile uint64_t *)(uintptr_t)addr;
			from = addr;
			used = false;
		}
		raw = *(const volatile uint64_t *)(uintptr_t)slot;
		y->slot[n] = slot;
		y->cfa[n] = cfa;
		y->raw[n++] = raw;
		pc = native_strip(raw);
		sp = cfa;
		if (trampoline_has(pc)) {
			*found = true;
			break;
		}
	}
	y->nfp = nfp;
	y->uses_fp = uses_fp;
	return n;
}

/* Nothing is as it was, or the thread's own switch is not that of last time. */
bool markers_on(struct markers *m)
{
	uint32_t epoch = load_relaxed(&marker_switch.epoch);

	if (likely(m->epoch == epoch))
		return m->on;
	m->epoch = epoch;
	if (m->off > SHSTK_MARKERS_NOT_ASKED)
		return false;		/* for good */
	m->on = m->asked ? m->asked == 1 : load_relaxed(&marker_switch.on);
	m->off = m->on ? SHSTK_MARKERS_ON : SHSTK_MARKERS_NOT_ASKED;
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

void marker_consider(struct thread *t, const uint64_t *pcs, int n, uint64_t raw,
		     uint64_t sp, uint64_t fp)
{
	struct markers *m = &t->marker;
	struct young *y = &m->young;
	int i = m->dist, saved = errno;
	bool found;

	if (!markers_on(m) || m->n || m->wait)
		return;
	if (n < i + 2 || n > MARKER_ROOM || !t->native_known ||
	    !range_has(&t->native, sp))
		return;
	if (!prepare(m)) {
		errno = saved;
		return;
	}
	i = walk_young(t, raw, sp, fp, i, &found);
	if (i < MARKER_NEAR || found || native_strip(y->raw[i - 1]) != pcs[i])
		return;
	y->at = MARKER_ROOM - n;
	memcpy(m->pcs + y->at, pcs, n * sizeof(*pcs));
	y->sp = sp;
	y->fp = fp;
	y->first = raw;
	y->gen = rulecache_gen();
	y->hashed = false;
	if (place(m, i))
		y->n = i;
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

/* The identity of the trace that is in the array from @young.at on. */
static uint64_t identity(struct markers *m)
{
	struct mark *k = &m->mark[m->n - 1];
	struct young *y = &m->young;

	if (!k->hashed) {
		int i = m->n - 1, end = MARKER_ROOM;
		uint64_t h = IDENTITY_START;

		while (i-- > 0) {
			if (m->mark[i].hashed) {
				h = m->mark[i].hash;
				end = m->mark[i].at;
				break;
			}
		}
		k->hash = hash_range(m->pcs, k->at, end, h);
		k->hashed = true;
	}
	if (!y->hashed) {
		y->hash = hash_range(m->pcs, y->at, k->at, k->hash);
		y->hashed = true;
	}
	return y->hash;
}

/* A walk has come to a marker behind @n young frames: note what is known now. */
static bool meet(struct thread *t, int n, uint64_t raw, uint64_t sp, uint64_t fp)
{
	struct markers *m = &t->marker;
	struct young *y = &m->young;
	struct mark *k;
	uint64_t *pcs;
	int i;

	while (m->n && m->mark[m->n - 1].slot < y->slot[n - 1])
		drop(m);
	if (!m->n)
		return false;
	k = &m->mark[m->n - 1];
	if (k->slot != y->slot[n - 1] || k->value != y->raw[n - 1])
		return false;
	y->at = k->at - n;
	if (y->at < 0)
		return false;
	pcs = m->pcs + y->at;
	pcs[0] = native_strip(raw);
	for (i = 1; i < n; i++) {
		pcs[i] = native_strip(y->raw[i - 1]);
		__asm__ ("" : : : "memory");	/* no call for so few */
	}
	k->uses++;
	y->sp = sp;
	y->fp = fp;
	y->first = raw;
	y->gen = rulecache_gen();
	y->hashed = false;
	if (n < (int)m->dist + MARKER_GAP || !markers_on(m) ||
	    !place(m, m->dist))
		y->n = n;
	return true;
}

/* The marker has stood for long: is a nearer one any good? */
void marker_stands(struct markers *m)
{
	struct young *y = &m->young;

	if (y->n / 2 < MARKER_NEAR || !markers_on(m))
		return;
	m->dist = y->n / 2;
	if (place(m, m->dist))
		y->n = 0;
}

int marker_capture(struct thread *t, uint64_t *pcs, unsigned int max, uint64_t raw,
		   uint64_t sp, uint64_t fp, uint64_t *id)
{
	struct markers *m = &t->marker;
	struct young *y = &m->young;
	unsigned int total;
	bool found;
	int n;

	if (unlikely(self_loads_changed() || !range_has(&t->native, sp) ||
		     m->epoch != load_relaxed(&marker_switch.epoch)))
		return -1;
	if (!marker_same(m, raw, sp, fp)) {
		y->n = 0;
		n = walk_young(t, raw, sp, fp, MARKER_YOUNG, &found);
		if (!found || !meet(t, n, raw, sp, fp))
			return -1;
	}
	total = MARKER_ROOM - y->at;
	t->reused = MARKER_ROOM - m->mark[m->n - 1].at;
	if (unlikely(id != NULL)) {
		*id = identity(m);
		return total;
	}
	if (unlikely(total > max)) {
		unsigned int young = total - t->reused;

		total = max;
		t->reused = max > young ? max - young : 0;
	}
	native_move(m->pcs + y->at, pcs, total);
	return total;
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
		take_back_under(&t->marker);
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
