/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rule.h - the unwind rule: how to step from a frame to its caller, in 64 bits.
 *
 * The rows of every format (.eh_frame, .debug_frame, ...) become such rules:
 *
 *	63        41 40      23 22       5 4     3 2    0
 *	+-----------+----------+----------+-------+------+
 *	|  cfa_off  |  ra_off  |  fp_off  | flags | kind |
 *	+-----------+----------+----------+-------+------+
 *
 * The offsets are signed numbers of 8-byte words. cfa_off leads from sp or fp to the
 * CFA, up to 32 MB; ra_off and fp_off lead from the CFA to the saved return address
 * and frame pointer, up to 1 MB (on arm64 these lie at the end of the frame that is
 * furthest from the CFA). A row that does not fit becomes RULE_FULL, and the
 * interpreter of the format steps over that frame.
 */
#ifndef SHSTK_RULE_H
#define SHSTK_RULE_H

#include "cfi.h"

/* This bit is set in every kind of rule that is not a plain addition. */
#define RULE_SPECIAL 4

enum rule_kind {
	RULE_NONE = 0, /* no unwind information covers the address */
	RULE_SP = 1, /* CFA = sp + cfa_off */
	RULE_FP = 2, /* CFA = fp + cfa_off */
	RULE_END = 4, /* the outermost frame */
	RULE_FULL = 5, /* the interpreter of the format is needed */
	RULE_SIGTRAMP = 6, /* a signal return trampoline, recognised by its code */
	RULE_GUESS = 7, /* code that no unwind information describes */
};

#define RULE_KIND(r) ((r)&7)
#define RULE_FP_SAVED (1u << 3) /* fp is at CFA + fp_off */
#define RULE_RA_SAVED (1u << 4) /* the return address is at CFA + ra_off, else in a register */
#define RULE_FORM(r) ((r)&31) /* kind and flags */

/* These macros make the fields of a rule from offsets in bytes, which are multiples of 8. */
#define RULE_CFA_MAX (1 << 25) /* cfa_off is below this */
#define RULE_OFF_MAX (1 << 20) /* ra_off and fp_off are below this */
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

/* Tells whether the offset of a saved register fits into a rule. */
static inline bool rule_off_fits(int64_t off)
{
	return !(off & 7) && off >= -RULE_OFF_MAX && off < RULE_OFF_MAX;
}

/*
 * Returns whether @row, which is marked as that of a signal frame, is of a function that was called: its return
 * address is where a call has pushed it or, where calls leave it in a register, still there or below the CFA, where
 * functions save it. Signal frames have it above the CFA. OCaml's runtime marks all functions that go from one stack
 * to another, since debuggers let callers be on a stack at a lower address for signal frames only.
 */
static inline bool rule_was_called(const struct machine *m, const struct cfi_row *row)
{
	if (row->ra != m->ra || row->type[m->sp] != REG_SAME)
		return false;
	if (row->type[m->ra] == REG_SAME)
		return m->ra_in_reg && !row->cfa_expr;
	if (row->type[m->ra] != REG_AT_CFA)
		return false;
	return m->ra_in_reg ? row->val[m->ra] < 0 : row->val[m->ra] == 8 * m->ra_off;
}

/* Returns the rule for @row on machine @m, or RULE_FULL if the row does not fit into a rule. */
uint64_t rule_from_row(const struct machine *m, const struct cfi_row *row);

#endif
