// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ruled_test.c - tests which part of a mapping has rules (bpf/ruled.h): all mappings and tables of a few bytes
 * are compared with what each address has. Prints KTAP.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t u64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#include "bpf/ruled.h"

#define START 6
#define MOST 7

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

/* Returns whether each address in and around the mapping at @base + START is said to have rules if it has. */
static bool is_right(u64 base, u64 len, u64 table, u64 size)
{
	struct ruled part;
	bool good = true;

	find_ruled(base + START, len, base + table, size, &part);
	for (u64 i = 0; i < START + 2 * MOST; i++) {
		const bool mapped = i - START < len, ruled = i - table < size;

		good &= (base + i - part.at < part.size) == (mapped && ruled);
	}
	return good;
}

/* The table begins from @base on. */
static bool all_right(u64 base)
{
	bool good = true;

	for (u64 len = 1; len < MOST; len++)
		for (u64 table = 0; table < START + MOST; table++)
			for (u64 size = 0; size < START + MOST; size++)
				good &= is_right(base, len, table, size);
	return good;
}

int main(void)
{
	struct ruled part;

	puts("KTAP version 1\n1..3");
	verdict(all_right(0x7f0000000000), "the part that a table covers is in the mapping");
	verdict(all_right(-3ull), "and is so where the table begins below address 0");
	find_ruled(0x1000, 1ull << 40, 0x1000, 1ull << 39, &part);
	verdict(part.at == 0x1000 && part.size == 1ull << 32, "a table covers 4 GiB at most");
	return !!failed;
}
