// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sum_line_test.c - tests the words about how much was sampled, and of how much: where the line
 * shows a part that is larger than the whole, it says why. Prints KTAP.
 */
#include <string.h>

#include "tools/record/samples.h"
#include "kselftest_harness.h"

#define MS 1000000ull

/* Returns the line for @part of @whole, in ns, of a recording of one thread at 1000 Hz. */
static const char *line_of(uint64_t part, uint64_t whole)
{
	static char line[200];
	struct sample_counts counts = { .threads = 1, .weight = part };
	struct record_opts opts;

	record_options_init(&opts);
	opts.freq = 1000;
	samples_sum(&opts, &counts, whole, line, sizeof(line));
	return line;
}

TEST(a_part_that_is_not_larger_needs_no_words)
{
	EXPECT_STREQ("0.12 of 0.12 s CPU time", line_of(118 * MS, 122 * MS));
	EXPECT_STREQ("0.12 of 1.24 s CPU time", line_of(120 * MS, 1240 * MS));
}

TEST(a_part_that_is_larger_by_less_than_is_shown_needs_no_words)
{
	EXPECT_STREQ("0.12 of 0.12 s CPU time", line_of(122 * MS, 118 * MS));
}

TEST(a_part_that_is_shown_as_larger_says_why)
{
	/* Both have 11 whole hundredths of a second, but they are not rounded alike. */
	EXPECT_STREQ("0.12 of 0.11 s CPU time (more, as a sample counts a whole period)",
		     line_of(116 * MS, 114 * MS));
	EXPECT_NE(NULL, strstr(line_of(130 * MS, 110 * MS), "0.13 of 0.11 s CPU time (more: "));
}

TEST_HARNESS_MAIN
