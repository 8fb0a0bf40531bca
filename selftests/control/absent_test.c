// SPDX-License-Identifier: GPL-2.0-only
/*
 * absent_test.c - the control calls where there are no shadow stacks: each says
 * so, and wrong arguments are refused all the same.
 */
#include <errno.h>
#include <stdint.h>

#include "kselftest_harness.h"
#include "selftests/control/child.h"

TEST(without_shadow_stacks_every_call_says_so)
{
	struct shstk_stack stack;
	uint64_t status;
	int err;

	if (have())
		SKIP(return, "there are shadow stacks here");
	err = shstk_status_get(&status);
	if (err) {
		EXPECT_EQ(-EOPNOTSUPP, err);
	} else {
		EXPECT_EQ(0ull, status);
	}
	EXPECT_EQ(100 + EOPNOTSUPP, in_child(SHSTK_STATUS_ENABLE, nothing));
	EXPECT_EQ(-EOPNOTSUPP, shstk_stack_map(4096, SHSTK_STACK_TOKEN, &stack));
	EXPECT_EQ(-EOPNOTSUPP, shstk_stack_call(4096, NULL, NULL));
	err = shstk_enable_here(SHSTK_HERE_UNAWARE);
	EXPECT_EQ(-EOPNOTSUPP, err);
}

TEST(unknown_bits_are_refused)
{
	struct shstk_stack stack;

	EXPECT_EQ(100 + EINVAL, in_child(1ull << 40, nothing));
	EXPECT_EQ(100 + EINVAL, in_child(SHSTK_STATUS_WRITE, nothing));
	EXPECT_EQ(-EINVAL, shstk_status_lock(8));
	EXPECT_EQ(-EINVAL, shstk_stack_map(4096, 4, &stack));
	EXPECT_EQ(-EINVAL, shstk_stack_map(0, 0, &stack));
	EXPECT_EQ(-EINVAL, shstk_enable_here(2));
}

TEST_HARNESS_MAIN
