/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_rule.h - the fields of a rule.
 *
 * It is compiled in user space and by BPF programs, too: of the kernel it uses nothing.
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

/* In words. */
static inline int ushstk_rule_cfa(__u64 rule)
{
	return (__s64)rule >> SHSTK_RULE_CFA_SHIFT;
}

#endif /* USHSTK_RULES_RULE_H */
