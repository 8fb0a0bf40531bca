// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * calls_test.c - tests how the agent shares a thread's time in the kernel between system calls and
 * the rest, with threads whose time is made up: the same in each run. Prints KTAP.
 */
#include "tools/inject/agent/calls.h"
#include "kselftest_harness.h"

#define STEP 50000ull /* ns; a period and a tick have no common multiple but at many steps */
#define PERIOD (21 * STEP)
#define TICK (80 * STEP)

enum place {
	USER,
	INTERRUPT, /* of user code */
	CALL,
};

/**
 * struct thread - a thread, its agent, and what is true
 * @calls: what the agent keeps.
 * @steps: steps so far.
 * @silent: periods that ended in the kernel and have no sample.
 * @in_calls: periods in samples of system calls.
 * @in_none: periods in samples of the kernel outside of calls.
 * @true_calls: steps in calls.
 */
struct thread {
	struct calls calls;
	uint64_t steps;
	uint64_t silent;
	uint64_t in_calls;
	uint64_t in_none;
	uint64_t true_calls;
};

static unsigned int any(unsigned int below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % below;
}

/* Lets the thread run for a step. */
static void run(struct thread *t, enum place place)
{
	uint64_t at = ++t->steps * STEP, here;

	t->true_calls += place == CALL;
	t->silent += place != USER && !(at % PERIOD);
	if (at % TICK)
		return;
	calls_count(&t->calls, place == CALL, at);
	here = calls_share(&t->calls, t->silent, place == CALL, PERIOD);
	t->silent -= here;
	t->calls.left = t->silent;
	if (place == CALL) {
		t->calls.taken += here;
		t->in_calls += here;
	} else {
		t->in_none += here;
	}
}

/* Lets the thread run for @seconds by turns in calls and in user code, of which 2 % are interrupts. */
static void run_by_turns(struct thread *t, unsigned int seconds)
{
	while (t->steps * STEP < seconds * 1000000000ull) {
		for (unsigned int i = any(40); i; i--)
			run(t, CALL);
		for (unsigned int i = any(50); i; i--)
			run(t, any(50) ? USER : INTERRUPT);
	}
}

/* Returns how much more than is true calls got, in points of the time of @t. */
static double error_of(const struct thread *t)
{
	double got = t->in_calls * PERIOD, is = t->true_calls * STEP;

	return 100 * (got - is) / (t->steps * STEP);
}

TEST(calls_do_not_get_the_interrupts_of_user_code)
{
	double sum = 0;

	for (int i = 0; i < 300; i++) {
		struct thread t = { 0 };

		run_by_turns(&t, 3);
		sum += error_of(&t);
	}
	EXPECT_LT(sum / 300, 0.5);
	EXPECT_GT(sum / 300, -0.5);
}

TEST(calls_have_their_time_in_a_long_thread)
{
	struct thread t = { 0 };

	run_by_turns(&t, 600);
	EXPECT_LT(error_of(&t), 0.25);
	EXPECT_GT(error_of(&t), -0.25);
	/* The interrupts are 1.1 % of its time, and few of them still wait. */
	EXPECT_GT(100. * t.in_none * PERIOD / (t.steps * STEP), 0.5);
}

TEST(a_thread_that_is_always_in_calls_has_nothing_elsewhere)
{
	struct thread t = { 0 };

	for (int i = 0; i < 200000; i++)
		run(&t, CALL);
	EXPECT_EQ(0, t.in_none);
	EXPECT_LE(t.silent, 4);
}

TEST(a_thread_without_calls_has_all_its_time_in_the_kernel_outside_of_them)
{
	struct thread t = { 0 };

	for (int i = 0; i < 200000; i++)
		run(&t, any(3) ? USER : INTERRUPT);
	EXPECT_EQ(0, t.in_calls);
	EXPECT_LE(t.silent, 6);
	EXPECT_GT(t.in_none, 3000);
}

TEST_HARNESS_MAIN
