/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_rule.h - functions that read the fields of an unwind rule.
 *
 * This file is also compiled in user space and in BPF programs, so it uses nothing of the kernel.
 */
#ifndef USHSTK_RULES_RULE_H
#define USHSTK_RULES_RULE_H

#include <linux/shstk_rules.h>
#include <linux/types.h>

static inline unsigned int ushstk_rule_kind(__u64 rule)
{
	return rule & SHSTK_RULE_KIND_MASK;
}

static inline unsigned int ushstk_rule_reg(__u64 rule)
{
	return rule >> SHSTK_RULE_REG_SHIFT & SHSTK_RULE_REG_MASK;
}

static inline unsigned int ushstk_rule_saved(__u64 rule)
{
	return rule >> SHSTK_RULE_SAVED_SHIFT & SHSTK_RULE_OFF_MASK;
}

static inline unsigned int ushstk_rule_fp(__u64 rule)
{
	return rule >> SHSTK_RULE_FP_SHIFT & SHSTK_RULE_OFF_MASK;
}

/* Returns the CFA offset in words of 8 bytes. */
static inline int ushstk_rule_cfa(__u64 rule)
{
	return (__s64)rule >> SHSTK_RULE_CFA_SHIFT;
}

#endif /* USHSTK_RULES_RULE_H */
