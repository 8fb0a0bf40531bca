// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * marked.c - captures of a thread with markers: find the way to the youngest one,
 * copy what is known from there on; see marker.h.
 *
 * Ways lead there from fast to general: marked_again() and capture_same(), all frames
 * are as they were; walk_quick(), the marker is near, and the frames before it have
 * frame records; walk_trail(), it is far, and some of them are known; walk_bare(), none
 * is; and capture_any(). Frames with a record are left with two loads, one for the rule
 * and a few comparisons. Almost no function is called on the way: what is called would
 * push callers out of the processor's predictor of returns.
 */
#include "capture.h"
#include "rulecache.h"
#include "self.h"
#include "verify.h"

/* A word of the stack. */
static inline no_sanitize uint64_t word_at(uint64_t addr)
{
	return *(const stack_word *)(uintptr_t)addr;
}

/* Is all as it was before, and the stack, perhaps, the thread's own? */
static inline __attribute__((always_inline))
bool may_walk(const struct thread *t, uint64_t sp)
{
	return t->marker.gen == rulecache_gen() && !markers_stale(&t->marker) &&
	       !self_loads_changed() && sp >= t->native.lo;
}

/* The same request as the last time, which asked for nothing special? */
static inline __attribute__((always_inline))
bool asks_again(const struct markers *m, const uint64_t *pcs, unsigned int max,
		const struct shstk_opts *opts, const struct shstk_info *info)
{
	uint64_t first, rest;

	if (!pcs || info || max > INT32_MAX)
		return false;
	if (!opts)
		return true;
	memcpy(&first, opts, sizeof(first));
	if (unlikely(first != m->simple))
		return false;	/* perhaps there is less of it */
	memcpy(&rest, &opts->skip, sizeof(rest));
	return !(rest | (uintptr_t)opts->marks);
}

/*
 * Up to where frames may lie so that there is @room for all of them: they are 16 bytes
 * at least. The next one, at @at, may be larger than that.
 */
static inline __attribute__((always_inline))
uint64_t room_limit(uint64_t low, uint64_t at, uint64_t room, uint64_t last)
{
	uint64_t limit = low + 16 * room - 16;

	if (room && limit < at)
		limit = at;
	return min(limit, last);
}

enum target { TO_MARKER, TO_END, TO_OTHER };

/**
 * struct way - where a walk has come to
 * @n: frames written.
 * @records: frames with frame pointers before any other.
 * @far: the same, or MARKER_PLAIN / 2: further out a marker is not found quickly.
 * @slot: of the marker.
 * @raw: the marker.
 */
struct way {
	int n, records, far;
	uint64_t slot, raw;
};

/*
 * Walk until there is a marker or the outermost frame; write the addresses of up to
 * @max frames. TO_OTHER: neither can be reached, or not by ordinary frames alone.
 */
static __attribute__((noinline)) no_sanitize
enum target walk_out(struct thread *t, uint64_t raw, uint64_t sp, uint64_t fp,
		     uint64_t *pcs, unsigned int max, struct way *way)
{
	struct markers *m = &t->marker;
	const uint64_t last = t->native.hi - 16;
	uint64_t *p = pcs, *end = pcs + max, *from;
	uint64_t pc = native_strip(raw), slot = 0, low = sp, odd = 0, limit, rule;
	enum target target = TO_OTHER;
	int plain = 0;

	way->records = 0;
	for (;;) {
		limit = room_limit(low, fp, end - p, last);
		from = p;
		while (likely(marker_is_record(m, pc))) {
			if (unlikely(fp < low || fp > limit))
				break;
			*p++ = pc;
			odd |= fp;
			low = fp + 16;
			raw = *(const stack_word *)(uintptr_t)(fp + 8);
			fp = *(const stack_word *)(uintptr_t)fp;
			pc = native_strip(raw);
		}
		if (likely(p != from))
			slot = low - 8;
		if (unlikely(odd & 7))
			break;
		if (likely(trampoline_has(pc))) {
			target = TO_MARKER;
			break;
		}
		if (unlikely(p == end))
			break;
		if (marker_is_record(m, pc)) {
			if (fp < low || fp > last)
				break;
			continue;	/* the limit was too near */
		}
		rule = marker_rule_at(m, pc)->rule;
		if (unlikely(marker_rule_at(m, pc)->pc != pc)) {
			rule = marker_rule(t, pc);
			if (native_is_record(rule))
				continue;
			if (rule == RULE_NONE && !pc) {
				target = TO_END;
				break;
			}
		}
		if (p != from)
			sp = native_record_cfa(marker_rule(t, p[-1]), slot - 8);
		if (!plain)
			way->records = p - pcs;
		*p++ = pc;
		if (RULE_KIND(rule) == RULE_END) {
			target = TO_END;
			break;
		}
		if (++plain > MARKER_PLAIN)
			break;

		struct trail w = { .sp = sp, .fp = fp, .hi = t->native.hi };

		if (!trail_step(&w, rule))
			break;
		low = sp = w.sp;
		fp = w.fp;
		slot = w.slot;
		raw = w.raw;
		pc = w.pc;
	}
	way->n = p - pcs;
	if (!plain)
		way->records = way->n;
	way->far = plain ? max(way->records, MARKER_PLAIN / 2) : way->n;
	way->slot = slot;
	way->raw = raw;
	return target;
}

/* Write info, and what else is seldom left to do. */
static __attribute__((noinline)) int after(struct shstk_info *info,
					   const uint64_t *pcs, int n, int reused)
{
	if (info)
		fill_info(info, reused ? SHSTK_SOURCE_MARKER : 0, n,
			  SHSTK_END_COMPLETE, pcs[n - 1], reused, 0);
	if (self_has_retired())
		self_reclaim();
	return n;
}

static inline __attribute__((always_inline))
int finish(struct thread *t, struct shstk_info *info, const uint64_t *pcs, int n,
	   int reused)
{
	marked_end(t, reused);
	return unlikely(info || self_has_retired()) ? after(info, pcs, n, reused) : n;
}

/* The memo would have made this capture faster. */
static inline void was_dear(struct thread *t)
{
	if (!t->marker.dear++)
		t->marker.dear_since = t->captures;
}

/* In any other way. If that is often so, markers are of no use. */
static __attribute__((noinline))
int capture_otherwise(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		      struct shstk_info *info, struct thread *t, uint64_t fp)
{
	was_dear(t);
	return unmarked_capture(pcs, max, opts, info, t, fp);
}

/*
 * Does it take longer to walk over so many frames by their rules than it would to
 * compare a trace of so many entries with the last one? A frame takes as long as a dozen
 * entries; placing a marker and returning through it has to be made up for as well.
 */
static inline bool is_dear(const struct way *way, int entries)
{
	return 25 * (way->n - way->records) > entries;
}

/* Of any frames that walk_out() can leave. */
static __attribute__((noinline)) int capture_any(uint64_t *pcs, unsigned int max,
						 const struct shstk_opts *opts,
						 struct shstk_info *info,
						 struct thread *t, uint64_t fp)
{
	struct markers *m = &t->marker;
	const uint64_t sp = load_relaxed(&t->busy_sp) & ~1ull;
	const struct mark *k;
	enum target target;
	struct way way;
	int n, rest;

	if (unlikely(m->dear >= MARKER_DEAR) && marker_sleep(t))
		return unmarked_capture(pcs, max, opts, info, t, fp);
	if (!t->native_known || !range_has(&t->native, sp))
		return capture_otherwise(pcs, max, opts, info, t, fp);
	/* There is none to be found, nor is one to be placed: no use in going there. */
	if (m->plain && m->wait && !m->n)
		return capture_otherwise(pcs, max, opts, info, t, fp);
	target = walk_out(t, m->ra, sp, fp, pcs, max, &way);
	n = way.n;
	if (target == TO_MARKER) {
		k = marker_older(t, way.slot, way.raw);
		rest = k ? MARKER_ROOM - k->at : 0;
		if (!k || n + rest > (int)max)
			return capture_otherwise(pcs, max, opts, info, t, fp);
		native_move(m->pcs + k->at, pcs + n, rest);
		if (n > MARKER_BULK)
			marker_bulk(t, n);
		if (t->captures >= m->probe || n >= m->near)
			marker_met(t, pcs, n, way.far, sp, fp);
		if (is_dear(&way, n + rest))
			was_dear(t);
		return finish(t, info, pcs, n + rest, rest);
	}
	m->plain = target == TO_OTHER;
	if (m->plain || !n)
		return capture_otherwise(pcs, max, opts, info, t, fp);
	if (m->n || !m->wait)
		marker_consider(t, pcs, n, way.far, way.records, m->ra, sp, fp);
	else
		m->wait--;
	if (way.n - way.records > MARKER_PLAIN / 2)
		was_dear(t);
	return finish(t, info, pcs, n, 0);
}

/* Seldom: another marker is due. */
static __attribute__((noinline)) int again_due(struct thread *t, const uint64_t *pcs,
					       struct shstk_info *info)
{
	struct markers *m = &t->marker;
	int n = m->end - marker_out(m, m->young);

	marker_met_trail(t);
	return finish(t, info, pcs, n, m->end - marker_out(m, m->stop));
}

/* What is reused is asked while no handler can change it. */
static __attribute__((noinline)) int again_after(struct thread *t, const uint64_t *pcs,
						 int n, struct shstk_info *info)
{
	const struct markers *m = &t->marker;
	int reused = m->end - marker_out(m, m->stop);

	marked_end(t, true);
	return after(info, pcs, n, reused);
}

/* The trace is the trail and what is behind it, and is written. */
static inline __attribute__((always_inline))
int end_again(struct thread *t, const uint64_t *pcs, int64_t n, struct shstk_info *info)
{
	const struct markers *m = &t->marker;

	if (unlikely(t->captures >= m->probe || m->young <= m->due))
		return again_due(t, pcs, info);
	if (unlikely(info || self_has_retired()))
		return again_after(t, pcs, n, info);
	marked_end(t, true);
	return n;
}

/* Of @n entries from @out on, @done are written. With what only some CPUs have: */
static __attribute__((noinline)) VERIFY_WIDE no_sanitize
int again_long(struct thread *t, uint64_t *pcs, const uint64_t *out, int64_t n,
	       struct shstk_info *info, int64_t done)
{
	native_move_long(out + done, pcs + done, n - done);
	return end_again(t, pcs, n, info);
}

static __attribute__((noinline)) VERIFY_WIDE no_sanitize
int again_short(struct thread *t, uint64_t *pcs, const uint64_t *out, int64_t n,
		struct shstk_info *info, int64_t done)
{
	if (n - done > 64)
		return again_long(t, pcs, out, n, info, done);
	native_move_short(out + done, pcs + done, n - done);
	return end_again(t, pcs, n, info);
}

/* On any CPU. */
static __attribute__((noinline)) no_sanitize
int again_plain(struct thread *t, uint64_t *pcs, const uint64_t *out, int64_t n,
		struct shstk_info *info, int64_t done)
{
	native_move(out + done, pcs + done, n - done);
	return end_again(t, pcs, n, info);
}

/*
 * The walk of walk_trail() came to the youngest marker without meeting a frame that
 * it knew. There are @n entries.
 */
static __attribute__((noinline)) int capture_fresh(struct thread *t, uint64_t *pcs,
						   int n, struct shstk_info *info,
						   uint64_t fp)
{
	struct markers *m = &t->marker;
	int at = m->mark[m->n].at;

	if (marker_keep(t, pcs, n, fp))
		return again_plain(t, pcs, marker_out(m, m->young),
				   n + MARKER_ROOM - at, info, n);
	native_move(m->pcs + at, pcs + n, MARKER_ROOM - at);
	return finish(t, info, pcs, n + MARKER_ROOM - at, MARKER_ROOM - at);
}

/* Another frame lies where the marker's lay: go on to the next marker. */
static __attribute__((noinline)) bool is_passed(struct thread *t, const struct frame *j,
						uint64_t at)
{
	struct markers *m = &t->marker;

	marker_passed(t, at);
	return j >= m->young && j < m->stop;
}

/* After a walk over many new frames: if that goes on, there is no use in a trail. */
static __attribute__((noinline)) int again_bulk(struct thread *t, uint64_t *pcs,
						const uint64_t *out, int n,
						struct shstk_info *info, int done)
{
	struct markers *m = &t->marker;
	int rest = m->end - marker_out(m, m->stop);

	native_move(out + done, pcs + done, n - done);
	marker_bulk(t, done);
	return finish(t, info, pcs, n, rest);
}

/* Two comparisons and two jumps are less than two results and one jump. */
static inline __attribute__((always_inline)) void two_jumps(void)
{
	__asm__ volatile ("");
}

/* Walk to the youngest marker, over frame records. False: it is not met so. */
static inline __attribute__((always_inline)) no_sanitize
bool walk_bare(struct thread *t, uint64_t fp, uint64_t *pcs, unsigned int max,
	       uint64_t **next)
{
	struct markers *m = &t->marker;
	uint64_t low = load_relaxed(&t->busy_sp) & ~1ull, at = fp, odd = 0;
	uint64_t raw = m->ra, pc = native_strip(raw), *p = pcs, *end = pcs + max;
	const uint64_t limit = t->native.hi - 16;
	const struct mark *k;

	while (likely(marker_is_record(m, pc) && p < end)) {
		if (unlikely(at < low))
			return false;
		two_jumps();
		if (unlikely(at > limit))
			return false;
		*p++ = pc;
		odd |= at;
		low = at + 16;
		raw = word_at(at + 8);
		at = word_at(at);
		pc = native_strip(raw);
	}
	if (unlikely(odd & 7))
		return false;
	k = &m->mark[m->n];
	if (k->slot != low - 8 || k->value != raw) {
		if (!trampoline_has(pc))
			return false;
		k = marker_older(t, low - 8, raw);
		if (!k)
			return false;
	}
	*next = p;
	return MARKER_ROOM - k->at <= end - p;
}

/* After walk_bare() over @n frames: is a nearer marker due? Would a trail be better? */
static __attribute__((noinline)) int end_bare(struct thread *t, const uint64_t *pcs,
					      int n, uint64_t fp,
					      struct shstk_info *info)
{
	struct markers *m = &t->marker;
	int rest = MARKER_ROOM - m->mark[m->n].at;

	if (n > MARKER_BARE) {
		marker_set_bare(m, m->bulk_wait);
		if (t->captures - m->bulk == 1)
			m->bulk = t->captures;
		if (m->bare && m->bare_fp != fp + 1)
			m->bulk_wait--;
	}
	if (t->captures >= m->probe || n >= m->near)
		marker_met(t, pcs, n, n, load_relaxed(&t->busy_sp) & ~1ull, fp);
	return finish(t, info, pcs, n + rest, rest);
}

/*
 * To a marker that is near, or from where little was the last time too: what this
 * comes by is not noted.
 */
static __attribute__((noinline)) no_sanitize
int capture_bare(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		 struct shstk_info *info, struct thread *t, uint64_t fp)
{
	struct markers *m = &t->marker;
	uint64_t *p;
	int rest;

	if (unlikely(!walk_bare(t, fp, pcs, max, &p)))
		return capture_any(pcs, max, opts, info, t, fp);
	rest = MARKER_ROOM - m->mark[m->n].at;
	native_move(m->end - rest, p, rest);
	return end_bare(t, pcs, p - pcs, fp, info);
}

/*
 * As walk_out() and capture_any(), with nothing but frame records, up to a frame of
 * the trail. From there on only what differs from it is looked at. All calls are
 * jumps, but where a marker was passed.
 */
static __attribute__((noinline)) no_sanitize
int walk_trail(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
	       struct shstk_info *info, struct thread *t, uint64_t fp)
{
	struct markers *m = &t->marker;
	uint64_t low = load_relaxed(&t->busy_sp) & ~1ull, at = fp;
	uint64_t raw = m->ra, pc = native_strip(raw), near;
	const uint64_t limit = t->native.hi - 15;
	struct frame *j = m->young, *f = marker_fresh(m), *young, *stop;
	uint64_t *p = pcs, *end, *out;
	const struct mark *k;
	int64_t n;

	marker_not_again(m);
	end = pcs + min(max, (unsigned int)MARKER_ROOM);
	near = min(j->fp, limit);
	for (;;) {
		if (unlikely(!marker_is_record(m, pc) || at < low || p == end))
			goto stuck;
		if (at >= near) {
			if (unlikely(at >= limit))
				goto stuck;
			while (j->fp < at)
				j++;
			if (j->fp == at) {
				if (unlikely(j >= m->stop && !is_passed(t, j, at + 8)))
					goto stuck;
				if (likely(word_at(at) == j[1].fp))
					break;
				j++;
			}
			near = min(j->fp, limit);
		}
		if (unlikely(at & 7))
			goto stuck;
		*p++ = pc;
		f->fp = at;
		f->raw = raw;
		f++;
		low = at + 16;
		raw = word_at(at + 8);
		at = word_at(at);
		pc = native_strip(raw);
	}

	/* The trail is the new frames, then @j and what follows. */
	young = j - (f - marker_fresh(m));
	out = marker_out(m, young);
	n = m->end - out;
	if (unlikely(young < m->frames || n > (int64_t)max))
		return unmarked_capture(pcs, max, opts, info, t, fp);
	m->young = young;
	if (p > pcs) {
		f = marker_fresh(m);
		do {
			young->fp = f->fp;
			young->raw = f->raw;
			*out++ = native_strip(f->raw);
			f++;
		} while (++young < j);
	}
	j->raw = raw;
	*out = pc;
	*p++ = pc;
	stop = m->stop;
	for (;;) {
		raw = word_at(at + 8);
		at = j[1].fp;
		if (raw != (++j)->raw) {
			/* Another place in the same function? Or behind a marker? */
			pc = native_strip(raw);
			if (unlikely(!marker_is_record(m, pc) ||
				     (j == stop && !is_passed(t, j, j[-1].fp + 16))))
				return capture_any(pcs, max, opts, info, t, fp);
			stop = m->stop;
			j->raw = raw;
			out = marker_out(m, j);
			*out = pc;
			if (p - pcs == out - (m->end - n))
				*p++ = pc;
		}
		if (j == stop)
			break;
		if (unlikely(word_at(at) != j[1].fp))
			return capture_any(pcs, max, opts, info, t, fp);
	}
	marker_set_bare(m, m->stop - m->young <= MARKER_BARE);
	if (unlikely(f > marker_fresh(m) + MARKER_BULK))
		return again_bulk(t, pcs, m->end - n, n, info, p - pcs);
	return verify_is_wide() ?
	       again_short(t, pcs, m->end - n, n, info, p - pcs) :
	       again_plain(t, pcs, m->end - n, n, info, p - pcs);

stuck:
	k = &m->mark[m->n];
	if (k->slot != low - 8 || k->value != raw || p == pcs ||
	    MARKER_ROOM - k->at > pcs + max - p)
		return capture_any(pcs, max, opts, info, t, fp);
	return capture_fresh(t, pcs, p - pcs, info, at);
}

/*
 * Is this the third capture in a row without a trail where the last one was made? Then
 * it is to keep one, so that the next one need only be compared.
 */
static inline __attribute__((always_inline)) bool bare_again(struct markers *m, uint64_t fp)
{
	uint64_t again = m->bare_fp - fp;

	if (likely(again > 1)) {
		m->bare_fp = fp;
		return false;
	}
	m->bare_fp = fp + 1;
	if (!again)
		return false;
	if (!m->bulk_wait)
		return true;
	m->bulk_wait--;		/* in vain, of late */
	return false;
}

/* By any way to a marker. */
static __attribute__((noinline)) no_sanitize
int walk_new(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
	     struct shstk_info *info, struct thread *t, uint64_t fp)
{
	struct markers *m = &t->marker;

	if (unlikely(!m->n || fp < (load_relaxed(&t->busy_sp) & ~1ull)))
		return capture_any(pcs, max, opts, info, t, fp);
	return bare_again(m, fp) || !m->bare ?
	       walk_trail(pcs, max, opts, info, t, fp) :
	       capture_bare(pcs, max, opts, info, t, fp);
}

/* With a request that may want anything, after a load, on any stack. */
static __attribute__((noinline)) no_sanitize
int capture_asked(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		  struct shstk_info *info, struct thread *t, uint64_t fp)
{
	uint64_t sp = load_relaxed(&t->busy_sp) & ~1ull;

	if (!is_simple(pcs, max, opts, info, SHSTK_USE_MARKER) || !may_walk(t, sp))
		return unmarked_capture(pcs, max, opts, info, t, fp);
	if (opts)
		memcpy(&t->marker.simple, opts, sizeof(t->marker.simple));
	return walk_new(pcs, max, opts, info, t, fp);
}

/*
 * Where the last capture was made, nothing has changed up to the youngest marker if
 * the words are the same that lead from one frame to the next. If they are, the
 * stack is the thread's own: the frames of a trail are.
 */
static inline __attribute__((always_inline)) no_sanitize
bool is_same_trail(const struct markers *m, uint64_t ra, uint64_t fp)
{
	const struct frame *f = m->young, *stop = m->stop;

	if (f->fp != fp || f->raw != ra)
		return false;
	do {
		uint64_t at = f->fp;

		f++;
		if (word_at(at) != f->fp || word_at(at + 8) != f->raw)
			return false;
	} while (f < stop);
	return true;
}

/* May marked_again() run here? */
static inline bool may_be_again(void)
{
#ifdef NATIVE_V4
	return verify_is_wide();
#else
	return true;
#endif
}

/* The youngest frame lies where that of the trail does. */
static __attribute__((noinline)) no_sanitize
int capture_same(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		 struct shstk_info *info, struct thread *t, uint64_t fp)
{
	struct markers *m = &t->marker;
	const uint64_t *out;
	int64_t n;

	marker_not_again(m);
	if (!is_same_trail(m, m->ra, fp))
		return walk_new(pcs, max, opts, info, t, fp);
	out = marker_out(m, m->young);
	n = m->end - out;
	if (unlikely(n > (int64_t)max))
		return walk_new(pcs, max, opts, info, t, fp);
	if (likely(m->young > m->due && !self_has_retired() && may_be_again())) {
		m->again = marker_out(m, m->young);
		m->again_n = n;
		m->again_ra = m->ra;
		m->again_sp = load_relaxed(&t->busy_sp) & ~1ull;
	}
	return verify_is_wide() ? again_short(t, pcs, out, n, NULL, 0) :
				  again_plain(t, pcs, out, n, NULL, 0);
}

/*
 * The usual way of walk_bare(), in functions that call none and need few registers.
 * How many frames of 16 bytes there may be is known, so that there is no look at the room
 * for each. Nor at alignment: what leads to the marker through records leads there in any case.
 * NULL: the marker is not met so. Else where the next entry belongs.
 */
static inline __attribute__((always_inline, nonnull)) no_sanitize
uint64_t *walk_quick(uint64_t *pcs, const struct markers *m, uint64_t at, uint64_t low,
		     uint64_t limit)
{
	uint64_t raw = m->ra, pc = native_strip(raw), *p = pcs, further;

	if (unlikely(!marker_is_record(m, pc) || at < low))
		return NULL;
	/* Two at a time. */
	for (;;) {
		if (unlikely(at > limit))
			return NULL;
		p[0] = pc;
		raw = word_at(at + 8);
		further = word_at(at);
		pc = native_strip(raw);
		if (unlikely(!marker_is_record(m, pc))) {
			p += 1;
			break;
		}
		if (unlikely(further < at + 16))
			return NULL;
		two_jumps();
		if (unlikely(further > limit))
			return NULL;
		p[1] = pc;
		p += 2;
		raw = word_at(further + 8);
		at = word_at(further);
		pc = native_strip(raw);
		if (unlikely(!marker_is_record(m, pc))) {
			at = further;
			break;
		}
		if (unlikely(at < further + 16))
			return NULL;
		two_jumps();
	}
	return likely(at == limit && raw == m->quick_value) ? p : NULL;
}

static inline __attribute__((always_inline))
int end_quick(struct thread *t, const uint64_t *pcs, int64_t n, int64_t rest)
{
	if (unlikely(t->captures >= t->marker.probe || n >= t->marker.bare_near ||
		     self_has_retired()))
		return end_bare(t, pcs, n, t->begun.fp, NULL);
	marked_end(t, true);
	return n + rest;
}

static int not_quick(uint64_t *pcs, struct thread *t);

static __attribute__((noinline, nonnull)) VERIFY_WIDE no_sanitize
int quick_wide(uint64_t *pcs, struct thread *t, uint64_t fp, uint64_t low, uint64_t limit)
{
	uint64_t *p = walk_quick(pcs, &t->marker, fp, low, limit);
	int64_t rest = t->marker.quick_rest;
	const uint64_t *out = t->marker.quick_out;

	if (unlikely(!p))
		return not_quick(pcs, t);
	if (rest <= 64)
		native_move_short(out, p, rest);
	else
		native_move_long(out, p, rest);
	return end_quick(t, pcs, p - pcs, rest);
}

static __attribute__((noinline, nonnull)) no_sanitize
int quick_plain(uint64_t *pcs, struct thread *t, uint64_t fp, uint64_t low,
		uint64_t limit)
{
	uint64_t *p = walk_quick(pcs, &t->marker, fp, low, limit);

	if (unlikely(!p))
		return not_quick(pcs, t);
	native_move(t->marker.quick_out, p, t->marker.quick_rest);
	return end_quick(t, pcs, p - pcs, t->marker.quick_rest);
}

static inline __attribute__((always_inline))
int walk_to(uint64_t limit, uint64_t *pcs, struct thread *t, uint64_t fp, uint64_t low)
{
	return verify_is_wide() ? quick_wide(pcs, t, fp, low, limit) :
				  quick_plain(pcs, t, fp, low, limit);
}

/* May there be so many entries before and behind the marker? */
static inline __attribute__((always_inline))
bool has_room(const struct markers *m, uint64_t low, uint64_t limit, unsigned int max)
{
	return (int64_t)((limit - low) / 16 + m->quick_rest) < (int)max;
}

/* Most often the marker was returned through, and the next one is near. */
static __attribute__((noinline)) int not_quick(uint64_t *pcs, struct thread *t)
{
	const struct markers *m = &t->marker;
	uint64_t low = load_relaxed(&t->busy_sp) & ~1ull, fp = t->begun.fp;

	if (!marker_returned(t))
		return capture_bare(pcs, t->begun.max, t->begun.opts, NULL, t, fp);
	if (!m->quick_limit || !has_room(m, low, m->quick_limit, t->begun.max))
		return walk_new(pcs, t->begun.max, t->begun.opts, NULL, t, fp);
	return walk_to(m->quick_limit, pcs, t, fp, low);
}

__attribute__((noinline)) no_sanitize
int marked_capture(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		   struct shstk_info *info, struct thread *t, uint64_t fp)
{
	struct markers *m = &t->marker;
	uint64_t low = load_relaxed(&t->busy_sp) & ~1ull, limit;

	if (unlikely(!asks_again(m, pcs, max, opts, info) ||
		     m->gen != rulecache_gen() || markers_stale(m) ||
		     !self_loads_same() || low < t->native.lo))
		return capture_asked(pcs, max, opts, info, t, fp);
	limit = m->quick_limit;
	if (unlikely(!has_room(m, low, limit, max)))
		return m->young->fp == fp ?
		       capture_same(pcs, max, opts, NULL, t, fp) :
		       walk_new(pcs, max, opts, NULL, t, fp);
	if (m->young->fp == fp)
		return capture_same(pcs, max, opts, NULL, t, fp);
	if (unlikely(bare_again(m, fp)))
		return walk_new(pcs, max, opts, NULL, t, fp);
	t->begun.fp = fp;
	t->begun.opts = opts;
	t->begun.max = max;
	return walk_to(limit, pcs, t, fp, low);
}

/* marked_again() was wrong. */
static __attribute__((noinline))
int other_trace(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		struct shstk_info *info, struct thread *t, uint64_t fp)
{
	t->marker.ra = t->marker.again_ra;
	return marked_capture(pcs, max, opts, info, t, fp);
}

/*
 * The same capture for the third time or more. The second one has found out what need
 * not be asked again; of what may have changed, all is compared.
 */
__attribute__((noinline)) VERIFY_WIDE no_sanitize
int marked_again(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		 struct shstk_info *info, struct thread *t, uint64_t fp)
{
	const struct markers *m = &t->marker;
	const struct frame *f;
	const uint64_t *out;
	int64_t n;

	if (unlikely((int)max < m->again_n || !asks_again(m, pcs, 0, opts, info)))
		return other_trace(pcs, max, opts, info, t, fp);
	/* Few registers are needed to go on, so that none has to be saved. */
	f = m->young;
	if (unlikely(f->fp != fp || m->gen != rulecache_gen() || markers_stale(m) ||
		     !self_loads_same() || t->captures >= m->probe))
		return other_trace(pcs, max, opts, NULL, t, fp);
	do {
		uint64_t at = f->fp;

		f++;
		if (unlikely(word_at(at) != f->fp || word_at(at + 8) != f->raw))
			return other_trace(pcs, max, opts, NULL, t,
					   load_relaxed(&m->young)->fp);
	} while (f < m->stop);
	out = m->again;
	n = m->again_n;
	if (n <= 64)
		native_move_again(out, pcs, n);
	else
		native_move_long(out, pcs, n);
	marked_end(t, true);
	return n;
}

int marked_identity(struct thread *t, uint64_t fp, uint64_t *id)
{
	struct markers *m = &t->marker;
	const uint64_t sp = load_relaxed(&t->busy_sp) & ~1ull;
	struct mark *k = &m->mark[m->n];
	unsigned int room;
	struct way way;

	if (!m->n || !may_walk(t, sp) || !t->native_known ||
	    sp >= t->native.hi)
		return -1;
	/* What is new goes where no trace is. */
	room = marker_out(m, m->young) - m->pcs;
	if (!room ||
	    walk_out(t, m->ra, sp, fp, m->pcs, room, &way) != TO_MARKER ||
	    !marker_older(t, way.slot, way.raw))
		return -1;
	k = &m->mark[m->n];
	t->reused = MARKER_ROOM - k->at;
	*id = marker_identity(m, k, m->pcs, way.n);
	if (unlikely(t->captures >= m->probe || way.n >= m->near))
		marker_met(t, m->pcs, way.n, way.far, sp, fp);
	return way.n + t->reused;
}
