/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ranges.h - ranges of addresses, searched for the one that has an address.
 */
#ifndef SHSTK_SYMBOL_RANGES_H
#define SHSTK_SYMBOL_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_account;

/**
 * struct shstk_range - code of something
 * @lo: first address.
 * @hi: first address behind it.
 * @value: what it is, as who added it knows.
 */
struct shstk_range {
	uint64_t lo;
	uint64_t hi;
	uint64_t value;
};

/**
 * struct shstk_ranges - some of them, sorted once all are there
 * @v: they.
 * @nr: how many.
 * @max: room for so many.
 */
struct shstk_ranges {
	struct shstk_range *v;
	size_t nr;
	size_t max;
};

/* Add one, of memory from @account; false: there is none. Empty ones, and what lies at 0 as
 * code does that the linker dropped, are left out.
 */
bool shstk_ranges_add(struct shstk_ranges *ranges, struct shstk_account *account, uint64_t lo,
		      uint64_t hi, uint64_t value);
void shstk_ranges_sort(struct shstk_ranges *ranges);
/* The innermost one that has @addr, or NULL; of broken files perhaps another one. */
const struct shstk_range *shstk_ranges_find(const struct shstk_ranges *ranges, uint64_t addr);
/* Memory goes back to @account. */
void shstk_ranges_deinit(struct shstk_ranges *ranges, struct shstk_account *account);

#endif /* SHSTK_SYMBOL_RANGES_H */
