// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ended_test.c - tests that an agent tells what ended threads left only in its own slot, when another process
 * takes that slot just before it is told.
 */
#include "tools/inject/agent/agent.h"

static const void
	*taken_before; /* the slot is taken by another process before a store to this member */

enum { OURS = 10, ANOTHER = 11 };

struct agent agent;

/* Another process takes the slot, of which it is the owner first; it has emptied the member already. */
static void before_store(const void *at)
{
	if (at != taken_before)
		return;
	taken_before = NULL;
	__atomic_store_n((uint64_t *)&agent.slots->owner, REC_OWNER(ANOTHER, REC_TAKEN),
			 __ATOMIC_SEQ_CST);
}

#undef atomic_store
#undef atomic_store_explicit
#define atomic_store_explicit(at, value, order) \
	(before_store(at), __atomic_store_n((__typeof__(value) *)(at), value, order))
#define atomic_store(at, value) atomic_store_explicit(at, value, __ATOMIC_SEQ_CST)
#include "tools/inject/agent/ended.c"
#include "kselftest_harness.h"

FIXTURE(ended)
{
	struct rec_slot slot;
};

FIXTURE_SETUP(ended)
{
	self->slot = (struct rec_slot){ .owner = REC_OWNER(OURS, REC_DYING), .instance = 1 };
	agent.pid = OURS;
	agent.instance = 1;
	agent.period = 1000;
	agent.slots = &self->slot;
}

FIXTURE_TEARDOWN(ended)
{
}

TEST_F(ended, what_waits_is_told)
{
	EXPECT_TRUE(ended_leave_unseen(3));
	EXPECT_EQ(3000, self->slot.ticks_rest);
}

TEST_F(ended, not_in_a_slot_that_is_free)
{
	self->slot.owner = REC_FREE;
	EXPECT_TRUE(ended_leave_unseen(3));
	EXPECT_EQ(0, self->slot.ticks_rest);
}

TEST_F(ended, nor_in_one_that_is_taken_at_that_moment)
{
	static const struct calls calls;

	taken_before = &self->slot.kernel_rest;
	EXPECT_TRUE(ended_leave(&calls, 3));
	EXPECT_EQ(NULL, taken_before);
	EXPECT_EQ(0, self->slot.kernel_rest);
	EXPECT_EQ(0, self->slot.ticks_rest);
}

TEST_F(ended, nor_if_that_comes_later)
{
	taken_before = &self->slot.ticks_rest;
	EXPECT_TRUE(ended_leave_unseen(3));
	EXPECT_EQ(NULL, taken_before);
	EXPECT_EQ(0, self->slot.ticks_rest);
}

TEST_HARNESS_MAIN
