/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_rule.h - a frame, and a rule as walks remember it.
 *
 * Both walks have it, this module's and the one of bpf/: of the kernel it uses nothing but
 * its names of types.
 */
#ifndef USHSTK_WALK_RULE_H
#define USHSTK_WALK_RULE_H

#include "rules_rule.h"

/**
 * struct frame - what is known of a frame
 * @pc: program counter, or return address.
 * @sp: stack pointer.
 * @fp: frame pointer register, rbp or x29.
 * @other: rbx, or x30 (link register).
 */
struct frame {
	u64 pc, sp, fp, other;
};

/**
 * struct packed_rule - a rule as the walk remembers it
 * @key: number of the table << 32 | offset in it; 0: none.
 * @cfa: bytes from sp, or, with PACKED_FP, from fp to the CFA. With PACKED_SPECIAL: its
 *	kind, register, and CFA in words, see pack_special().
 * @fp: words from the CFA to where the caller's fp is, so less than 0; 0 if it is
 *	unchanged.
 * @saved: the same of what the rule's saved is.
 */
struct packed_rule {
	u64 key;
	u32 cfa;
	s16 fp, saved;
};

#define PACKED_FP 1u
#define PACKED_SPECIAL 2u
#define PACKED_FLAGS 7u

/* What the walk does not do in its loop; in one word as far as it fits. */
static inline u32 pack_special(u64 rule)
{
	unsigned int kind = ushstk_rule_kind(rule);
	int cfa = ushstk_rule_cfa(rule);

	if (cfa != (s16)cfa)
		kind = SHSTK_RULE_CUT;
	return (u32)cfa << 16 | ushstk_rule_reg(rule) << 8 | kind << 4 | PACKED_SPECIAL;
}

static inline void pack_rule(u64 rule, struct packed_rule *packed)
{
	unsigned int kind = ushstk_rule_kind(rule);
	unsigned int fp = ushstk_rule_fp(rule), saved = ushstk_rule_saved(rule);

	packed->fp = -fp;
	packed->saved = -saved;
	if (fp > S16_MAX || saved > S16_MAX)
		packed->cfa = pack_special(SHSTK_RULE_CUT);
	else if (kind == SHSTK_RULE_SP)
		packed->cfa = ushstk_rule_cfa(rule) * 8;
	else if (kind == SHSTK_RULE_FP)
		packed->cfa = ushstk_rule_cfa(rule) * 8 | PACKED_FP;
	else
		packed->cfa = pack_special(rule);
}

static inline unsigned int packed_kind(u32 cfa)
{
	return cfa >> 4 & SHSTK_RULE_KIND_MASK;
}

static inline unsigned int packed_reg(u32 cfa)
{
	return cfa >> 8 & SHSTK_RULE_REG_MASK;
}

static inline s64 packed_cfa(u32 cfa)
{
	return (s64)((s32)cfa >> 16) * 8;
}

/* One addressing mode of the processor. */
static __always_inline u64 at_words(u64 addr, s64 words)
{
	return addr + 8 * words;
}

#endif /* USHSTK_WALK_RULE_H */
