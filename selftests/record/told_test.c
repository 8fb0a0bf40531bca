// SPDX-License-Identifier: GPL-2.0-or-later
/* told_test.c - tests what the agents remember to have told the recorder. */
#include "tools/inject/common/told.h"

#include "kselftest_harness.h"

#define SIZE 64
#define SAME_PLACES (SIZE / 2 * 4)

TEST(two_numbers_with_the_same_places_are_both_remembered)
{
	static _Atomic uint64_t table[SIZE];
	const uint64_t one = 4 * 7 + 2, other = one + SAME_PLACES;
	int told = 0;

	for (int i = 0; i < 20; i++) {
		const uint64_t id = i & 1 ? one : other;

		if (told_has(table, SIZE, id))
			continue;
		told_add(table, SIZE, id);
		told++;
	}
	EXPECT_EQ(told, 2);
}

TEST(a_third_one_takes_the_place_of_the_first)
{
	static _Atomic uint64_t table[SIZE];
	const uint64_t id = 4 * 31 + 3;

	for (int i = 0; i < 3; i++)
		told_add(table, SIZE, id + i * SAME_PLACES);
	EXPECT_FALSE(told_has(table, SIZE, id));
	EXPECT_TRUE(told_has(table, SIZE, id + SAME_PLACES));
	EXPECT_TRUE(told_has(table, SIZE, id + 2 * SAME_PLACES));
}

TEST_HARNESS_MAIN
