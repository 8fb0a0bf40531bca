/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marker.h - what a thread keeps of its markers: return addresses on its stack that were
 * replaced by the address of a trampoline. See Documentation/markers.rst.
 *
 * It is written by captures that interrupt no other one, on the thread's native stack;
 * what handlers do is said at each function.
 */
#ifndef MARKER_MARKER_H
#define MARKER_MARKER_H

#include "enter.h"
#include "shstk_marker.h"
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
 * @record: address of the frame record that it is part of.
 * @value: what was written there as its return address.
 * @raw: what was there before.
 * @rest: number of entries of the trace from the marked frame on.
 * @trampoline: which one of the thread's, counted from its first one.
 */
struct mark {
	uint64_t record, value, raw;
	uint32_t rest;
	uint8_t trampoline;
};

/**
 * struct markers - a thread's markers
 * @owner: state of the thread they belong to; NULL: free for another one. Since a thread may die
 *	without telling, they also are whoever's that gets that state of a thread next.
 * @status: enum shstk_marker_status.
 * @frames_to_pay: frames that captures have to walk before one is placed.
 * @n: number of markers.
 * @mark: markers on the native stack, oldest first, from index 1 on. The one at 0 stands for
 *	the end of the stack.
 * @chunk: number of the thread's first trampoline; 0: none so far.
 * @next: where to look for a free one.
 * @used: bits of those that are in @mark, and of those whose frame was left without returning
 *	through them.
 * @gen: generation of the rules that @records is by.
 * @records: return addresses into code with frame records, at their lowest bits.
 * @where: native_record_rule() of each of @records.
 * @room: the traces behind markers; they end where it ends.
 */
struct markers {
	struct thread *owner;
	uint8_t status;
	int frames_to_pay;
	int n;
	struct mark mark[MARKER_MAX + 1];
	unsigned int chunk;
	unsigned int next;
	uint32_t used;
	uint64_t gen;
	uint64_t records[MARKER_RECORDS];
	uint64_t where[MARKER_RECORDS];
	uint64_t room[MARKER_ROOM];
};

/* The calling thread's, once it has made a capture; NULL: it has none so far. */
extern __thread struct markers *markers_self __attribute__((tls_model("initial-exec")));

/* Those of the calling thread, whose state is @t; NULL: so far, or not any more, there are none. */
static inline struct markers *markers_of(const struct thread *t)
{
	struct markers *m = markers_self;

	return likely(m && m->owner == t) ? m : NULL;
}

/*
 * The same; they are made if there is memory, and fewer than there are trampolines for. Between
 * enter() and leave() of the outermost capture.
 */
struct markers *markers_get(struct thread *t);

/*
 * Put the true return addresses back, seen from stack pointer @sp. A capture may be interrupted:
 * what is known of the markers stays, and captures find out later that they are gone.
 */
void markers_give_back(const struct markers *m, uint64_t sp);

/*
 * All of them, and nothing is known of them any more. May be called in a handler, if it
 * does not interrupt a capture: no trampoline gets another use before the interrupted code
 * has gone on.
 */
void markers_take_back(struct markers *m, uint64_t sp);

#endif
