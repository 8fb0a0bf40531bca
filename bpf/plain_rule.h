/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plain_rule.h - what a plain rule says of a frame that is passed in the loop.
 *
 * The including file defines __always_inline and the types of kmod/walk_rule.h.
 */
#ifndef BPF_PLAIN_RULE_H
#define BPF_PLAIN_RULE_H

#include "kmod/walk_rule.h"

/*
 * Where a rule's fp and saved say that registers are saved: bytes from the CFA, so negative; 0 if they are
 * unchanged. @words: all of the rule but its key, which is read at once. The lowest bits are the CFA's.
 */
static __always_inline s64 fp_bytes(u64 words)
{
	/* A CFA that leads to a piece of the stack has none of the bits that are not shifted out. */
	return (s64)(words << 16) >> 45;
}

static __always_inline s64 saved_bytes(u64 words)
{
	return ((s64)words >> 48) * 8;
}

/*
 * Sets @ret to the CFA of @f, if its rule is plain and the stack grows. Returns whether it does. @f->sp and the
 * CFA count from @base, which is a multiple of 8, as @f->sp is.
 */
static __always_inline bool plain_cfa(u64 base, u32 cfa, const struct frame *f, u64 *ret)
{
	u64 bytes = cfa;

	if (cfa & PACKED_FLAGS) {
		bytes = f->fp + cfa - PACKED_FP - base - f->sp;
		if (cfa & PACKED_SPECIAL || bytes & 7 || (s64)bytes <= 0)
			return false;
	}
	*ret = f->sp + bytes;
	return true;
}

#endif /* BPF_PLAIN_RULE_H */
