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
 * @record: the frame record that it is part of.
 * @value: what was written as its return address.
 * @raw: what was there before.
 * @rest: number of entries of the trace from the marked frame on.
 * @trampoline: which one of the thread's.
 */
struct mark {
	uint64_t record, value, raw;
	uint32_t rest;
	uint8_t trampoline;
};

/**
 * struct markers - a thread's markers
 * @epoch: of the process-wide switch, as last seen.
 * @asked: this thread's own switch: SHSTK_MARKERS_* or 0.
 * @status: enum shstk_markers_status.
 * @frames_to_pay: frames that captures have to walk before one is placed.
 * @n: number of markers.
 * @mark: markers on the native stack, oldest first, from index 1 on. The one at 0 stands for
 *	the end of the stack.
 * @end: of an array of MARKER_ROOM entries; the traces behind markers end there.
 * @chunk: first of the thread's trampolines; 0: none so far.
 * @next: where to look for a free one.
 * @used: those that are in @mark, and those whose frame was left without returning through
 *	them.
 * @gen: generation of the rules that @records is by.
 * @records: return addresses into code with frame records, at their lowest bits.
 * @where: their native_record_rule().
 */
struct markers {
	uint32_t epoch;
	uint8_t asked;
	uint8_t status;
	int frames_to_pay;
	int n;
	struct mark mark[MARKER_MAX + 1];
	uint64_t *end;
	unsigned int chunk;
	unsigned int next;
	uint32_t used;
	uint64_t gen;
	uint64_t records[MARKER_RECORDS];
	uint64_t where[MARKER_RECORDS];
};

/* The process-wide switch; @epoch goes up with each change. */
struct marker_switch {
	uint32_t epoch;
	bool on;
};

extern struct marker_switch marker_switch __attribute__((visibility("hidden")));

#endif
