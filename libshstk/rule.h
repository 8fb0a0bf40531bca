/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rule.h - the one representation of "how to step over this frame".
 *
 * Every format (.eh_frame, .debug_frame, ...) becomes a 64-bit rule:
 *
 *	63        41 40      23 22       5 4     3 2    0
 *	+-----------+----------+----------+-------+------+
 *	|  cfa_off  |  ra_off  |  fp_off  | flags | kind |
 *	+-----------+----------+----------+-------+------+
 *
 * All in signed words: cfa_off from sp or fp to the CFA, up to 32 MB; ra_off and
 * fp_off from the CFA to the saved return address and frame pointer, up to 1 MB (on
 * arm64 they lie at the end of a frame that is furthest from the CFA). What does not
 * fit is RULE_FULL: the format's own interpreter steps over that frame.
 */
#ifndef SHSTK_RULE_H
#define SHSTK_RULE_H

#include "cfi.h"

/* RULE_SPECIAL is set in every kind that is not a plain addition. */
#define RULE_SPECIAL 4

enum rule_kind {
	RULE_NONE = 0, /* no information covers the address */
	RULE_SP = 1, /* CFA = sp + cfa_off */
	RULE_FP = 2, /* CFA = fp + cfa_off */
	RULE_END = 4, /* the outermost frame */
	RULE_FULL = 5, /* needs the interpreter */
	RULE_SIGTRAMP = 6, /* signal return trampoline, known by its code */
	RULE_GUESS = 7, /* code, but nothing describes it */
};

#define RULE_KIND(r) ((r)&7)
#define RULE_FP_SAVED (1u << 3) /* fp is at CFA + fp_off */
#define RULE_RA_SAVED (1u << 4) /* pc is at CFA + ra_off, else in a register */
#define RULE_FORM(r) ((r)&31) /* kind and flags */

/* Offsets in bytes, multiples of 8, as they are in a rule. */
#define RULE_CFA_MAX (1 << 25) /* one beyond */
#define RULE_OFF_MAX (1 << 20) /* one beyond */
#define RULE_OFF_MASK 0x3ffffull
#define RULE_CFA(off) ((uint64_t)((off) / 8) << 41)
#define RULE_RA_AT(off) (((uint64_t)((off) / 8) & RULE_OFF_MASK) << 23)
#define RULE_FP_AT(off) (((uint64_t)((off) / 8) & RULE_OFF_MASK) << 5)
#define RULE_RA_AT_ALL (RULE_OFF_MASK << 23)
#define RULE_FP_AT_ALL (RULE_OFF_MASK << 5)

static inline int64_t rule_cfa_off(uint64_t r)
{
	return ((int64_t)r >> 41) * 8;
}

static inline int64_t rule_ra_off(uint64_t r)
{
	return ((int64_t)(r << 23) >> 46) * 8;
}

static inline int64_t rule_fp_off(uint64_t r)
{
	return ((int64_t)(r << 41) >> 46) * 8;
}

/* Does a saved register's place fit? */
static inline bool rule_off_fits(int64_t off)
{
	return !(off & 7) && off >= -RULE_OFF_MAX && off < RULE_OFF_MAX;
}

/* The rule for @row, for @m: RULE_FULL if it does not fit. */
uint64_t rule_from_row(const struct machine *m, const struct cfi_row *row);

#endif
