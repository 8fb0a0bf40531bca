// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maps_early_test.c - tests that the maps of a process which loads a library are read at once, and those
 * of one that does so all the time no more often than a part of a CPU's time allows.
 *
 * The clocks are replaced: each reading takes COST ns of CPU time.
 */
#include <time.h>
#include <unistd.h>

#include "libshstk/symbol/symbol.h"
#include "tools/convert/population.h"
#include "tools/shstk.h"
#include "kselftest_harness.h"

#define MS 1000000ull
#define COST (2 * MS)
#define PAUSE MS /* ns between two changes */
#define CHANGES 10000 /* ten seconds of them */

static uint64_t now, used;

uint64_t __wrap_now_ns(clockid_t clock)
{
	if (clock != CLOCK_THREAD_CPUTIME_ID)
		return now;
	used += COST;
	return used;
}

/* Has the process of this test change its maps NR times. Returns how often they were read. */
static int change(struct population *all, struct process *p, int nr)
{
	int ret = 0;

	for (int i = 0; i < nr; i++) {
		now += PAUSE;
		population_maps_changed(p);
		ret += population_read_maps(all, p);
	}
	return ret;
}

FIXTURE(process)
{
	struct shstk_symbols *symbols;
	struct population all;
	struct process *it;
};

FIXTURE_SETUP(process)
{
	now = 1000 * MS;
	ASSERT_EQ(0, shstk_symbols_create(NULL, &self->symbols));
	ASSERT_EQ(0, population_init(&self->all, self->symbols, NULL));
	self->it = population_process(&self->all, getpid());
	ASSERT_NE(NULL, self->it);
}

FIXTURE_TEARDOWN(process)
{
	population_deinit(&self->all);
	shstk_symbols_destroy(self->symbols);
}

TEST_F(process, maps_are_read_at_once_if_they_have_changed)
{
	EXPECT_EQ(20, change(&self->all, self->it, 20));
	now += PAUSE;
	EXPECT_FALSE(population_read_maps(&self->all, self->it));
	now += 100 * MS;
	EXPECT_TRUE(population_read_maps(&self->all, self->it));
}

TEST_F(process, maps_that_change_all_the_time_take_a_part_of_the_time)
{
	const int most = CHANGES * PAUSE / 10 / COST;
	const int nr = change(&self->all, self->it, CHANGES);

	printf("# read %d times\n", nr);
	EXPECT_LT(nr, most);
	EXPECT_GT(nr, most / 10);
	/* After a while without changes there is time again. */
	now += 10000 * MS;
	EXPECT_EQ(20, change(&self->all, self->it, 20));
}

TEST_HARNESS_MAIN
