/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ruled.h - which part of a mapping its table of rules covers.
 *
 * The including file defines u64.
 */
#ifndef BPF_RULED_H
#define BPF_RULED_H

/**
 * struct ruled - the part of a mapping that its table covers
 * @at: first address.
 * @size: bytes; 0: there are none.
 */
struct ruled {
	u64 at, size;
};

/*
 * Finds what part of the mapping of @len bytes at @start is covered by the table of @size bytes of code that
 * begins at @table_at, which may be outside the mapping, or below address 0. Of larger tables than any
 * the first part counts, as keys of rules have 32 bits for the offset.
 */
static __always_inline void find_ruled(u64 start, u64 len, u64 table_at, u64 size,
				       struct ruled *ret)
{
	const u64 before = start - table_at, behind = table_at - start;

	if (size > 1ull << 32)
		size = 1ull << 32;
	ret->at = start;
	ret->size = 0;
	if (before < size) {
		ret->size = size - before;
	} else if (behind < len) {
		ret->at = table_at;
		ret->size = size;
	}
	if (ret->size > start + len - ret->at)
		ret->size = start + len - ret->at;
}

#endif /* BPF_RULED_H */
