/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frame.h - leaves an ordinary frame: its CFA is sp or fp plus a constant, and the return address
 * and perhaps the saved frame pointer lie at fixed distances from the CFA.
 *
 * Captures of own threads leave ordinary frames only by these functions. Addresses are given as
 * distances from the end of the stack, as unsigned numbers that wrap: -8 is the last word of the
 * stack. An address A lies on the stack, at @sp or further out, exactly if A - sp is less than -sp,
 * so that one comparison checks both bounds.
 */
#ifndef SHSTK_FRAME_H
#define SHSTK_FRAME_H

#include "native.h"
#include "rulecache.h"

/**
 * struct frame_exit - the way from a frame to its caller
 * @cfa: stack pointer of the caller.
 * @ra: place of the word that holds the caller's pc.
 * @fp: place of the word that holds the caller's frame pointer, if the rule has RULE_FP_SAVED.
 */
struct frame_exit {
	uint64_t cfa, ra, fp;
};

/* Returns true if @rule is the rule of an ordinary frame. */
static inline bool frame_is_ordinary(uint64_t rule)
{
	return (rule & (RULE_SPECIAL | RULE_RA_SAVED)) == RULE_RA_SAVED;
}

/*
 * Computes in @x how to leave an ordinary frame with the registers @sp and @fp by @rule. Returns
 * false if the frame does not lie on the stack.
 */
static inline __attribute__((always_inline)) bool frame_leave(uint64_t rule, uint64_t sp,
							      uint64_t fp, struct frame_exit *x)
{
	x->cfa = (rule & RULE_FP ? fp : sp) + rule_cfa_off(rule);
	x->ra = x->cfa + native_ra_off(rule);
	x->fp = x->cfa + rule_fp_off(rule);
	/*
	 * If the return address is the last word of the frame, its place shows that all of the
	 * frame is inside the stack.
	 */
	if (unlikely(x->ra - sp >= -sp || x->ra & 7 || (!NATIVE_RA_FIXED && (int64_t)x->cfa > 0)))
		return false;
	return !(rule & RULE_FP_SAVED) || likely(x->fp - sp < -sp);
}

/*
 * Does what frame_leave() does, by a @rule in the form of a cache entry. Returns false also if the
 * frame is not ordinary. If RULECACHE_ODD is clear, it is enough that the CFA lies inside the
 * stack.
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
 * Returns true if the step by the cached @rule uses fp. A rule that uses fp is odd; that is asked
 * first, because frame_leave_cached() has just asked it, too.
 */
static inline bool frame_cached_uses_fp(uint64_t rule)
{
	return rulecache_is_odd(rule) && rule & RULE_FP;
}

/*
 * Returns true if a return address of 0 ends the stack in a frame whose frame pointer is @fp. On
 * machines whose outermost frame has a frame pointer of 0, another @fp speaks against it.
 */
static inline bool frame_zero_ends(uint64_t fp)
{
	return !NATIVE_MACHINE.fp_ends || !fp;
}

/* Returns the word of a stack at distance @at from the stack's end @hi. */
static inline no_sanitize uint64_t frame_word(uint64_t hi, uint64_t at)
{
	return *(const volatile uint64_t *)(uintptr_t)(hi + at);
}

#endif
