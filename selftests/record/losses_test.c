// SPDX-License-Identifier: GPL-2.0-or-later
/* losses_test.c - tests what is said of the CPUs that lost records. */
#include <string.h>

#include "tools/record/perf/losses.h"

#include "kselftest_harness.h"

static struct perf_losses losses;
static char text[LOSSES_ROOM];

static void lose(int cpu, uint64_t nr)
{
	losses.all += nr;
	if (cpu >= 0)
		losses.of[cpu] += nr;
}

static const char *described(void)
{
	memset(text, '?', sizeof(text));
	losses_describe(&losses, text, sizeof(text));
	memset(&losses, 0, sizeof(losses));
	return text;
}

TEST(one_cpu_that_lost_all_is_named_without_a_number)
{
	lose(17, 1234);
	EXPECT_STREQ(described(), "all on CPU 17");
}

TEST(the_cpu_that_lost_most_comes_first)
{
	lose(3, 10);
	lose(0, 9);
	lose(9, 700);
	EXPECT_STREQ(described(), "700 on CPU 9, 10 on CPU 3, 9 on CPU 0");
}

TEST(of_cpus_that_lost_as_many_the_lower_comes_first)
{
	lose(8, 5);
	lose(2, 5);
	lose(5, 5);
	EXPECT_STREQ(described(), "5 on CPU 2, 5 on CPU 5, 5 on CPU 8");
}

TEST(the_fifth_is_one_other)
{
	for (int cpu = 0; cpu < 5; cpu++)
		lose(cpu, 100 - cpu);
	EXPECT_STREQ(described(),
		     "100 on CPU 0, 99 on CPU 1, 98 on CPU 2, 97 on CPU 3, 96 on 1 other");
}

TEST(the_numbers_of_4096_cpus_have_room_and_add_up)
{
	char expected[LOSSES_ROOM];
	const uint64_t most = UINT64_MAX / PERF_MAX_CPUS - PERF_MAX_CPUS;
	uint64_t rest = 0;

	for (int cpu = 0; cpu < PERF_MAX_CPUS; cpu++) {
		lose(cpu, most + cpu);
		rest += cpu < PERF_MAX_CPUS - 4 ? most + cpu : 0;
	}
	snprintf(
		expected, sizeof(expected),
		"%llu on CPU 4095, %llu on CPU 4094, %llu on CPU 4093, %llu on CPU 4092, %llu on 4092 others",
		(unsigned long long)most + 4095, (unsigned long long)most + 4094,
		(unsigned long long)most + 4093, (unsigned long long)most + 4092,
		(unsigned long long)rest);
	EXPECT_STREQ(described(), expected);
}

TEST(losses_of_no_known_cpu_name_none)
{
	lose(-1, 5);
	EXPECT_STREQ(described(), "");
}

TEST_HARNESS_MAIN
