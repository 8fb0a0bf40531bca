/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frame.h - leave an ordinary frame: one whose CFA is sp or fp plus a constant, with the
 * return address and perhaps the saved frame pointer at fixed places from there.
 *
 * This is the only place where captures of own threads do so. Addresses are given as
 * distances from the end of the stack, as unsigned numbers that wrap: -8 is its last
 * word. An address A lies on the stack, at @sp or further out, exactly if A - sp is less
 * than -sp, so that one comparison checks both bounds.
 */
#ifndef SHSTK_FRAME_H
#define SHSTK_FRAME_H

#include "native.h"
#include "rulecache.h"

/**
 * struct frame_exit - what leads from a frame to its caller
 * @cfa: the caller's stack pointer.
 * @ra: where the caller's pc lies.
 * @fp: where its frame pointer lies, if the rule has RULE_FP_SAVED.
 */
struct frame_exit {
	uint64_t cfa, ra, fp;
};

/* Is it the rule of an ordinary frame? */
static inline bool frame_is_ordinary(uint64_t rule)
{
	return (rule & (RULE_SPECIAL | RULE_RA_SAVED)) == RULE_RA_SAVED;
}

/*
 * The exit of an ordinary frame with registers @sp and @fp, by @rule. False: it does not
 * lie on the stack.
 */
static inline __attribute__((always_inline)) bool frame_leave(uint64_t rule, uint64_t sp,
							      uint64_t fp, struct frame_exit *x)
{
	x->cfa = (rule & RULE_FP ? fp : sp) + rule_cfa_off(rule);
	x->ra = x->cfa + native_ra_off(rule);
	x->fp = x->cfa + rule_fp_off(rule);
	/* A return address that is the frame's last word says that all of the frame is inside. */
	if (unlikely(x->ra - sp >= -sp || x->ra & 7 || (!NATIVE_RA_FIXED && (int64_t)x->cfa > 0)))
		return false;
	return !(rule & RULE_FP_SAVED) || likely(x->fp - sp < -sp);
}

/*
 * The same by @rule as it is in an entry of the cache. False also if the frame is not
 * ordinary. If RULECACHE_ODD is clear, a CFA inside the stack is enough.
 */
static inline __attribute__((always_inline)) bool
frame_leave_cached(uint64_t rule, uint64_t sp, uint64_t fp, struct frame_exit *x)
{
	if (likely(rulecache_is_even(rule))) {
		x->cfa = sp + rule_cfa_off(rule);
		x->ra = x->cfa + native_ra_off(rule);
		x->fp = x->cfa + rule_fp_off(rule);
		return likely((int64_t)x->cfa <= 0);
	}
	return frame_is_ordinary(rule) && frame_leave(rule & ~RULECACHE_ODD, sp, fp, x);
}

/*
 * Does the step by such a rule use fp? It is odd then: asked first, as frame_leave_cached() has
 * just asked the same.
 */
static inline bool frame_cached_uses_fp(uint64_t rule)
{
	return rulecache_is_odd(rule) && rule & RULE_FP;
}

/*
 * Does a return address of 0 end the stack, in a frame whose frame pointer is @fp? On machines
 * whose outermost frame has none, a value speaks against it.
 */
static inline bool frame_zero_ends(uint64_t fp)
{
	return !NATIVE_MACHINE.fp_ends || !fp;
}

/* A word of the stack that ends at @hi, at distance @at from there. */
static inline no_sanitize uint64_t frame_word(uint64_t hi, uint64_t at)
{
	return *(const volatile uint64_t *)(uintptr_t)(hi + at);
}

#endif
