/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_check.h - whether a table of unwind rules is one.
 *
 * What passes here can be looked up with any offset without leaving the table. It is
 * compiled in user space too, where it is fuzzed: of the kernel it uses what is not
 * needed there.
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
 * @rule: distinct rules.
 * @page: first row of each page; one more than there are pages.
 * @row: all rows.
 * @base: offset in the file of page 0.
 * @nr_rules: number of @rule.
 * @nr_pages: number of pages.
 * @nr_rows: number of @row.
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

/* Bytes of a table with this header. Its counts are in bounds, so nothing overflows. */
static inline __u64 ushstk_rules_size(const struct shstk_rules_header *h)
{
	return sizeof(*h) + 8ull * h->nr_rules + 4ull * (h->nr_pages + 1) + 4ull * h->nr_rows;
}

/* Return: 0; -EINVAL: not a header; -EXDEV: of another machine. */
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

/* Whether a rule has but the fields that its kind has. */
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
		return x86 && ushstk_rule_reg(rule) < 16;
	case SHSTK_RULE_STACK:
		return x86;
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

/* The rows of one page: in order, the first at its beginning, of rules that exist. */
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

/* The pages share out all rows: each begins where the one before it ends. */
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
 * @size: its bytes, at least those of a header.
 * @machine: EM_* that it has to be for.
 * @v: receives its parts.
 *
 * Context: takes time in proportion to @size, and may schedule.
 *
 * Return: 0; -EINVAL: anything is wrong with it; -EXDEV: it is for another machine.
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
 * ushstk_rules_cover() - whether a table is about an offset
 * @v: a table that was checked.
 * @off: an offset in the file, any.
 *
 * Return: whether it lies in one of the table's pages.
 */
static inline int ushstk_rules_cover(const struct ushstk_rules_view *v, __u64 off)
{
	return off >= v->base && (off - v->base) >> SHSTK_RULES_PAGE_SHIFT < v->nr_pages;
}

/**
 * ushstk_rule_at() - look an offset up
 * @v: a table that was checked.
 * @off: an offset in the file, any.
 *
 * Return: the rule; SHSTK_RULE_NONE outside of what the table is about.
 */
static inline __u64 ushstk_rule_at(const struct ushstk_rules_view *v, __u64 off)
{
	__u64 page = (off - v->base) >> SHSTK_RULES_PAGE_SHIFT;
	__u32 want = (off & ((1 << SHSTK_RULES_PAGE_SHIFT) - 1)) << 16 | 0xffff;
	const __u32 *row;
	__u32 n;

	if (!ushstk_rules_cover(v, off))
		return SHSTK_RULE_NONE;
	/* @off is the user's to choose: no page beyond the table is even guessed at. */
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
