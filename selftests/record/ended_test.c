// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ended_test.c - tests that an agent tells what ended threads left only in its own slot, when another process
 * takes that slot just before it is told, and how ticks share it.
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
	agent.tick = 4 * agent.period;
	ended_fork_child();
	agent.slots = &self->slot;
}

FIXTURE_TEARDOWN(ended)
{
}

TEST_F(ended, what_waits_is_told)
{
	EXPECT_TRUE(ended_leave_unseen(NULL, 0, 3));
	EXPECT_EQ(3000, self->slot.ticks_rest);
}

TEST_F(ended, not_in_a_slot_that_is_free)
{
	self->slot.owner = REC_FREE;
	EXPECT_TRUE(ended_leave_unseen(NULL, 0, 3));
	EXPECT_EQ(0, self->slot.ticks_rest);
}

TEST_F(ended, nor_in_one_that_is_taken_at_that_moment)
{
	static const struct calls calls;

	taken_before = &self->slot.kernel_rest;
	EXPECT_TRUE(ended_leave(NULL, &calls, 0, 3));
	EXPECT_EQ(NULL, taken_before);
	EXPECT_EQ(0, self->slot.kernel_rest);
	EXPECT_EQ(0, self->slot.ticks_rest);
}

TEST_F(ended, nor_if_that_comes_later)
{
	taken_before = &self->slot.ticks_rest;
	EXPECT_TRUE(ended_leave_unseen(NULL, 0, 3));
	EXPECT_EQ(NULL, taken_before);
	EXPECT_EQ(0, self->slot.ticks_rest);
}

TEST_F(ended, a_call_gets_what_its_tick_stands_for)
{
	static const struct calls none;
	struct calls calls = { .time = 4000 };

	EXPECT_TRUE(ended_leave(NULL, &none, 0, 10));
	EXPECT_EQ(3, ended_lend(NULL, &calls, 1));
	EXPECT_EQ(4000, calls.time);
	calls.taken = 4;
	EXPECT_EQ(0, ended_lend(NULL, &calls, 0));
	EXPECT_EQ(7, ended_rest());
}

TEST_F(ended, a_call_keeps_what_nothing_was_left_for)
{
	static const struct calls none;
	struct calls calls = { .time = 4000 };

	EXPECT_TRUE(ended_leave(NULL, &none, 0, 1));
	EXPECT_EQ(1, ended_lend(NULL, &calls, 1));
	EXPECT_EQ(4000, calls.time);
	calls.taken = 2;
	EXPECT_EQ(0, ended_lend(NULL, &calls, 0));
	EXPECT_EQ(4000, calls.time);
}

static const char kinds[40]; /* their addresses are those of start routines */

TEST_F(ended, what_a_kind_of_threads_left_is_for_no_other)
{
	static const struct calls none;
	struct calls calls = { .time = 4000 };

	EXPECT_TRUE(ended_leave(&kinds[0], &none, 0, 10));
	EXPECT_EQ(0, ended_share(&kinds[1], 0, true));
	EXPECT_EQ(0, ended_lend(&kinds[1], &calls, 0));
	EXPECT_EQ(4, ended_share(&kinds[0], 0, true));
	EXPECT_EQ(6, ended_rest());
}

TEST_F(ended, nor_is_what_it_left_without_events)
{
	EXPECT_TRUE(ended_leave_unseen(&kinds[0], 0, 10));
	EXPECT_EQ(0, ended_claim(&kinds[1], 0));
	EXPECT_EQ(3, ended_claim(&kinds[0], 0));
	EXPECT_EQ(7, ended_unseen_rest());
}

TEST_F(ended, nothing_is_lost_where_there_are_many_kinds)
{
	static const struct calls none;
	const uint64_t nr = sizeof(kinds);

	for (uint64_t i = 0; i < nr; i++) {
		EXPECT_TRUE(ended_leave(&kinds[i], &none, 0, 1));
		EXPECT_TRUE(ended_leave_unseen(&kinds[i], 0, 2));
	}
	EXPECT_EQ(nr * 1000, self->slot.kernel_rest);
	EXPECT_EQ(nr * 2000, self->slot.ticks_rest);
	EXPECT_EQ(1, ended_share(&kinds[0], 0, true));
	EXPECT_LT(1, ended_share(&kinds[nr - 1], 0, true));
	EXPECT_GT(nr, ended_rest());
	EXPECT_EQ(2 * nr, ended_unseen_rest());
}

static unsigned int any(unsigned int below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % below;
}

/**
 * struct life - what threads of a kind do
 * @start: their start routine.
 * @user: how long they work at first, in ns.
 * @call: how long they are in system calls then, in ns.
 * @first: the first tick comes within this time, in ns; in shorter threads not always.
 */
struct life {
	const void *start;
	uint64_t user;
	uint64_t call;
	unsigned int first;
};

/* A tick finds a thread at @used ns, with @own periods in its call. Returns how many of others it gets. */
static uint64_t take_others(const struct life *life, struct calls *c, uint64_t used, uint64_t own)
{
	const bool in_call = used >= life->user;
	uint64_t lent = in_call ? ended_lend(life->start, c, own) : 0;
	uint64_t shared = c->ticks == 1 ? ended_share(life->start, used, in_call) : 0;

	if (!in_call)
		return 0;
	c->time += shared * agent.period;
	return lent + shared;
}

/* A thread lives. Returns the periods that its calls get. */
static uint64_t live(const struct life *life)
{
	const uint64_t first = any(life->first), phase = any(agent.period);
	const uint64_t begin = (life->user + phase) / agent.period, end = life->user + life->call;
	struct calls calls = { 0 };
	uint64_t given = 0;

	for (uint64_t used = first; used < end; used += agent.tick) {
		const bool in_call = used >= life->user;
		uint64_t own = 0;

		calls_count(&calls, in_call, used);
		if (in_call)
			own = calls_share(&calls, (used + phase) / agent.period - begin - given,
					  true, agent.period);
		given += own;
		calls.taken += own + take_others(life, &calls, used, own);
	}
	ended_leave(life->start, &calls, end - calls.last,
		    (end + phase) / agent.period - begin - given);
	return calls.taken;
}

#define LIVES 100000

/* Threads of two kinds live by turns. Tests that the calls of both get their time. */
static void live_by_turns(struct __test_metadata *_metadata, const struct life lives[2])
{
	uint64_t got[2] = { 0, 0 };

	for (int i = 0; i < 2 * LIVES; i++)
		got[i % 2] += live(&lives[i % 2]);
	for (int i = 0; i < 2; i++) {
		EXPECT_GT(got[i], 0.98 * lives[i].call / agent.period * LIVES);
		EXPECT_LT(got[i], 1.02 * lives[i].call / agent.period * LIVES);
	}
}

/*
 * In those of one kind the first tick, which comes before the fourth millisecond, never finds a call; in
 * the others it does at times.
 */
TEST_F(ended, threads_of_some_ticks_have_their_own_time_in_calls)
{
	const struct life lives[] = { { NULL, 6600, 4500, agent.tick },
				      { NULL, 3000, 13000, agent.tick } };

	live_by_turns(_metadata, lives);
}

TEST_F(ended, also_those_that_ticks_find_too_seldom_or_too_often)
{
	const struct life lives[] = { { &kinds[0], 1300, 1700, 3 * agent.tick },
				      { &kinds[1], 2000, 1000, 3000 } };

	live_by_turns(_metadata, lives);
}

TEST_HARNESS_MAIN
