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
 *
 * Where the next marker goes: @dist frames out from the youngest, as far as frames have
 * frame records, or 12 frames, and never at the two youngest. One is placed whenever a
 * capture walked eight frames further than that, or met none. @dist starts at 2. A marker
 * that is gone before it saved comparing 64 frames makes it half as large again if that
 * happens twice in a row, so that the next one stands where frames stay; after many captures
 * by one marker a nearer one is tried, at two thirds of the way. In code without frame
 * records a step takes as long as comparing 25 entries of the last trace: where that was the
 * loss most of the time, there are no markers for a while, longer each time.
 */
#include "source_marker.h"

#if HAVE_TRAMPOLINE
#include <errno.h>
#include <sys/mman.h>

#include "frame.h"
#include "identity.h"
#include "modmap.h"
#include "source.h"
#include "verify.h"

#define NEAREST 2 /* youngest frames that get none: they may read their return address */
#define GAP 8
#define DENSE 16 /* so many markers stand so near to each other */
#define PLAIN 24 /* frames without a record on the way: at most */
#define FAR 12 /* the furthest place in such code */
#define WORTH 64 /* frames that a marker has to save */
#define PATIENCE 16u /* captures by one marker until a nearer one is tried: at least */
#define PATIENCE_MAX 4096u
#define STEP 25 /* entries that are compared while one frame is left by its rule */
#define DEAR 16u /* captures that the memo makes faster: in a row, or nearly */
#define NAP_MAX 4096u

/* Chunks of trampolines that were given out, from the first one on. */
static unsigned int chunks;

static struct trampoline *trampoline_at(const struct markers *m, unsigned int i)
{
	return trampoline_of(trampoline_address(m->chunk + i));
}

/*
 * The walk.
 */

enum target { TO_MARKER, TO_END, TO_OTHER };

static inline __attribute__((always_inline)) void begin(struct way *w, const struct call *c,
							uint64_t *out, unsigned int room)
{
	w->pc = native_strip(c->ra);
	w->raw = c->ra;
	w->slot = 0;
	w->sp = c->sp;
	w->fp = c->fp;
	w->out = w->start = out;
	w->end = out + room;
	w->plain = w->records = 0;
	w->record = false;
}

/* Does @pc lead into code that keeps frame records? It lies in one of two places. */
static inline bool is_record(const struct markers *m, uint64_t pc)
{
	uint64_t at = pc >> NATIVE_CODE_SHIFT & (MARKER_RECORDS - 1);

	return likely(m->records[at] == pc) || m->records[at ^ 1] == pc;
}

/* The one that was there gets the other place. */
static void note_record(struct markers *m, uint64_t pc)
{
	uint64_t at = pc >> NATIVE_CODE_SHIFT & (MARKER_RECORDS - 1);

	m->records[at ^ 1] = m->records[at];
	m->records[at] = pc;
}

static void forget_records(struct markers *m)
{
	memset(m->records, 0xff, sizeof(m->records)); /* no address, nor 0 */
	m->gen = rulecache_gen();
}

/*
 * Over frames that have a frame record: two loads for each, and the checks of a careful
 * loop over frame pointers.
 */
static inline __attribute__((always_inline)) no_sanitize void
walk_records(const struct markers *m, struct way *w, uint64_t hi)
{
	uint64_t pc = w->pc, raw = w->raw, low = w->sp, fp = w->fp;
	const uint64_t limit = hi - 16;
	uint64_t *out = w->out;

	while (is_record(m, pc) && likely(out != w->end)) {
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
	w->record = true;
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

/* Over any ordinary frames, to a marker or the outermost frame. */
static no_sanitize enum target walk_on(struct thread *t, struct way *w)
{
	const uint64_t hi = t->native.hi;
	struct frame_exit x;
	uint64_t rule;

	for (;;) {
		walk_records(&t->marker, w, hi);
		if (w->record)
			w->sp = native_record_cfa(rule_of(t, w->out[-1]), w->slot - 8);
		w->record = false;
		if (w->sp > hi)
			return TO_OTHER;
		if (trampoline_has(w->pc))
			return TO_MARKER;
		rule = rule_of(t, w->pc);
		/* As the walk has it: a return address of 0, where nothing speaks against it. */
		if (rule == RULE_NONE && !w->pc && w->out != w->start &&
		    !(NATIVE_MACHINE.fp_ends && w->fp))
			return TO_END;
		if (rule == RULE_NONE || w->out == w->end)
			return TO_OTHER;
		if (native_is_record(rule))
			note_record(&t->marker, w->pc);
		else if (!w->plain++)
			w->records = w->out - w->start;
		*w->out++ = w->pc;
		if (RULE_KIND(rule) == RULE_END)
			return TO_END;
		if (w->plain > PLAIN || !frame_is_ordinary(rule) ||
		    !frame_leave(rule, w->sp - hi, w->fp - hi, &x))
			return TO_OTHER;
		if (rule & RULE_FP_SAVED)
			w->fp = frame_word(hi, x.fp);
		w->slot = hi + x.ra;
		w->raw = frame_word(hi, x.ra);
		w->pc = native_strip(w->raw);
		w->sp = hi + x.cfa;
	}
}

/*
 * Where on such a way to put a marker. The first one, if @first, goes as far out as frames
 * have records, if that is nearly the whole stack.
 */
static int place_on(const struct way *w, int dist, bool first)
{
	int n = w->out - w->start;

	if (!w->plain)
		return first ? n : dist;
	if (first && w->records > FAR && n - w->records <= FAR)
		return w->records;
	return min(dist, max(w->records, FAR));
}

/*
 * Markers that are gone.
 */

/* After a change of @n or @dist. Few are left for deep stacks. */
static void set_near(struct markers *m)
{
	int gap = GAP << max(m->n - DENSE, 0);

	m->near = m->on && m->n < MARKER_MAX ? m->dist + gap : MARKER_ROOM;
}

/* After a change of @on, @asleep or @n. */
static void set_rest(struct markers *m)
{
	bool place = m->on && m->asleep == MARKER_AWAKE;

	m->rest = place || m->n ? ~m->epoch : m->epoch;
}

static void turn_off(struct markers *m, int why)
{
	m->on = false;
	m->off = why;
	set_near(m);
}

static void lose(struct markers *m, const struct mark *k)
{
	m->lost |= 1u << k->trampoline;
	if (__builtin_popcount(m->lost) >= MARKER_LOST)
		turn_off(m, SHSTK_MARKERS_LEFT);
}

/* Entries between the marker and the next one further out. */
static int entries_behind(const struct markers *m, const struct mark *k)
{
	return (k - 1 > m->mark ? k[-1].at : MARKER_ROOM) - k->at;
}

/* Was it worth placing? */
static void judge(struct markers *m, const struct mark *k)
{
	if (k->uses * entries_behind(m, k) >= WORTH) {
		m->patience = max(m->patience / 2, PATIENCE);
		m->poor = false;
		return;
	}
	m->poor = !m->poor;
	if (m->poor)
		return; /* one does not count */
	m->patience = min(m->patience * 2, PATIENCE_MAX);
	m->dist = min(m->dist + m->dist / 2 + 1, MARKER_ROOM / 2);
}

/* The youngest marker was not met: its frame is gone. */
static void drop(struct markers *m)
{
	const struct mark *k = &m->mark[m->n];

	judge(m, k);
	if (load_relaxed(&trampoline_at(m, k->trampoline)->state) != TRAMPOLINE_SET)
		m->used &= ~(1u << k->trampoline);
	else
		lose(m, k);
	m->n--;
	set_near(m);
}

/* A walk came to a trampoline's address at @slot: is it one of our markers? */
static struct mark *find(struct markers *m, uint64_t slot, uint64_t raw)
{
	struct mark *k;

	while (m->n && m->mark[m->n].slot < slot)
		drop(m);
	k = &m->mark[m->n];
	return m->n && k->slot == slot && k->value == raw ? k : NULL;
}

/*
 * The slot gets the true address again if it still has the marker. Another thread may be
 * running there (a coroutine that was started on this stack): only one of the two gets to
 * write.
 */
static no_sanitize bool put_back(const struct mark *k)
{
	uint64_t *slot = (uint64_t *)(uintptr_t)k->slot;
	uint64_t value = k->value;

	return load_relaxed(slot) == value &&
	       __atomic_compare_exchange_n(slot, &value, k->raw, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

void marker_take_back(struct thread *t, uint64_t sp)
{
	struct markers *m = &t->marker;
	bool native = t->native_known && range_has(&t->native, sp);
	int i;

	for (i = m->n; i > 0; i--) {
		const struct mark *k = &m->mark[i];

		if (load_relaxed(&trampoline_at(m, k->trampoline)->state) != TRAMPOLINE_SET)
			judge(m, k);
		/* Below the stack pointer memory may not even be there. */
		else if ((native && k->slot < sp - NATIVE_RED_ZONE) || !put_back(k))
			lose(m, k);
	}
	m->used = m->lost;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	set_near(m);
	set_rest(m);
}

void marker_give_back(struct markers *m, const struct trampoline *only)
{
	int i;

	for (i = m->n; i > 0; i--) {
		const struct mark *k = &m->mark[i];
		struct trampoline *r = trampoline_at(m, k->trampoline);

		if ((!only || r == only) && load_relaxed(&r->state) == TRAMPOLINE_SET &&
		    put_back(k))
			store_relaxed(&r->state, TRAMPOLINE_TAKEN_BACK);
	}
}

/*
 * Whether to place some.
 */

void marker_reset(struct thread *t)
{
	struct markers *m = &t->marker;
	uint64_t *pcs = m->pcs;
	unsigned int chunk = m->chunk;

	*m = (struct markers){ .pcs = pcs, .chunk = chunk, .off = SHSTK_MARKERS_NOT_ASKED };
	m->dist = NEAREST;
	m->patience = PATIENCE;
	m->asleep = MARKER_AWAKE;
	t->retry = MARKER_AWAKE;
	forget_records(m);
}

bool marker_is_on(struct thread *t)
{
	uint32_t epoch = load_relaxed(&marker_switch.epoch);
	struct markers *m = &t->marker;

	if (m->epoch != epoch) {
		m->epoch = epoch;
		marker_wake(t);
		if (m->off <= SHSTK_MARKERS_NOT_ASKED) { /* not for good */
			m->on = m->asked ? m->asked == 1 : load_relaxed(&marker_switch.on);
			m->off = m->on ? SHSTK_MARKERS_ON : SHSTK_MARKERS_NOT_ASKED;
		}
		set_near(m);
	}
	set_rest(m);
	return m->on && m->asleep == MARKER_AWAKE;
}

void marker_wake(struct thread *t)
{
	t->marker.asleep = t->retry = MARKER_AWAKE;
	set_rest(&t->marker);
}

/* The memo would have made this capture faster. If that is so most of the time: a nap. */
static void was_dear(struct thread *t)
{
	struct markers *m = &t->marker;
	bool often;

	if (!m->dear++)
		m->dear_since = t->captures;
	if (m->dear < DEAR)
		return;
	often = t->captures - m->dear_since < 2 * DEAR;
	m->dear = 0;
	m->nap = often ? min(max(2 * m->nap, 4 * DEAR), NAP_MAX) : m->nap / 2;
	if (!often)
		return;
	m->asleep = t->retry = t->captures + m->nap;
	marker_take_back(t, t->call.sp);
}

/*
 * Placing.
 */

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
	return m->chunk && m->pcs;
}

/* A trampoline that was not used for long. -1: none. */
static int take_trampoline(struct markers *m)
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
	turn_off(m, SHSTK_MARKERS_LEFT);
	return -1;
}

/* Mark the frame that @w has come to; its trace begins at entry @at. */
static no_sanitize void put_mark(struct markers *m, const struct way *w, int at)
{
	struct mark *k = &m->mark[m->n + 1];
	int i = take_trampoline(m);
	struct trampoline *r;

	if (i < 0)
		return;
	*k = (struct mark){ .slot = w->slot, .raw = w->raw, .at = at, .trampoline = i };
	k->retry = m->patience;
	if (!trampoline_encode(trampoline_address(m->chunk + i), w->raw, w->sp, &k->value)) {
		m->used &= ~(1u << i);
		return;
	}
	r = trampoline_at(m, i);
	r->ra = w->pc;
	store_relaxed(&r->state, TRAMPOLINE_SET);
	/* Handlers find the marker only once all that belongs to it is there. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)(uintptr_t)k->slot = k->value;
	set_near(m);
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
 * Place one on the trace of @c, of which the @n entries before the youngest marker are new,
 * behind @i frames. These are walked once more.
 */
static __attribute__((noinline)) void place(struct thread *t, const struct call *c, int n, int i)
{
	struct markers *m = &t->marker;
	struct way *w = &m->way;
	int at;

	i = min(i, n - 2);
	if (i < NEAREST || n > MARKER_ROOM || !marker_is_on(t) || m->n == MARKER_MAX ||
	    exception_flies() || !get_room(m))
		return;
	at = (m->n ? m->mark[m->n].at : MARKER_ROOM) - (n - i);
	if (at < i)
		return;
	begin(w, c, m->pcs, i); /* what is written there is of no use */
	if (walk_on(t, w) != TO_OTHER || w->out != m->pcs + i || w->pc != c->pcs[i])
		return;
	memcpy(m->pcs + at, c->pcs + i, (n - i) * sizeof(*c->pcs));
	put_mark(m, w, at);
}

void marker_learn(struct thread *t, const struct call *c, int n)
{
	if (!t->native_known || !range_has(&t->native, c->sp))
		return;
	while (t->marker.n)
		drop(&t->marker);
	place(t, c, n, min(t->marker.dist, FAR));
}

/*
 * Captures.
 */

/* In any other way. */
static __attribute__((noinline)) int otherwise(uint64_t *pcs, struct thread *t)
{
	struct markers *m = &t->marker;

	if (m->n)
		marker_take_back(t, t->call.sp);
	if (m->gen != rulecache_gen())
		forget_records(m);
	marker_is_on(t); /* if a switch was changed */
	return source_after_marker(pcs, t);
}

/* What is seldom left to do after a capture. */
static __attribute__((noinline)) int after(const uint64_t *pcs, struct thread *t, int n, int reused)
{
	struct shstk_info *info = t->call.info;

	leave_alone(t);
	if (info)
		call_tell(info, reused ? SHSTK_SOURCE_MARKER : 0, n, SHSTK_END_COMPLETE, pcs[n - 1],
			  reused, 0);
	if (modmap_has_retired())
		modmap_reclaim();
	return n;
}

static inline __attribute__((always_inline)) int done(const uint64_t *pcs, struct thread *t, int n,
						      int reused)
{
	enter_count(t, reused);
	if (unlikely(t->call.info || modmap_has_retired()))
		return after(pcs, t, n, reused);
	leave_alone(t);
	return n;
}

/* A nearer marker is tried again after as many captures. */
static void try_nearer(struct markers *m, struct mark *k, int n)
{
	k->retry = n < 2 * NEAREST ? UINT64_MAX : k->uses + m->patience;
	m->dist = min(m->dist, max(2 * n / 3, NEAREST));
	set_near(m);
}

/* From where @t->marker.way has come to. */
static __attribute__((noinline)) int capture_on(uint64_t *pcs, struct thread *t)
{
	struct markers *m = &t->marker;
	struct way *w = &m->way;
	enum target target = walk_on(t, w);
	int n = w->out - pcs, rest = 0, i;
	bool dear = w->plain > FAR, due = true;
	struct mark *k;

	if (target == TO_MARKER) {
		k = find(m, w->slot, w->raw);
		rest = k ? MARKER_ROOM - k->at : 0;
		if (!k || (unsigned int)(n + rest) > t->call.max)
			return otherwise(pcs, t);
		native_move(m->pcs + k->at, pcs + n, rest);
		dear = STEP * w->plain > n + rest;
		due = n >= m->near || k->uses >= k->retry;
		if (k->uses++ >= k->retry)
			try_nearer(m, k, n);
	} else if (target == TO_END) {
		while (m->n)
			drop(m);
	} else {
		was_dear(t);
		return otherwise(pcs, t);
	}
	if (due) {
		t->call.pcs = pcs;
		i = place_on(w, m->dist, !rest);
		place(t, &t->call, n, i);
	}
	if (dear)
		was_dear(t);
	return done(pcs, t, n + rest, rest);
}

/* Is all as it was when the markers were placed, on the thread's own stack? */
static inline __attribute__((always_inline)) bool may_walk(const struct thread *t)
{
	return likely(t->native_known && range_has(&t->native, t->call.sp) && modmap_loads_same() &&
		      t->marker.gen == rulecache_gen() &&
		      t->marker.epoch == load_relaxed(&marker_switch.epoch));
}

/* The usual capture: frame records lead to the youngest marker, and no other is due. */
static inline __attribute__((always_inline)) bool meets_marker(struct thread *t, struct way *w,
							       int64_t n)
{
	struct markers *m = &t->marker;
	struct mark *k = &m->mark[m->n];

	if (unlikely(w->slot != k->slot || w->raw != k->value || n >= m->near ||
		     n + MARKER_ROOM - k->at > t->call.max || k->uses >= k->retry))
		return false;
	k->uses++;
	return true;
}

static __attribute__((noinline)) VERIFY_WIDE no_sanitize int capture_wide(uint64_t *pcs,
									  struct thread *t)
{
	const struct markers *m = &t->marker;
	int64_t n, at = m->mark[m->n].at;
	struct way w;

	if (!may_walk(t))
		return otherwise(pcs, t);
	begin(&w, &t->call, pcs, t->call.max);
	walk_records(m, &w, t->native.hi);
	n = w.out - pcs;
	if (unlikely(!meets_marker(t, &w, n))) {
		t->marker.way = w;
		return capture_on(pcs, t);
	}
	native_move_wide(m->pcs + at, w.out, MARKER_ROOM - at);
	return done(pcs, t, n + MARKER_ROOM - at, MARKER_ROOM - at);
}

static __attribute__((noinline)) no_sanitize int capture_plain(uint64_t *pcs, struct thread *t)
{
	const struct markers *m = &t->marker;
	int64_t n, at = m->mark[m->n].at;
	struct way w;

	if (!may_walk(t))
		return otherwise(pcs, t);
	begin(&w, &t->call, pcs, t->call.max);
	walk_records(m, &w, t->native.hi);
	n = w.out - pcs;
	if (unlikely(!meets_marker(t, &w, n))) {
		t->marker.way = w;
		return capture_on(pcs, t);
	}
	native_move(m->pcs + at, w.out, MARKER_ROOM - at);
	return done(pcs, t, n + MARKER_ROOM - at, MARKER_ROOM - at);
}

int marker_capture(uint64_t *pcs, struct thread *t)
{
	return verify_is_wide() ? capture_wide(pcs, t) : capture_plain(pcs, t);
}

/*
 * Identities.
 */

/* Of the trace from the marked frame outwards. */
static uint64_t hash_of(struct markers *m, struct mark *k)
{
	struct mark *older = k - 1;
	uint64_t h = IDENTITY_START;
	int end = MARKER_ROOM;

	if (k->hashed)
		return k->hash;
	while (older > m->mark && !older->hashed)
		older--;
	if (older > m->mark) {
		h = older->hash;
		end = older->at;
	}
	k->hash = identity_of(m->pcs, k->at, end, h);
	k->hashed = true;
	return k->hash;
}

int marker_identity(struct thread *t, uint64_t *id, uint64_t *end_pc)
{
	struct markers *m = &t->marker;
	struct way *w = &m->way;
	struct mark *k;
	int n;

	if (!m->n || !may_walk(t))
		return 0;
	/* What is new goes where no trace is. */
	begin(w, &t->call, m->pcs, m->mark[m->n].at);
	if (walk_on(t, w) != TO_MARKER)
		return 0;
	k = find(m, w->slot, w->raw);
	n = w->out - m->pcs;
	if (!k)
		return 0;
	*id = identity_of(m->pcs, 0, n, hash_of(m, k));
	k->uses++;
	*end_pc = m->pcs[MARKER_ROOM - 1];
	t->reused = MARKER_ROOM - k->at;
	return n + t->reused;
}
#endif
