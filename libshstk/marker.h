/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marker.h - what a thread keeps of its markers: return addresses on its stack that were
 * replaced by the address of a trampoline. See Documentation/markers.rst.
 *
 * It is written by captures that interrupt no other one, on the thread's native stack;
 * what handlers do is said at each function.
 */
#ifndef SHSTK_MARKER_H
#define SHSTK_MARKER_H

#include "trampoline.h"

#define MARKER_CHUNK 32 /* trampolines of a thread, a power of two */
#define MARKER_EACH (MARKER_CHUNK - TRAMPOLINE_HEADER) /* those in use */
#define MARKER_MAX 22 /* markers on a stack at a time */
#define MARKER_LOST 8 /* frames left without a return before giving up */
#define MARKER_ROOM 16384 /* entries of a trace */
#define MARKER_RECORDS 1024 /* return addresses into code with frame records */
#define MARKER_ADVANCE 16384 /* frames that need not be walked for a thread's first ones */

/**
 * struct mark - one marker on the stack
 * @slot: where it lies.
 * @value: what was written there.
 * @raw: what was there before.
 * @hash: identity of the trace from the marked frame outwards, if @hashed.
 * @at: first entry of that trace in the thread's array.
 * @trampoline: which one of the thread's.
 * @hashed: see @hash.
 */
struct mark {
	uint64_t slot, value, raw;
	uint64_t hash;
	int32_t at;
	uint8_t trampoline;
	bool hashed;
};

/**
 * struct markers - a thread's markers
 * @epoch: of the process-wide switch, as last seen.
 * @asked: this thread's own switch: SHSTK_MARKERS_* or 0.
 * @on: place some.
 * @off: enum shstk_markers_status.
 * @frames_to_pay: frames that captures have to walk before one is placed.
 * @losses: captures that the memo would have made faster, less those that it would not.
 * @pause: captures that others make, while there is none.
 * @n: number of markers.
 * @mark: markers on the native stack, oldest first, from index 1 on. The one at 0 stands for
 *	the end of the stack.
 * @pcs: MARKER_ROOM entries; the trace behind a marker ends where they end.
 * @chunk: first of the thread's trampolines; 0: none so far.
 * @next: where to look for a free one.
 * @used: those that are in @mark or lost.
 * @lost: those whose frame was left without returning through them.
 * @gen: generation of the rules that @records is by.
 * @records: return addresses whose rule is native_is_record(), at their lowest bits.
 */
struct markers {
	uint32_t epoch;
	uint8_t asked;
	bool on;
	uint8_t off;
	int frames_to_pay;
	int losses;
	int pause;
	int n;
	struct mark mark[MARKER_MAX + 1];
	uint64_t *pcs;
	unsigned int chunk;
	unsigned int next;
	uint32_t used;
	uint32_t lost;
	uint64_t gen;
	uint64_t records[MARKER_RECORDS];
};

/* The process-wide switch; @epoch goes up with each change. */
struct marker_switch {
	uint32_t epoch;
	bool on;
};

extern struct marker_switch marker_switch __attribute__((visibility("hidden")));

#endif
