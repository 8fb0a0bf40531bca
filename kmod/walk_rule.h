/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_rule.h - a frame, and a rule in the form in which walks remember it.
 *
 * Two walks share this file, the one of this module and the one in bpf/. It uses nothing of the
 * kernel but its type names.
 */
#ifndef USHSTK_WALK_RULE_H
#define USHSTK_WALK_RULE_H

#include "rules_rule.h"

/**
 * struct frame - what is known of a frame
 * @pc: program counter, or return address.
 * @sp: stack pointer.
 * @fp: frame pointer register: rbp or x29.
 * @other: rbx on x86, x30 (the link register) on arm64.
 */
struct frame {
	u64 pc, sp, fp, other;
};

/**
 * struct packed_rule - a rule in the form in which a walk remembers it
 * @key: number of the table << 32 | offset in the table; 0 if the slot is empty.
 * @cfa: bytes from sp or, with PACKED_FP, from fp to the CFA. With PACKED_SPECIAL, it holds the
 *	kind, the register and the CFA in words, see pack_special().
 * @fp: words from the CFA to the saved fp of the caller, so negative; 0 if fp is unchanged.
 * @saved: words from the CFA to the saved rbx (x86) or return address (arm64), so negative; 0 if it
 *	is unchanged.
 */
struct packed_rule {
	u64 key;
	u32 cfa;
	s16 fp, saved;
};

#define PACKED_FP 1u
#define PACKED_SPECIAL 2u
#define PACKED_FLAGS 7u

/* A kind that no table has: no kind can express the frame, and it has no frame record either. */
#define PACKED_LOST SHSTK_RULE_KIND_MASK

/*
 * Packs a rule that the loop cannot handle into one word. If the CFA does not fit, the result is
 * PACKED_LOST or SHSTK_RULE_CUT.
 */
static inline u32 pack_special(u64 rule)
{
	unsigned int kind = ushstk_rule_kind(rule);
	int cfa = ushstk_rule_cfa(rule);

	if (cfa == SHSTK_RULE_CFA_MAX)
		kind = PACKED_LOST;
	else if (cfa != (s16)cfa)
		kind = SHSTK_RULE_CUT;
	return (u32)cfa << 16 | ushstk_rule_reg(rule) << 8 | kind << 4 | PACKED_SPECIAL;
}

/* Packs a rule into the form in which walks remember it. The caller sets the key. */
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

/* Returns @addr plus @words words. It is one addressing mode of the processor. */
static __always_inline u64 at_words(u64 addr, s64 words)
{
	return addr + 8 * words;
}

#endif /* USHSTK_WALK_RULE_H */
