// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * capture.c - walk to the nearest marker, copy what was found behind it; place the next one.
 * See shstk_marker.h and Documentation/markers.rst.
 *
 * A marker counts only if a walk comes to its slot and finds it there: then the frame is
 * the one that was marked, and all frames further out have been waiting since. So
 * longjmp() and the like need not be noticed. What must be known is when a trampoline may
 * have another use: if it was returned through (it says so), or its slot was given the
 * true address again. Of frames that were left in another way a copy might come back;
 * their trampolines are never used again.
 */
#include "capture_general.h"
#include "marker.h"
#include "modmap.h"
#include "rulecache.h"
#include "walk.h"

/* What a capture begins with: registers of the caller of the function that this stands in. */
#define CALL_HERE(pcs_, max_, info_)                                        \
	((struct call){ .ra = (uintptr_t)__builtin_return_address(0),       \
			.sp = (uintptr_t)__builtin_dwarf_cfa(),             \
			.fp = native_caller_fp(__builtin_frame_address(0)), \
			.ssp = native_ssp(),                                \
			.pcs = (pcs_),                                      \
			.max = (max_),                                      \
			.info = (info_) })

#if HAVE_TRAMPOLINE

#define NEAREST 2 /* youngest frames that get none: they may read their return address */
#define FEWEST 8 /* frames in front of a marker, of which one may get another */
#define PRICE 1024 /* frames that captures walk for each marker that is placed, */
#define PART 16 /* and for each frame in front of it */
#define NO_MARKER 64 /* a capture that came to none is worth that many */

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
 * struct way - how far a walk over frame records has come
 * @pc: the frame that comes next, not yet written.
 * @raw: what was read there.
 * @record: the frame record that @pc was read from; below the stack pointer for the first frame.
 * @sp: the frame's registers.
 * @fp: see @sp.
 * @out: behind the last entry written.
 * @end: behind the room for them.
 */
struct way {
	uint64_t pc, raw, record, sp, fp;
	uint64_t *out, *end;
};

static inline __attribute__((always_inline)) struct way
way_begin(uint64_t ra, uint64_t sp, uint64_t fp, uint64_t *out, unsigned int room)
{
	return (struct way){ native_strip(ra), ra, sp - 1, sp, fp, out, out + room };
}

/* Where in the tables a return address is noted. */
static inline unsigned int record_place(uint64_t pc)
{
	return pc >> NATIVE_CODE_SHIFT & (MARKER_RECORDS - 1);
}

/*
 * Over frames that are known to have a frame record: two loads for each, and the checks of a
 * careful loop over frame pointers.
 */
static inline __attribute__((always_inline)) no_sanitize void
walk_records(const struct markers *m, struct way *w, uint64_t hi)
{
	const uint64_t limit = hi - 16;
	struct way v = *w;
	unsigned int i = record_place(v.pc);
	uint64_t next = native_record(m->where[i], v.sp, v.fp);

	while (likely(next > v.record && next <= limit)) {
		if (unlikely(m->records[i] != v.pc))
			break;
		if (unlikely(v.out == v.end))
			break;
		*v.out++ = v.pc;
		v.record = next;
		v.sp = native_record_cfa(m->where[i], next);
		v.raw = *(const stack_word *)(uintptr_t)(next + 8);
		v.fp = *(const stack_word *)(uintptr_t)next;
		v.pc = native_strip(v.raw);
		i = record_place(v.pc);
		next = native_record(m->where[i], v.sp, v.fp);
	}
	*w = v;
}

/* Is @pc news: one that leads into code with a frame record? */
static bool is_new_record(struct markers *m, uint64_t pc)
{
	unsigned int i = record_place(pc);
	uint64_t rule;

	if (m->records[i] == pc || trampoline_has(pc) || !pc)
		return false;
	rule = rulecache_get(pc, rulecache_gen(), load_relaxed(&rulecache.mask));
	if (rule == RULE_NONE) {
		enter_modules(m->owner);
		rule = modmap_rule(pc, false);
		leave_modules(m->owner);
	}
	m->where[i] = native_record_rule(rule);
	m->records[i] = m->where[i] ? pc : ~0ull;
	return m->where[i];
}

/* The same over any frames that have one. */
static __attribute__((noinline)) void walk_on(struct markers *m, struct way *w)
{
	do {
		walk_records(m, w, m->owner->native.hi);
	} while (w->out != w->end && is_new_record(m, w->pc));
}

/* Is all as it was when the markers were placed? */
static inline bool is_as_before(const struct markers *m)
{
	return likely(modmap_loads_same() && m->gen == rulecache_gen());
}

/*
 * Markers that are gone.
 */

/*
 * The youngest marker is no longer of use. Its trampoline is if it was returned through, or
 * taken back; else it counts as used for ever.
 */
static void mark_drop(struct markers *m)
{
	unsigned int i = m->mark[m->n--].trampoline;

	if (!load_relaxed(&trampoline_at(m, i)->set))
		m->used &= ~(1u << i);
	if (__builtin_popcount(m->used) - m->n >= MARKER_LOST)
		m->status = SHSTK_MARKER_LEFT;
}

/* The place of the return address. */
static uint64_t *mark_slot(const struct mark *k)
{
	return (uint64_t *)(uintptr_t)(k->record + 8);
}

/*
 * The slot gets the true address again if it still has the marker. Another thread may be
 * running there (a coroutine that was started on this stack): only one of the two gets to
 * write.
 */
static no_sanitize bool mark_put_back(const struct mark *k)
{
	uint64_t *slot = mark_slot(k), value = k->value;

	return load_relaxed(slot) == value &&
	       __atomic_compare_exchange_n(slot, &value, k->raw, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

void markers_give_back(const struct markers *m, uint64_t sp)
{
	const struct thread *t = m->owner;
	/* Below the stack pointer memory may not even be there. */
	bool native = t->native_known && range_has(&t->native, sp);
	uint64_t low = native ? sp - NATIVE_RED_ZONE : 0;
	const struct mark *k;

	for (k = m->mark + m->n; k != m->mark; k--) {
		struct trampoline *r = trampoline_at(m, k->trampoline);

		if (load_relaxed(&r->set) && k->record >= low && mark_put_back(k))
			store_relaxed(&r->set, false);
	}
}

void markers_take_back(struct markers *m, uint64_t sp)
{
	markers_give_back(m, sp);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	while (m->n)
		mark_drop(m);
}

/*
 * Placing.
 */

/*
 * Place some? Forgets the records if the rules were changed. Before the bounds of the thread's
 * stack are known there are no records, so that no walk over records begins.
 */
static bool may_place(struct markers *m)
{
	if (!m->owner->native_known)
		return false;
	if (m->gen != rulecache_gen()) {
		memset(m->records, 0xff, sizeof(m->records)); /* no address, nor 0 */
		m->gen = rulecache_gen();
	}
	return m->status == SHSTK_MARKER_ON && m->frames_to_pay <= 0;
}

/* The thread's trampolines, at its first marker. None for a thread too many. */
static bool get_trampolines(struct markers *m)
{
	unsigned int i;

	if (!m->chunk && load_relaxed(&chunks) < TRAMPOLINE_RECORDS / MARKER_CHUNK) {
		i = __atomic_fetch_add(&chunks, 1, __ATOMIC_RELAXED);
		/* Its first ones may be none. */
		if (i < TRAMPOLINE_RECORDS / MARKER_CHUNK)
			m->chunk = i * MARKER_CHUNK + TRAMPOLINE_HEADER;
	}
	if (!m->chunk)
		m->status = SHSTK_MARKER_NO_ROOM;
	return m->status == SHSTK_MARKER_ON;
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

/* Mark the frame that @w has come to; its trace has @rest entries. */
static no_sanitize void mark_put(struct markers *m, const struct way *w, int rest)
{
	unsigned int i = free_trampoline(m);
	struct trampoline *r = trampoline_at(m, i);
	struct mark *k = &m->mark[m->n + 1];

	*k = (struct mark){ .record = w->record, .raw = w->raw, .rest = rest, .trampoline = i };
	if (!trampoline_encode(trampoline_address(m->chunk + i), w->raw, w->sp, &k->value))
		return;
	m->used |= 1u << i;
	r->ra = w->pc;
	store_relaxed(&r->set, true);
	/* Handlers find the marker only once all that belongs to it is there. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)mark_slot(k) = k->value;
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

/* Where the traces behind markers end. */
static uint64_t *room_end(struct markers *m)
{
	return m->room + MARKER_ROOM;
}

/*
 * Place one on the trace of @c, whose @n entries in front of the youngest marker are new: behind
 * @most of these, or in front of the first frame without a record, if that is nearer. If there
 * are too many, all are taken back.
 */
static __attribute__((noinline)) void mark_place(struct markers *m, const struct call *c, int n,
						 int most)
{
	int i, rest = m->mark[m->n].rest;
	struct way w;

	if (m->n == MARKER_MAX) {
		markers_take_back(m, c->sp);
		return;
	}
	m->frames_to_pay = max(m->frames_to_pay, -MARKER_ADVANCE) + PRICE;
	if (n + rest > MARKER_ROOM || exception_flies() || !get_trampolines(m))
		return;
	/* Once more to that place; what is written is of no use. */
	w = way_begin(c->ra, c->sp, c->fp, m->room, most);
	walk_on(m, &w);
	i = w.out - m->room;
	if (i < NEAREST || i >= n || w.pc != c->pcs[i])
		return;
	m->frames_to_pay += PART * i;
	rest += n - i;
	memcpy(room_end(m) - rest, c->pcs + i, (n - i) * sizeof(*c->pcs));
	mark_put(m, &w, rest);
}

/*
 * Captures.
 */

/* A capture of the library's own, after which a marker may be placed; off the program's stack. */
struct learning {
	struct request r;
	struct capture c;
};

/* Does the trace go from the caller to the outermost frame, by rules alone, on one stack? */
static bool ends_plainly(const struct capture *c)
{
	return c->own.outermost && !c->crossed && c->end == SHSTK_END_COMPLETE && !c->guessed;
}

static int learn_in(void *mem, void *arg)
{
	const struct call *call = arg;
	struct thread *t = thread_self;
	struct learning *l = mem;
	struct capture *c = &l->c;
	struct markers *m;

	l->r = (struct request){ .pcs = call->pcs,
				 .max = call->max,
				 .info = call->info,
				 .sources = SHSTK_USE_MEMO | SHSTK_USE_WALK };
	c->own.t = t;
	c->pc = native_strip(call->ra);
	c->sp = call->sp;
	c->fp = call->fp;
	c->slot = 0;
	c->raw = call->ra;
	walk_begin(c, &l->r);
	walk_from_caller(c, &l->r);
	m = markers_of(t);
	if (m && ends_plainly(c) && may_place(m) && range_has(&t->native, call->sp) &&
	    is_as_before(m))
		mark_place(m, call, c->n, c->n);
	return walk_end(c, &l->r);
}

/* No marker is of use: the stack is to have none, and the library's own sources serve. */
static int otherwise(struct markers *m, const struct call *c)
{
	bool learn;

	if (m->n)
		markers_take_back(m, c->sp);
	if (m->frames_to_pay > 0)
		m->frames_to_pay -= NO_MARKER;
	learn = may_place(m) && call_wants_all(c->pcs, c->max, NULL, c->info);
	leave_outermost(m->owner);
	return learn ? scratch_call(sizeof(struct learning), learn_in, (void *)c) : capture_call(c);
}

/* Walk to any marker. True: it is the youngest now, as those that @w came by are gone. */
static bool find_any(struct markers *m, struct way *w)
{
	const struct mark *k;

	walk_on(m, w);
	while (m->mark[m->n].record < w->record)
		mark_drop(m);
	k = &m->mark[m->n];
	return k->record == w->record && k->value == w->raw && w->out + k->rest <= w->end;
}

/* In all cases but that of shstk_marker_capture(), where no capture is interrupted. */
static int any_capture(struct markers *m, const struct call *c)
{
	struct way w = way_begin(c->ra, c->sp, c->fp, c->pcs, c->max);
	struct thread *t = m->owner;
	int n, rest;

	if (!m->n || !range_has(&t->native, c->sp) || !is_as_before(m) ||
	    !call_wants_all(c->pcs, c->max, NULL, c->info) || !find_any(m, &w))
		return otherwise(m, c);
	rest = m->mark[m->n].rest;
	memcpy(w.out, room_end(m) - rest, rest * sizeof(*c->pcs));
	n = w.out - c->pcs;
	if (m->frames_to_pay <= 0 && n >= FEWEST)
		mark_place(m, c, n, n / 2);
	n += rest;
	enter_count(t, true);
	leave_outermost(t);
	if (c->info)
		call_tell(c->info, SHSTK_SOURCE_MARKER, n, SHSTK_END_COMPLETE, c->pcs[n - 1], rest,
			  0);
	if (modmap_has_retired())
		modmap_reclaim();
	return n;
}

/* Is it a thread with markers, or one that gets them now, and not in the middle of a capture? */
static __attribute__((noinline)) int rare_capture(const struct call *c)
{
	struct thread *t = thread_get();
	struct markers *m;

	if (c->ssp || !t)
		return capture_call(c);
	enter_after_jump(t, c->sp);
	if (!enter_is_outermost(t))
		return capture_call(c);
	enter_outermost(t, c->sp);
	m = markers_get(t);
	if (m)
		return any_capture(m, c);
	leave_outermost(t);
	return capture_call(c);
}

/* Copy @rest entries to @out, and leave the capture, which has @n. */
static __attribute__((noinline)) int copy_many(struct markers *m, uint64_t *out, int rest, int n)
{
	memcpy(out, room_end(m) - rest, rest * sizeof(*out));
	enter_count(m->owner, true);
	leave_outermost(m->owner);
	return n;
}

/* The case that it is written for did not apply. */
static __attribute__((noinline)) int slow_capture(struct markers *m, uint64_t *pcs,
						  unsigned int max, struct shstk_info *info,
						  uint64_t ra, uint64_t sp, uint64_t fp)
{
	return any_capture(
		m, &(struct call){
			   .ra = ra, .sp = sp, .fp = fp, .pcs = pcs, .max = max, .info = info });
}

/*
 * The usual case: frames with records that were met before, the youngest marker, nothing else
 * to be done. It is written for few instructions: of a shallow stack, a loop over frame pointers
 * has read all in 100 to 200.
 */
SHSTK_API __attribute__((noinline)) int shstk_marker_capture(uint64_t *pcs, unsigned int max,
							     struct shstk_info *info)
{
	uint64_t fp = native_caller_fp(__builtin_frame_address(0));
	uint64_t ra = (uintptr_t)__builtin_return_address(0);
	uint64_t sp = (uintptr_t)__builtin_dwarf_cfa();
	struct thread *t = thread_self;
	struct markers *m = markers_of(t);
	const struct mark *k;
	const uint64_t *from;
	struct way w;
	uint64_t *end;

	if (unlikely(!m || native_ssp() || !enter_is_outermost(t)))
		return rare_capture(&CALL_HERE(pcs, max, info));
	enter_outermost(t, sp);
	w = way_begin(ra, sp, fp, pcs, max);
	if (unlikely(!range_has(&t->native, sp) || !is_as_before(m) || info ||
		     !call_wants_all(pcs, max, NULL, NULL)))
		return slow_capture(m, pcs, max, info, ra, sp, fp);
	walk_records(m, &w, t->native.hi);
	k = &m->mark[m->n];
	end = w.out + k->rest;
	if (unlikely(k->record != w.record || k->value != w.raw || end > w.end ||
		     (w.out >= pcs + FEWEST && (m->frames_to_pay -= w.out - pcs) <= 0)))
		return slow_capture(m, pcs, max, info, ra, sp, fp);
	/* A call takes longer than to copy a few: 4 twice, which may overlap. */
	if (unlikely(k->rest < 4 || k->rest > 8))
		return copy_many(m, w.out, k->rest, end - pcs);
	from = room_end(m) - k->rest;
	memcpy(w.out, from, 4 * sizeof(*from));
	memcpy(end - 4, room_end(m) - 4, 4 * sizeof(*from));
	enter_count(t, true);
	leave_outermost(t);
	return end - pcs;
}
#else
SHSTK_API __attribute__((noinline)) int shstk_marker_capture(uint64_t *pcs, unsigned int max,
							     struct shstk_info *info)
{
	return capture_call(&CALL_HERE(pcs, max, info));
}
#endif
