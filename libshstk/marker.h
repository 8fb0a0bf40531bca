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
#define MARKER_AWAKE UINT64_MAX

/**
 * struct mark - one marker on the stack
 * @slot: where it lies.
 * @value: what was written there.
 * @raw: what was there before.
 * @hash: identity of the trace from the marked frame outwards, if @hashed.
 * @uses: captures that ended at it.
 * @retry: when there were so many, a nearer one is tried.
 * @at: first entry of that trace in the thread's array.
 * @trampoline: which one of the thread's.
 * @hashed: see @hash.
 */
struct mark {
	uint64_t slot, value, raw;
	uint64_t hash;
	uint64_t uses, retry;
	int32_t at;
	uint8_t trampoline;
	bool hashed;
};

/**
 * struct way - how far a walk to a marker has come
 * @pc: the frame that comes next, not yet written.
 * @raw: what was read at @slot.
 * @slot: where @pc was read; 0: it is the first frame.
 * @sp: the frame's registers.
 * @fp: see @sp.
 * @out: behind the last entry written.
 * @start: the first entry.
 * @end: behind the room for them.
 * @plain: frames that were left by another rule than that of a frame record.
 * @records: frames before the first of these.
 * @record: the last frame was left by its record, and @sp is only known to be that or more.
 */
struct way {
	uint64_t pc, raw, slot, sp, fp;
	uint64_t *out, *start, *end;
	int plain, records;
	bool record;
};

/**
 * struct markers - a thread's markers
 * @epoch: of the process-wide switch, as last seen.
 * @rest: @epoch while the thread has no markers and is to place none, else ~@epoch; so one
 *	comparison with the switch's epoch says that nothing is to be done for markers.
 * @asked: this thread's own switch: SHSTK_MARKERS_* or 0.
 * @on: place some.
 * @off: enum shstk_markers_status.
 * @n: number of @mark.
 * @near: a walk over so many frames places another one.
 * @pcs: MARKER_ROOM entries; the trace behind a marker ends where they end.
 * @mark: markers on the native stack, oldest first, from index 1 on.
 * @chunk: first of the thread's trampolines; 0: none so far.
 * @next: where to look for a free one.
 * @used: those that are in @mark or lost.
 * @lost: those whose frame was left without returning through them.
 * @dist: how far from the youngest frame the next one goes.
 * @poor: the last marker that is gone was not worth placing.
 * @patience: captures by one marker until a nearer one is tried.
 * @dear: captures that the memo would have made faster, from @dear_since on.
 * @dear_since: captures made then.
 * @nap: captures that pass without markers after too many such.
 * @asleep: none is placed until the thread has made so many captures; MARKER_AWAKE.
 * @way: of the walk in progress.
 * @gen: generation of the rules that @records is by.
 * @records: return addresses whose rule is native_is_record(), at their lowest bits or
 *	beside that.
 */
struct markers {
	uint32_t epoch;
	uint32_t rest;
	uint8_t asked;
	bool on;
	uint8_t off;
	int n;
	int near;
	uint64_t *pcs;
	struct mark mark[MARKER_MAX + 1];
	unsigned int chunk;
	unsigned int next;
	uint32_t used;
	uint32_t lost;
	int dist;
	bool poor;
	unsigned int patience;
	unsigned int dear;
	uint64_t dear_since;
	unsigned int nap;
	uint64_t asleep;
	struct way way;
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
