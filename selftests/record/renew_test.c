// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * renew_test.c - tests that what outlives a profile of --every uses the store of names of the next
 * one, and nothing of the old one, which is released. Prints KTAP.
 */
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/symbol.h"
#include "tools/convert/mappings.h"
#include "tools/convert/population.h"
#include "kselftest_harness.h"

TEST(processes_are_read_at_the_cost_of_the_newest_store)
{
	struct shstk_symbols *first, *second;
	struct population all;

	ASSERT_EQ(0, shstk_symbols_create(NULL, &first));
	ASSERT_EQ(0, shstk_symbols_create(NULL, &second));
	ASSERT_EQ(0, population_init(&all, first, NULL));
	EXPECT_EQ(shstk_symbols_process_account(first, getpid()),
		  all.files->account(all.files->arg, getpid()));
	population_renew(&all, second);
	EXPECT_EQ(shstk_symbols_process_account(second, getpid()),
		  all.files->account(all.files->arg, getpid()));
	population_deinit(&all);
	shstk_symbols_destroy(second);
	shstk_symbols_destroy(first);
}

TEST_HARNESS_MAIN
