/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marker.h - the markers of a thread: return addresses on its stack that were replaced by
 * the address of a trampoline. See Documentation/markers.rst.
 *
 * Captures that do not interrupt another capture, on the thread's native stack, write this
 * state. The comment of each function tells what signal handlers may do.
 */
#ifndef MARKER_MARKER_H
#define MARKER_MARKER_H

#include "enter.h"
#include "shstk_marker.h"
#include "trampoline.h"

#define MARKER_CHUNK 32 /* trampolines of a thread, a power of two */
#define MARKER_EACH (MARKER_CHUNK - TRAMPOLINE_HEADER) /* trampolines that a thread uses */
#define MARKER_MAX 22 /* most markers on a stack at a time */
#define MARKER_LOST 8 /* after so many frames left without a return the thread gives up */
#define MARKER_ROOM 16384 /* most entries of a trace */
#define MARKER_RECORDS 1024 /* most return addresses into code with frame records */
#define MARKER_ADVANCE 16384 /* walked frames that a thread is credited with at its start */

/**
 * struct mark - one marker on the stack
 * @record: address of the frame record whose return address was replaced.
 * @value: the marker that was written as the return address.
 * @raw: the return address that was there before.
 * @rest: number of entries of the trace from the marked frame on.
 * @trampoline: number of the trampoline, counted from the thread's first one.
 */
struct mark {
	uint64_t record, value, raw;
	uint32_t rest;
	uint8_t trampoline;
};

/**
 * struct markers - a thread's markers
 * @owner: state of the thread that the markers belong to; NULL if another thread may take them.
 *	A thread may die without releasing them: then they belong to the thread that gets its
 *	state next.
 * @status: enum shstk_marker_status.
 * @frames_to_pay: number of frames that captures have to walk before a marker is placed.
 * @n: number of markers on the stack.
 * @mark: the markers on the native stack, the oldest first, from index 1 on. The element at
 *	index 0 stands for the end of the stack.
 * @chunk: number of the thread's first trampoline; 0 if it has none so far.
 * @next: where the search for a free trampoline begins.
 * @used: a bit for each trampoline that is in @mark, or whose frame was left without a return
 *	through it.
 * @number: number of the generation of the unwind rules that @records was made by.
 * @records: return addresses into code with frame records; record_place() of an address is its
 *	index.
 * @where: native_record_rule() of each element of @records.
 * @room: the traces behind the markers; all of them end at the end of @room.
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
	uint64_t number;
	uint64_t records[MARKER_RECORDS];
	uint64_t where[MARKER_RECORDS];
	uint64_t room[MARKER_ROOM];
};

/* The markers of the calling thread; NULL until it makes its first capture. */
extern __thread struct markers *markers_self __attribute__((tls_model("initial-exec")));

/*
 * Returns the markers of the calling thread, whose state is @t, or NULL if it has none, or does
 * not have them any more.
 */
static inline struct markers *markers_of(const struct thread *t)
{
	struct markers *m = markers_self;

	return likely(m && m->owner == t) ? m : NULL;
}

/*
 * Returns the markers of the calling thread, and makes them if it has none. Returns NULL if there
 * is no memory, or if there are as many as there are trampolines for. To be called between enter()
 * and leave() of the outermost capture.
 */
struct markers *markers_get(struct thread *t);

/*
 * Puts the true return addresses back. @sp: the stack pointer of the caller. It may be called
 * while a capture is interrupted, because it does not change @m: later captures find out that
 * the markers are gone.
 */
void markers_give_back(const struct markers *m, uint64_t sp);

/*
 * Puts all true return addresses back and forgets the markers. A signal handler may call it if
 * it does not interrupt a capture: no trampoline is used again before the interrupted code has
 * gone on.
 */
void markers_take_back(struct markers *m, uint64_t sp);

#endif
