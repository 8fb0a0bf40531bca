/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_marker.h - captures by markers: walk to the nearest one, copy what was found
 * behind it. See Documentation/markers.rst. A build without them (MARKERS=0, and machines
 * that have none) has the second half of this file in the place of source_marker.c.
 */
#ifndef SHSTK_SOURCE_MARKER_H
#define SHSTK_SOURCE_MARKER_H

#include "enter.h"

#if HAVE_TRAMPOLINE
/* Are there markers, or is one to be placed? Or was a switch changed? */
static inline bool marker_at_work(const struct thread *t)
{
	return unlikely(t->marker.rest != load_relaxed(&marker_switch.epoch));
}

/* Is there one on the stack? */
static inline bool marker_on_stack(const struct thread *t)
{
	return unlikely(t->marker.n);
}

/*
 * The call in @t->call, which call_is_simple() and allows markers, after enter_alone().
 * Returns the number of entries. Goes on at source_after_marker() if it is nothing for
 * markers.
 */
int marker_capture(uint64_t *pcs, struct thread *t);

/*
 * The identity of the trace of that call, its outermost entry, and the number of its
 * entries; 0: it does not come to a marker.
 */
int marker_identity(struct thread *t, uint64_t *id, uint64_t *end_pc);

/*
 * Another source has made the capture @c: @n entries, from there to the outermost frame.
 * Place a marker, if that may pay. Between enter() and leave().
 */
void marker_learn(struct thread *t, const struct call *c, int n);

/*
 * Put all true return addresses back, seen from stack pointer @sp. May be called in a
 * handler, if it does not interrupt a capture: no trampoline gets another use before the
 * interrupted code has gone on.
 */
void marker_take_back(struct thread *t, uint64_t sp);

/*
 * The same, of one of the thread's markers, or of all if @only is NULL, where a capture may
 * be interrupted. What is known of them stays: captures find out later that they are gone.
 */
void marker_give_back(struct markers *m, const struct trampoline *only);

/* Place some? Looks at the switches again if they were changed. */
bool marker_is_on(struct thread *t);

/* So many captures were made that markers may be tried again. */
void marker_wake(struct thread *t);

/* Nothing is on the stack, nobody asked. */
void marker_reset(struct thread *t);
#else
static inline bool marker_at_work(const struct thread *t)
{
	(void)t;
	return false;
}

static inline bool marker_on_stack(const struct thread *t)
{
	(void)t;
	return false;
}

static inline int marker_capture(uint64_t *pcs, struct thread *t)
{
	(void)pcs;
	(void)t;
	return 0;
}

static inline int marker_identity(struct thread *t, uint64_t *id, uint64_t *end_pc)
{
	(void)t;
	(void)id;
	(void)end_pc;
	return 0;
}

static inline void marker_learn(struct thread *t, const struct call *c, int n)
{
	(void)t;
	(void)c;
	(void)n;
}

static inline void marker_take_back(struct thread *t, uint64_t sp)
{
	(void)t;
	(void)sp;
}

static inline void marker_wake(struct thread *t)
{
	(void)t;
}

static inline void marker_reset(struct thread *t)
{
	(void)t;
}
#endif

#endif
