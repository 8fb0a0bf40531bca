// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * marked.c - captures of a thread with markers: walk to the youngest one, copy what
 * is known from there on; see marker.h.
 *
 * Most frames of code with frame pointers are left with two loads, one for the rule
 * and a few comparisons. No function is called on the way: what is called would push
 * callers out of the processor's predictor of returns.
 */
#include "capture.h"
#include "rulecache.h"
#include "self.h"
#include "verify.h"

enum target { TO_MARKER, TO_END, TO_OTHER };

/**
 * struct way - where a walk has come to
 * @n: frames written.
 * @far: frames with frame pointers before any other, or MARKER_PLAIN / 2: further
 *	out a marker is not found quickly.
 * @slot: of the marker.
 * @raw: the marker.
 */
struct way {
	int n, far;
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

	way->far = 0;
	for (;;) {
		/* Frames are 16 bytes at least, so the array is looked at once. */
		limit = min(last, low + 16 * (uint64_t)(end - p) - 16);
		from = p;
		while (likely(*marker_record(m, pc) == pc)) {
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
		if (*marker_record(m, pc) == pc) {
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
			way->far = p - pcs;
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
	way->far = plain ? max(way->far, MARKER_PLAIN / 2) : way->n;
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
	thread_count(t, reused);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_relaxed(&t->busy_sp, 0);
	return unlikely(info || self_has_retired()) ? after(info, pcs, n, reused) : n;
}

/* Is all as it was before, and the stack the thread's own? */
static inline bool may_walk(struct thread *t, uint64_t sp)
{
	const struct markers *m = &t->marker;

	return m->gen == rulecache_gen() && !markers_stale(m) &&
	       !self_loads_changed() && t->native_known &&
	       range_has(&t->native, sp);
}

/* is_simple(), most often the same question as the last time. */
static inline __attribute__((always_inline))
bool asks_simply(struct markers *m, const uint64_t *pcs, unsigned int max,
		 const struct shstk_opts *opts, const struct shstk_info *info)
{
	uint64_t first, rest;

	if (likely(pcs && !info && max <= INT32_MAX)) {
		if (!opts)
			return true;
		memcpy(&first, opts, sizeof(first));
		if (likely(first == m->simple)) {
			memcpy(&rest, &opts->skip, sizeof(rest));
			return !(rest | (uintptr_t)opts->marks);
		}
	}
	if (!is_simple(pcs, max, opts, info, SHSTK_USE_MARKER))
		return false;
	if (opts)
		memcpy(&m->simple, opts, sizeof(m->simple));
	return true;
}

/* A capture came to the youngest marker. Is another one due? */
static inline bool marker_note(struct markers *m, int n)
{
	m->mark[m->n].uses++;
	return --m->left <= 0 || n >= m->near;
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

	target = walk_out(t, m->ra, sp, fp, pcs, max, &way);
	n = way.n;
	if (target == TO_MARKER) {
		k = marker_older(m, way.slot, way.raw);
		rest = k ? MARKER_ROOM - k->at : 0;
		if (!k || n + rest > (int)max)
			return unmarked_capture(pcs, max, opts, info, t, fp);
		native_move(m->pcs + k->at, pcs + n, rest);
		if (marker_note(m, n))
			marker_met(t, pcs, n, way.far, sp, fp);
		return finish(t, info, pcs, n + rest, rest);
	}
	m->plain = target == TO_OTHER;
	if (m->plain || !n)
		return unmarked_capture(pcs, max, opts, info, t, fp);
	if (m->n || !m->wait)
		marker_consider(t, pcs, n, way.far, m->ra, sp, fp);
	else
		m->wait--;
	return finish(t, info, pcs, n, 0);
}

/* The end of a capture after which another marker is due. */
static __attribute__((noinline)) int capture_met(struct thread *t, const uint64_t *pcs,
						 int n, int rest, uint64_t fp,
						 struct shstk_info *info)
{
	marker_met(t, pcs, n, n, load_relaxed(&t->busy_sp) & ~1ull, fp);
	return finish(t, info, pcs, n + rest, rest);
}



typedef void (*move_fn)(const uint64_t *from, uint64_t *to, uint64_t n);

/* The end of one that met the youngest marker behind @n frames. */
static inline __attribute__((always_inline))
int complete(struct thread *t, uint64_t *pcs, int n, int rest, uint64_t fp,
	     struct shstk_info *info, move_fn move)
{
	move(t->marker.pcs + MARKER_ROOM - rest, pcs + n, rest);
	if (unlikely(marker_note(&t->marker, n)))
		return capture_met(t, pcs, n, rest, fp, info);
	return finish(t, info, pcs, n + rest, rest);
}

/* With many entries behind the marker: with what only some CPUs have, if possible. */
static __attribute__((noinline)) VERIFY_WIDE no_sanitize
int complete_wide(struct thread *t, uint64_t *pcs, int n, int rest, uint64_t fp,
		  struct shstk_info *info)
{
	return complete(t, pcs, n, rest, fp, info, native_move_wide);
}

/*
 * Code with frame pointers, and the youngest marker is met: as walk_out() and
 * capture_any(), without what that does not need. All calls are jumps.
 */
__attribute__((noinline)) no_sanitize
int marked_capture(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		   struct shstk_info *info, struct thread *t, uint64_t fp)
{
	struct markers *m = &t->marker;
	uint64_t low = load_relaxed(&t->busy_sp) & ~1ull, at = fp, odd = 0;
	uint64_t raw = m->ra, pc = native_strip(raw), limit;
	uint64_t *p = pcs, *end = pcs + max;
	const struct mark *k;
	int rest;

	if (unlikely(!asks_simply(m, pcs, max, opts, info) || !may_walk(t, low)))
		return unmarked_capture(pcs, max, opts, info, t, fp);
again:
	/* Frames are 16 bytes at least, so the array need not be looked at. */
	limit = min(t->native.hi - 16, low + 16 * (uint64_t)(end - p) - 16);
	while (likely(*marker_record(m, pc) == pc && at >= low && at <= limit)) {
		*p++ = pc;
		odd |= at;
		low = at + 16;
		raw = *(const stack_word *)(uintptr_t)(at + 8);
		at = *(const stack_word *)(uintptr_t)at;
		pc = native_strip(raw);
	}
	k = &m->mark[m->n];
	if (unlikely(k->slot != low - 8 || k->value != raw || odd & 7)) {
		if (at > limit && p < end && at <= t->native.hi - 16 &&
		    *marker_record(m, pc) == pc)
			goto again;
		return capture_any(pcs, max, opts, info, t, fp);
	}
	rest = MARKER_ROOM - k->at;
	if (unlikely(rest > end - p))
		return capture_any(pcs, max, opts, info, t, fp);
	if (rest > 32 && verify_is_wide())
		return complete_wide(t, pcs, p - pcs, rest, fp, info);
	return complete(t, pcs, p - pcs, rest, fp, info, native_move);
}

int marked_identity(struct thread *t, uint64_t fp, uint64_t *id)
{
	struct markers *m = &t->marker;
	const uint64_t sp = load_relaxed(&t->busy_sp) & ~1ull;
	struct mark *k = &m->mark[m->n];
	struct way way;

	/* What is new goes where no trace is. */
	if (!m->n || !may_walk(t, sp) || !k->at ||
	    walk_out(t, m->ra, sp, fp, m->pcs, k->at, &way) != TO_MARKER ||
	    !marker_older(m, way.slot, way.raw))
		return -1;
	k = &m->mark[m->n];
	t->reused = MARKER_ROOM - k->at;
	*id = marker_identity(m, k, m->pcs, way.n);
	if (unlikely(marker_note(m, way.n)))
		marker_met(t, m->pcs, way.n, way.far, sp, fp);
	return way.n + t->reused;
}
