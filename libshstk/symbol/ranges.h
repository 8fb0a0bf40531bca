/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ranges.h - sorted ranges of addresses, in which the range that covers an address is searched. */
#ifndef SHSTK_SYMBOL_RANGES_H
#define SHSTK_SYMBOL_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_account;

/**
 * struct shstk_range - a range of addresses
 * @lo: first address.
 * @hi: first address behind the range.
 * @value: what the range is, in terms of the caller that added it.
 */
struct shstk_range {
	uint64_t lo;
	uint64_t hi;
	uint64_t value;
};

/**
 * struct shstk_ranges - ranges of addresses, sorted once all are added
 * @v: the ranges.
 * @nr: number of ranges.
 * @max: number of ranges that @v has room for.
 */
struct shstk_ranges {
	struct shstk_range *v;
	size_t nr;
	size_t max;
};

/*
 * Adds a range, with memory from @account; returns false if there is none. Empty ranges are left
 * out, and so are ranges at address 0, where code lies that the linker dropped.
 */
bool shstk_ranges_add(struct shstk_ranges *ranges, struct shstk_account *account, uint64_t lo,
		      uint64_t hi, uint64_t value);
void shstk_ranges_sort(struct shstk_ranges *ranges);
/*
 * Returns the innermost range that covers @addr, or NULL; in broken files it may be another range.
 */
const struct shstk_range *shstk_ranges_find(const struct shstk_ranges *ranges, uint64_t addr);
/* Frees the ranges and gives their memory back to @account. */
void shstk_ranges_deinit(struct shstk_ranges *ranges, struct shstk_account *account);

#endif /* SHSTK_SYMBOL_RANGES_H */
