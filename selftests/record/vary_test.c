// SPDX-License-Identifier: GPL-2.0-or-later
/* vary_test.c - tests for how much time samples stand for whose periods vary. */
#include <stdlib.h>

#include "tools/record/perf/vary.h"

#include "kselftest_harness.h"

#define WHOLE 1000000 /* ns */
#define THREADS 20000
#define PARTS 20 /* a whole period is looked at in as many parts */

/* Samples threads that last @life ns, @late ns late; @ret receives the time in each part of their life. */
static void live(struct vary *v, uint64_t life, uint64_t late, double *ret)
{
	for (int i = 0; i < THREADS; i++) {
		const uint64_t period = vary_next(v);

		for (uint64_t at = period + late; at < life; at += period)
			ret[at * PARTS / WHOLE] +=
				(double)vary_weight(v, period, at) / THREADS / (WHOLE / PARTS);
	}
}

/* All moments of a life of five periods must count the same. */
static double worst_part(uint64_t late)
{
	double parts[5 * PARTS] = { 0 }, worst = 0;
	struct vary v;

	vary_init(&v, WHOLE);
	live(&v, 5 * WHOLE, late, parts);
	/* The first ones are before the smallest period, and those that stand for them. */
	parts[2] = (parts[0] + parts[1] + parts[2]) / 3;
	for (int i = 2; i < 5 * PARTS; i++) {
		const double error = parts[i] > 1 ? parts[i] - 1 : 1 - parts[i];

		worst = error > worst ? error : worst;
	}
	return worst;
}

TEST(all_moments_of_a_thread_count_the_same)
{
	EXPECT_LT(worst_part(0), 0.05);
}

TEST(timers_that_are_late_change_little)
{
	EXPECT_LT(worst_part(15000), 0.08);
}

/* Threads that are shorter than a period, and longer than twice the smallest one. */
TEST(short_threads_have_their_time)
{
	for (uint64_t life = WHOLE / 5; life < WHOLE; life += WHOLE / 10) {
		double parts[PARTS] = { 0 }, sum = 0;
		struct vary v;

		vary_init(&v, WHOLE);
		live(&v, life, 0, parts);
		for (int i = 0; i < PARTS; i++)
			sum += parts[i] * WHOLE / PARTS;
		EXPECT_GT(sum, 0.97 * life);
		EXPECT_LT(sum, 1.03 * life);
	}
}

TEST(periods_are_spread_however_many_there_are)
{
	for (int nr = 16; nr <= 256; nr *= 4) {
		int upper = 0;
		struct vary v;

		vary_init(&v, WHOLE);
		for (int i = 0; i < nr; i++) {
			const uint64_t period = vary_next(&v);

			ASSERT_GE(period, v.least);
			ASSERT_LT(period, v.whole);
			upper += period > (v.least + v.whole) / 2;
		}
		EXPECT_LE(abs(2 * upper - nr), 4);
	}
}

TEST(threads_of_before_and_long_ones_have_their_period)
{
	struct vary v;

	vary_init(&v, WHOLE);
	EXPECT_EQ(vary_weight(&v, WHOLE, 123456), WHOLE);
	EXPECT_EQ(vary_weight(&v, 2 * WHOLE, 0), 2 * WHOLE);
	EXPECT_EQ(vary_weight(&v, 0, 5), 0);
	EXPECT_EQ(vary_weight(&v, 300000, 100 * WHOLE), 300000);
	EXPECT_EQ(vary_weight(&v, 300000, UINT64_MAX), 300000);
}

TEST(a_count_that_is_too_small_is_that_of_the_first_period)
{
	struct vary v;

	vary_init(&v, WHOLE);
	EXPECT_EQ(vary_weight(&v, 300000, 0), vary_weight(&v, 300000, 300000));
}

TEST(periods_are_not_below_what_the_kernel_takes)
{
	struct vary v;

	vary_init(&v, 100000);
	for (int i = 0; i < 1000; i++)
		ASSERT_GE(vary_next(&v), 20000);
}

TEST_HARNESS_MAIN
