/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_check.h - checks a table of unwind rules, and looks up rules in a checked table.
 *
 * A lookup in a table that passed the check never leaves the table, whatever the offset is. This
 * file is compiled in user space, too, where it is fuzzed; the parts of the kernel that it uses
 * have replacements here.
 */
#ifndef USHSTK_RULES_CHECK_H
#define USHSTK_RULES_CHECK_H

#include <linux/elf-em.h>
#include <linux/shstk_rules.h>
#include <linux/types.h>

#include "rules_rule.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#else
#include <errno.h>

static inline __u64 array_index_nospec(__u64 index, __u64 size)
{
	return index < size ? index : 0;
}

static inline void cond_resched(void)
{
}
#endif

/**
 * struct ushstk_rules_view - the parts of a table
 * @rule: the distinct rules.
 * @page: number of the first row of each page; has one more element than there are pages.
 * @row: all rows.
 * @base: offset in the file at which page 0 begins.
 * @nr_rules: number of elements of @rule.
 * @nr_pages: number of pages.
 * @nr_rows: number of elements of @row.
 */
struct ushstk_rules_view {
	const __u64 *rule;
	const __u32 *page;
	const __u32 *row;
	__u64 base;
	__u32 nr_rules;
	__u32 nr_pages;
	__u32 nr_rows;
};

/*
 * Returns the size in bytes of a table with this header. The counts in the header must be within
 * their limits, so nothing overflows.
 */
static inline __u64 ushstk_rules_size(const struct shstk_rules_header *h)
{
	return sizeof(*h) + 8ull * h->nr_rules + 4ull * (h->nr_pages + 1) + 4ull * h->nr_rows;
}

/*
 * Checks the header of a table. Returns 0; -EINVAL if it is no valid header; -EXDEV if it is for
 * another machine.
 */
static inline int ushstk_rules_check_header(const struct shstk_rules_header *h,
					    unsigned int machine)
{
	if (h->magic != SHSTK_RULES_MAGIC || h->version != SHSTK_RULES_VERSION || h->reserved ||
	    h->base & ((1 << SHSTK_RULES_PAGE_SHIFT) - 1) || h->base >> 62 || !h->nr_rules ||
	    h->nr_rules > SHSTK_RULES_MAX_RULES || !h->nr_pages ||
	    h->nr_pages > SHSTK_RULES_MAX_PAGES || h->nr_rows < h->nr_pages ||
	    h->nr_rows > SHSTK_RULES_MAX_ROWS)
		return -EINVAL;
	return h->machine == machine ? 0 : -EXDEV;
}

static inline void ushstk_rules_view_init(struct ushstk_rules_view *v,
					  const struct shstk_rules_header *h)
{
	v->rule = (const __u64 *)(h + 1);
	v->page = (const __u32 *)(v->rule + h->nr_rules);
	v->row = v->page + h->nr_pages + 1;
	v->base = h->base;
	v->nr_rules = h->nr_rules;
	v->nr_pages = h->nr_pages;
	v->nr_rows = h->nr_rows;
}

/* Returns whether a rule is valid: only the fields that its kind has are set. */
static inline int ushstk_rule_ok(__u64 rule, unsigned int machine)
{
	const __u64 saved = SHSTK_RULE_OFF_MASK << SHSTK_RULE_SAVED_SHIFT |
			    SHSTK_RULE_OFF_MASK << SHSTK_RULE_FP_SHIFT;
	const __u64 reg = SHSTK_RULE_REG_MASK << SHSTK_RULE_REG_SHIFT;
	const __u64 cfa = -1ull << SHSTK_RULE_CFA_SHIFT;
	int x86 = machine == EM_X86_64;

	switch (ushstk_rule_kind(rule)) {
	case SHSTK_RULE_NONE:
	case SHSTK_RULE_END:
	case SHSTK_RULE_SIGNAL:
	case SHSTK_RULE_CUT:
		return !(rule & ~SHSTK_RULE_KIND_MASK);
	case SHSTK_RULE_CLONE:
		return x86 && !(rule & ~SHSTK_RULE_KIND_MASK);
	case SHSTK_RULE_SP:
	case SHSTK_RULE_FP:
		return !(rule & reg) && ushstk_rule_cfa(rule) >= 0;
	case SHSTK_RULE_REG:
	case SHSTK_RULE_INDEX:
	case SHSTK_RULE_WORD:
		return x86 && ushstk_rule_reg(rule) < 16;
	case SHSTK_RULE_STACK:
	case SHSTK_RULE_SWITCH:
		return x86 || ushstk_rule_saved(rule);
	case SHSTK_RULE_LOAD:
		return x86 && !(rule & (saved | reg));
	case SHSTK_RULE_RETURN:
		return !x86 && !ushstk_rule_saved(rule) && ushstk_rule_reg(rule) < 31 &&
		       ushstk_rule_cfa(rule) >= 0;
	case SHSTK_RULE_PLT:
		return x86 && !(rule & (saved | cfa)) && ushstk_rule_reg(rule) < 16;
	}
	return 0;
}

/*
 * Returns whether the rows of one page are valid: they are in order, the first one is at the
 * beginning of the page, and the rules exist.
 */
static inline int ushstk_rules_page_ok(const struct ushstk_rules_view *v, __u32 page)
{
	__u32 i = v->page[page], end = v->page[page + 1];
	__s32 before = -1;

	if (i >= end || end > v->nr_rows || v->row[i] >> 16)
		return 0;
	for (; i < end; i++) {
		__s32 at = v->row[i] >> 16;

		if (at <= before || at >= 1 << SHSTK_RULES_PAGE_SHIFT ||
		    (v->row[i] & 0xffff) >= v->nr_rules)
			return 0;
		before = at;
	}
	return 1;
}

/*
 * Returns whether all pages are valid. The pages share all rows: each page begins where the one
 * before it ends.
 */
static inline int ushstk_rules_pages_ok(const struct ushstk_rules_view *v)
{
	__u32 i;

	if (v->page[0] || v->page[v->nr_pages] != v->nr_rows)
		return 0;
	for (i = 0; i < v->nr_pages; i++) {
		if (!ushstk_rules_page_ok(v, i))
			return 0;
		cond_resched();
	}
	return 1;
}

/**
 * ushstk_rules_check() - check a whole table
 * @table: a copy that nobody else can change, aligned to 8 bytes.
 * @size: size in bytes, at least that of a header.
 * @machine: the table must be for this EM_* machine.
 * @v: receives the parts of the table.
 *
 * Context: takes time in proportion to @size, and may schedule.
 *
 * Return: 0; -EINVAL if anything is wrong with the table; -EXDEV if it is for another machine.
 */
static inline int ushstk_rules_check(const void *table, __u64 size, unsigned int machine,
				     struct ushstk_rules_view *v)
{
	int ret = ushstk_rules_check_header(table, machine);
	__u32 i;

	if (ret)
		return ret;
	if (ushstk_rules_size(table) != size)
		return -EINVAL;
	ushstk_rules_view_init(v, table);
	for (i = 0; i < v->nr_rules; i++)
		if (!ushstk_rule_ok(v->rule[i], machine))
			return -EINVAL;
	return ushstk_rules_pages_ok(v) ? 0 : -EINVAL;
}

/**
 * ushstk_rules_cover() - tell whether a table covers an offset
 * @v: a table that was checked.
 * @off: any offset in the file.
 *
 * Return: true if @off lies in one of the pages of the table.
 */
static inline int ushstk_rules_cover(const struct ushstk_rules_view *v, __u64 off)
{
	return off >= v->base && (off - v->base) >> SHSTK_RULES_PAGE_SHIFT < v->nr_pages;
}

/**
 * ushstk_rule_at() - look up the rule for an offset
 * @v: a table that was checked.
 * @off: any offset in the file.
 *
 * Return: the rule, or SHSTK_RULE_NONE if the table does not cover @off.
 */
static inline __u64 ushstk_rule_at(const struct ushstk_rules_view *v, __u64 off)
{
	__u64 page = (off - v->base) >> SHSTK_RULES_PAGE_SHIFT;
	__u32 want = (off & ((1 << SHSTK_RULES_PAGE_SHIFT) - 1)) << 16 | 0xffff;
	const __u32 *row;
	__u32 n;

	if (!ushstk_rules_cover(v, off))
		return SHSTK_RULE_NONE;
	/*
	 * User space chooses @off, so the CPU must not even speculate with a page beyond the table.
	 */
	page = array_index_nospec(page, v->nr_pages);
	row = v->row + v->page[page];
	n = v->page[page + 1] - v->page[page];
	while (n > 1) {
		__u32 half = n / 2;

		if (row[half] <= want) {
			row += half;
			n -= half;
		} else {
			n = half;
		}
	}
	return v->rule[*row & 0xffff];
}

#endif /* USHSTK_RULES_CHECK_H */
