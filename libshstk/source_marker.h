/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_marker.h - captures by markers: walk to the nearest one, copy what was found
 * behind it. See Documentation/markers.rst.
 *
 * In a build without them (MARKERS=0, and machines that have none) there is never one at
 * work or on a stack, so that the compiler leaves out what is done then.
 */
#ifndef SHSTK_SOURCE_MARKER_H
#define SHSTK_SOURCE_MARKER_H

#include "enter.h"

/* Are markers on, or was a switch changed? */
static inline __attribute__((always_inline)) bool marker_at_work(const struct thread *t)
{
#if HAVE_TRAMPOLINE
	return unlikely(t->marker.status == SHSTK_MARKERS_ON ||
			t->marker.epoch != load_relaxed(&marker_switch.epoch));
#else
	(void)t;
	return false;
#endif
}

/* Is there one on the stack? */
static inline __attribute__((always_inline)) bool marker_on_stack(const struct thread *t)
{
#if HAVE_TRAMPOLINE
	return unlikely(t->marker.n);
#else
	(void)t;
	return false;
#endif
}

/*
 * The call of which these are in registers, and @opts and @fp in @t->call: @info, @ra and @sp are
 * where shstk_capture() has them for its other sources, which would pay for a move of one. It
 * allows markers, and enter_outermost() was called. Returns what the call does: if no marker is
 * of use, the memo goes on.
 */
int marker_capture(uint64_t *pcs, unsigned int max, struct thread *t, struct shstk_info *info,
		   uint64_t ra, uint64_t sp);

/*
 * Another source has made the capture @c: @n entries, from there to the outermost frame, and
 * no marker is on the stack. Place one, if that may pay. Between enter() and leave().
 */
void marker_learn(struct thread *t, const struct call *c, int n);

/*
 * Put the true return addresses back, seen from stack pointer @sp. A capture may be interrupted:
 * what is known of the markers stays, and captures find out later that they are gone.
 */
void marker_give_back(struct thread *t, uint64_t sp);

/*
 * All of them, and nothing is known of them any more. May be called in a handler, if it
 * does not interrupt a capture: no trampoline gets another use before the interrupted code
 * has gone on.
 */
void marker_take_back(struct thread *t, uint64_t sp);

/* enum shstk_markers_status. Looks at the switches again if they were changed. */
int marker_status(struct markers *m);

/* Nothing is on the stack, nobody asked. */
#if HAVE_TRAMPOLINE
void marker_reset(struct thread *t);
#else
static inline void marker_reset(struct thread *t)
{
	(void)t;
}
#endif

#endif
