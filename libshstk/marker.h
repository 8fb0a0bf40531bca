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
#define MARKER_MAX 20		/* markers on a stack at a time */
#define MARKER_LOST 8		/* frames left without a return before giving up */
#define MARKER_ROOM 16384	/* entries of a trace */
#define MARKER_NEAR 2		/* distance from the youngest frame: at least */
#define MARKER_FAR 16		/* ... at most */
#define MARKER_GAP 8		/* so much further, and another one is placed */
#define MARKER_YOUNG (MARKER_FAR + MARKER_GAP + 1)

/**
 * struct mark - one marker on the stack
 * @slot: where it lies.
 * @value: what was written there.
 * @raw: what was there before.
 * @hash: identity of the trace from the marked frame outwards, if @hashed.
 * @at: first entry of that trace in the thread's array.
 * @uses: captures that ended at it.
 * @record: its trampoline, from the first of the thread's chunk.
 * @hashed: see @hash.
 */
struct mark {
	uint64_t slot;
	uint64_t value;
	uint64_t raw;
	uint64_t hash;
	int32_t at;
	uint32_t uses;
	uint8_t record;
	bool hashed;
};

/**
 * struct young - the frames below the youngest marker, as the last capture met them
 * @n: their number; 0: not known. The last slot is the marker's.
 * @nfp: number of @fp_addr.
 * @at: the first one's entry in the thread's array.
 * @uses_fp: a step uses the frame pointer the capture began with: @fp.
 * @gen: generation of the rules.
 * @sp: where the capture began.
 * @fp: see @uses_fp.
 * @first: return address the capture began with, as it was in its slot.
 * @hash: identity of the whole trace, if @hashed.
 * @hashed: see @hash.
 * @slot: where each frame's return address lies, and @raw, what was read there.
 * @raw: see @slot.
 * @cfa: each frame's CFA.
 * @fp_addr: saved frame pointers that steps use, and @fp_val, their values.
 * @fp_val: see @fp_addr.
 */
struct young {
	int n, nfp, at;
	bool uses_fp;
	bool hashed;
	uint64_t gen;
	uint64_t sp, fp, first;
	uint64_t hash;
	uint64_t slot[MARKER_YOUNG];
	uint64_t raw[MARKER_YOUNG];
	uint64_t cfa[MARKER_YOUNG];
	uint64_t fp_addr[MARKER_YOUNG];
	uint64_t fp_val[MARKER_YOUNG];
};

/**
 * struct markers - a thread's markers
 * @epoch: of the process-wide switch, as last seen.
 * @asked: this thread's own switch: SHSTK_MARKERS_* or 0.
 * @on: place some.
 * @off: enum shstk_markers_off.
 * @n: number of @mark.
 * @mark: markers on the native stack, oldest first.
 * @chunk: first of the thread's trampolines; 0: none so far.
 * @next: where to look for a free one.
 * @used: those that are in @mark or lost.
 * @lost: those whose frame was left without returning through them.
 * @dist: how far from the youngest frame the next one goes.
 * @misses: markers in a row that were not worth it.
 * @wait: captures that go without.
 * @pcs: MARKER_ROOM entries; traces end at its end.
 * @young: the frames below the youngest marker.
 */
struct markers {
	uint32_t epoch;
	uint8_t asked;
	bool on;
	uint8_t off;
	int n;
	struct mark mark[MARKER_MAX];
	unsigned int chunk;
	unsigned int next;
	uint32_t used;
	uint32_t lost;
	unsigned int dist;
	unsigned int misses;
	unsigned int wait;
	uint64_t *pcs;
	struct young young;
};

/* The process-wide switch; @epoch goes up with each change. */
struct marker_switch {
	uint32_t epoch;
	bool on;
};

extern struct marker_switch marker_switch __attribute__((visibility("hidden")));

struct thread;

/* Nothing is on the stack, nobody asked. */
void markers_reset(struct markers *m);

/*
 * Put all true return addresses back, seen from stack pointer @sp. May be called
 * in a handler, if it does not interrupt a capture: no trampoline gets another
 * use before the interrupted code has gone on.
 */
void markers_take_back(struct thread *t, uint64_t sp);

/* After many captures in one place: try a nearer marker. */
void marker_stands(struct markers *m);

/*
 * Are the frames down to the marker those of the last capture, word by word? Then
 * the trace is in @m->pcs from @m->young.at on.
 */
static inline no_sanitize bool marker_same(struct markers *m, uint64_t raw,
					   uint64_t sp, uint64_t fp)
{
	const struct young *y = &m->young;
	uint64_t d = 0;
	int i;

	if (!y->n || y->sp != sp || y->first != raw || (y->uses_fp && y->fp != fp) ||
	    y->gen != rulecache_gen())
		return false;
	for (i = 0; i < y->n; i++)
		d |= *(const volatile uint64_t *)(uintptr_t)y->slot[i] ^ y->raw[i];
	for (i = 0; i < y->nfp; i++)
		d |= *(const volatile uint64_t *)(uintptr_t)y->fp_addr[i] ^
		     y->fp_val[i];
	if (unlikely(d))
		return false;
	if (unlikely(++m->mark[m->n - 1].uses % 256 == 0 && y->n / 2 >= MARKER_NEAR)) {
		marker_stands(m);
		return y->n;
	}
	return true;
}

/*
 * Capture down to a marker and take the rest from what is known. -1: there is none
 * near. The capture was entered, and is the outermost one.
 */
int marker_capture(struct thread *t, uint64_t *pcs, unsigned int max, uint64_t raw,
		   uint64_t sp, uint64_t fp, uint64_t *id);

/*
 * @pcs is the whole trace, of the native stack alone: place a marker in it, if that
 * may pay.
 */
void marker_consider(struct thread *t, const uint64_t *pcs, int n, uint64_t raw,
		     uint64_t sp, uint64_t fp);

/* Place some? Looks at the switches again if they were changed. */
bool markers_on(struct markers *m);

/* Is it any use to call marker_consider()? */
static inline bool markers_wanted(const struct markers *m)
{
	return (m->on && !m->wait) ||
	       m->epoch != load_relaxed(&marker_switch.epoch);
}

/* The same for a capture that begins: those that wait are counted. */
static inline bool markers_due(struct markers *m)
{
	if (unlikely(m->wait)) {
		m->wait--;
		return false;
	}
	return unlikely(markers_wanted(m));
}

#endif
