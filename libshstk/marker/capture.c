// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * capture.c - walks to the nearest marker, copies the entries that were found behind it, and
 * places the next marker. See shstk_marker.h and Documentation/markers.rst.
 *
 * A marker counts only if a walk comes to its slot and finds it there: then the frame is
 * the one that was marked, and no frame further out has returned since. So longjmp() and
 * the like need not be noticed. But it must be known when a trampoline may be used again:
 * after a return through it (its code notes that), or after its slot got the true address
 * back. A frame that was left in another way may have a copy that comes back, so its
 * trampoline is never used again.
 */
#include "capture_general.h"
#include "marker.h"
#include "modmap.h"
#include "rulecache.h"
#include "walk.h"

/* Makes the call of a capture: the registers are those of the current function's caller. */
#define CALL_HERE(pcs_, max_, info_)                                        \
	((struct call){ .ra = (uintptr_t)__builtin_return_address(0),       \
			.sp = (uintptr_t)__builtin_dwarf_cfa(),             \
			.fp = native_caller_fp(__builtin_frame_address(0)), \
			.ssp = native_ssp(),                                \
			.pcs = (pcs_),                                      \
			.max = (max_),                                      \
			.info = (info_) })

#if HAVE_TRAMPOLINE

#define NEAREST 2 /* youngest frames without a marker: they may read their return address */
#define FEWEST 8 /* fewest frames in front of a marker for which another one is placed */
#define PRICE 1024 /* frames that captures have to walk for each marker that is placed, */
#define PART 16 /* and this many more for each frame in front of it */
#define NO_MARKER 64 /* a capture that came to no marker counts as so many walked frames */

/* Number of chunks of trampolines that were given to threads, from the first chunk on. */
static unsigned int chunks;

static struct trampoline *trampoline_at(const struct markers *m, unsigned int i)
{
	return trampoline_of(trampoline_address(m->chunk + i));
}

/* ---- The walk ---- */

/**
 * struct way - how far a walk over frame records has come
 * @pc: program counter of the frame that comes next, which is not written yet.
 * @raw: the word that @pc was read from.
 * @record: address of the frame record that @pc was read from; for the first frame an address
 *	below its stack pointer.
 * @sp: stack pointer of the frame that comes next.
 * @fp: frame pointer of the frame that comes next.
 * @out: where the next entry is written.
 * @end: the end of the room for entries.
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

/* Returns the index of return address @pc in the tables of struct markers. */
static inline unsigned int record_place(uint64_t pc)
{
	return pc >> NATIVE_CODE_SHIFT & (MARKER_RECORDS - 1);
}

/*
 * Walks over frames that are known to have a frame record. Each frame takes two loads, and the
 * checks of a careful loop over frame pointers.
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

/*
 * Looks up whether @pc leads into code with a frame record, if that is not known yet, and notes it.
 * Returns true if it does and was not known before.
 */
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

/* Walks over all frames that have a frame record, also those not known yet. */
static __attribute__((noinline)) void walk_on(struct markers *m, struct way *w)
{
	do {
		walk_records(m, w, m->owner->native.hi);
	} while (w->out != w->end && is_new_record(m, w->pc));
}

/* Tells whether modules and unwind rules are the same as when the markers were placed. */
static inline bool is_as_before(const struct markers *m)
{
	return likely(modmap_loads_same() && m->number == rulecache_number());
}

/* ---- Markers that are gone ---- */

/*
 * Forgets the youngest marker. Its trampoline can be used again if the frame returned through it,
 * or the marker was taken back; otherwise it counts as used for ever.
 */
static void mark_drop(struct markers *m)
{
	unsigned int i = m->mark[m->n--].trampoline;

	if (!load_relaxed(&trampoline_at(m, i)->set))
		m->used &= ~(1u << i);
	if (__builtin_popcount(m->used) - m->n >= MARKER_LOST)
		m->status = SHSTK_MARKER_LEFT;
}

/* Returns the address of the return address in the record of @k. */
static uint64_t *mark_slot(const struct mark *k)
{
	return (uint64_t *)(uintptr_t)(k->record + 8);
}

/*
 * Puts the true address back into the slot if the marker is still there. Returns whether it was.
 * Another thread may be running on this stack (a coroutine that was started on it): only one of
 * the two writes.
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
	/* The memory below the stack pointer may be unmapped. */
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

/* ---- Placing a marker ---- */

/*
 * Tells whether a marker may be placed. Forgets the records if the unwind rules have changed.
 * Before the bounds of the thread's stack are known there are no records, so no walk over records
 * begins.
 */
static bool may_place(struct markers *m)
{
	if (!m->owner->native_known)
		return false;
	if (m->number != rulecache_number()) {
		memset(m->records, 0xff, sizeof(m->records)); /* neither an address nor 0 */
		m->number = rulecache_number();
	}
	return m->status == SHSTK_MARKER_ON && m->frames_to_pay <= 0;
}

/*
 * Gives the thread its trampolines, at its first marker. Returns false if it may not use markers,
 * or all trampolines are given out.
 */
static bool get_trampolines(struct markers *m)
{
	unsigned int i;

	if (!m->chunk && load_relaxed(&chunks) < TRAMPOLINE_RECORDS / MARKER_CHUNK) {
		i = __atomic_fetch_add(&chunks, 1, __ATOMIC_RELAXED);
		/* The first places of a chunk may be the header of a page. */
		if (i < TRAMPOLINE_RECORDS / MARKER_CHUNK)
			m->chunk = i * MARKER_CHUNK + TRAMPOLINE_HEADER;
	}
	if (!m->chunk)
		m->status = SHSTK_MARKER_NO_ROOM;
	return m->status == SHSTK_MARKER_ON;
}

/* Returns the free trampoline that was not used for the longest time. One is always free. */
static unsigned int free_trampoline(struct markers *m)
{
	unsigned int i;

	do {
		i = m->next++ % MARKER_EACH;
	} while (m->used & 1u << i);
	return i;
}

_Static_assert(MARKER_EACH >= MARKER_MAX + MARKER_LOST, "one is always free");

/* Marks the frame that @w has come to. The trace from this frame on has @rest entries. */
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
	/* A handler must not find the marker before everything that belongs to it is written. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)mark_slot(k) = k->value;
}

/* The C++ ABI's state of exceptions: the caught ones, and the number of uncaught ones. */
struct exceptions {
	void *caught;
	unsigned int uncaught;
};

extern struct exceptions *__cxa_get_globals_fast(void) __attribute__((weak));

/*
 * Tells whether an exception is unwinding the stack. Then no marker may be placed: the exception
 * has taken back the markers on its way (personality.c), and needs the frames to stay so.
 */
static bool exception_flies(void)
{
	return __cxa_get_globals_fast && __cxa_get_globals_fast()->uncaught;
}

/* Returns the end of the room, where the traces behind markers end. */
static uint64_t *room_end(struct markers *m)
{
	return m->room + MARKER_ROOM;
}

/*
 * Places a marker on the trace of @c, which has @n new entries in front of the youngest marker. The
 * place is behind @most of these entries, or in front of the first frame without a record, if that
 * is nearer. If there are too many markers, all are taken back.
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
	/* Walk to that place again; the entries that this writes are not used. */
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

/* ---- Captures ---- */

/*
 * The large variables of a capture by the library's own sources, after which a marker may be
 * placed.
 */
struct learning {
	struct request r;
	struct capture c;
};

/* Tells whether the trace is complete, lies on one stack, and was found by rules alone. */
static bool ends_plainly(const struct capture *c)
{
	return c->calling.outermost && !c->crossed && c->end == SHSTK_END_COMPLETE && !c->guessed;
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
	c->calling.t = t;
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

/*
 * Makes the capture by the library's own sources, because no marker can be used. Takes all markers
 * from the stack, and places one after the capture if that is allowed.
 */
static int otherwise(struct markers *m, const struct call *c)
{
	bool learn;

	if (m->n)
		markers_take_back(m, c->sp);
	if (m->frames_to_pay > 0)
		m->frames_to_pay -= NO_MARKER;
	learn = may_place(m) && call_is_valid(c->pcs, c->max, c->info);
	leave_outermost(m->owner);
	return learn ? scratch_call(sizeof(struct learning), learn_in, (void *)c) : capture_call(c);
}

/*
 * Walks to the nearest marker, and forgets the markers whose place the walk came by: they are gone.
 * Returns true if the walk has come to a marker; it is the youngest one now.
 */
static bool find_any(struct markers *m, struct way *w)
{
	const struct mark *k;

	walk_on(m, w);
	while (m->mark[m->n].record < w->record)
		mark_drop(m);
	k = &m->mark[m->n];
	return k->record == w->record && k->value == w->raw && w->out + k->rest <= w->end;
}

/*
 * Makes a capture that interrupts no other one, in all cases that shstk_marker_capture() does not
 * handle itself.
 */
static int any_capture(struct markers *m, const struct call *c)
{
	struct way w = way_begin(c->ra, c->sp, c->fp, c->pcs, c->max);
	struct thread *t = m->owner;
	int n, rest;

	if (!m->n || !range_has(&t->native, c->sp) || !is_as_before(m) ||
	    !call_is_valid(c->pcs, c->max, c->info) || !find_any(m, &w))
		return otherwise(m, c);
	rest = m->mark[m->n].rest;
	memcpy(w.out, room_end(m) - rest, rest * sizeof(*c->pcs));
	n = w.out - c->pcs;
	/* shstk_marker_capture() has counted these frames already if nothing is left to pay. */
	if (n >= FEWEST && (m->frames_to_pay <= 0 || (m->frames_to_pay -= n) <= 0))
		mark_place(m, c, n, n / 2);
	n += rest;
	enter_count(t, true);
	leave_outermost(t);
	if (c->info)
		call_tell(c->info, SHSTK_SOURCE_MARKER, n, SHSTK_END_COMPLETE, c->pcs[n - 1], rest,
			  0);
	modmap_tidy(true);
	return n;
}

/*
 * Makes a capture of a thread that has no markers yet or a shadow stack, or that interrupts another
 * capture. Gives the thread its markers if it may have some.
 */
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

/* Copies @rest entries to @out and ends the capture. Returns @n, the number of its entries. */
static __attribute__((noinline)) int copy_many(struct markers *m, uint64_t *out, int rest, int n)
{
	memcpy(out, room_end(m) - rest, rest * sizeof(*out));
	enter_count(m->owner, true);
	leave_outermost(m->owner);
	return n;
}

/* Makes a capture that is not of the usual case that shstk_marker_capture() is written for. */
static __attribute__((noinline)) int slow_capture(struct markers *m, uint64_t *pcs,
						  unsigned int max, struct shstk_info *info,
						  uint64_t ra, uint64_t sp, uint64_t fp)
{
	return any_capture(
		m, &(struct call){
			   .ra = ra, .sp = sp, .fp = fp, .pcs = pcs, .max = max, .info = info });
}

/*
 * This function handles the usual case itself: the walk comes over frames with known records to
 * the youngest marker, and nothing else has to be done. It uses few instructions, because a loop
 * over frame pointers reads all of a shallow stack in 100 to 200 instructions.
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
		     !call_is_valid(pcs, max, NULL)))
		return slow_capture(m, pcs, max, info, ra, sp, fp);
	walk_records(m, &w, t->native.hi);
	k = &m->mark[m->n];
	end = w.out + k->rest;
	if (unlikely(k->record != w.record || k->value != w.raw || end > w.end ||
		     (w.out >= pcs + FEWEST && (m->frames_to_pay -= w.out - pcs) <= 0)))
		return slow_capture(m, pcs, max, info, ra, sp, fp);
	/* For a few entries two copies of 4, which may overlap, are faster than a call. */
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
