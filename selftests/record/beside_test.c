// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * beside_test.c - tests that a callchain which a walker wrote beside a sample becomes part of that sample and of no
 * other, and that it is the only one that is asked for.
 */
#include <linux/perf_event.h>

#include "bpf/language.h"
#include "tools/convert/population.h"
#include "tools/convert/stacks.h"
#include "tools/perf/rings.h"
#include "tools/record/perf/callchain_beside.h"

#include "kselftest_harness.h"

#define PC 0x401000
#define TID 7

/* A record as the walker writes it. */
struct written {
	struct walk_chain head;
	uint64_t entry[WALK_ENTRIES + 1];
};

static struct callchain_beside beside;

static struct written written(uint32_t nr)
{
	struct written ret = {
		.head = { .end = LANGUAGE_CALLCHAIN, .nr = nr },
		.entry = { PERF_CONTEXT_USER, PC, PC + 0x10, PC + 0x20 },
	};

	return ret;
}

static bool take(const struct written *w, size_t nr)
{
	return callchain_beside_take(&beside, TID, w, sizeof(w->head) + nr * sizeof(w->entry[0]));
}

static struct perf_sample sample_of(int tid, uint64_t pc)
{
	return (struct perf_sample){
		.tid = tid,
		.abi = PERF_SAMPLE_REGS_ABI_64,
		.regs.pc = pc,
		.max_chain = SIZE_MAX,
	};
}

TEST(the_callchain_becomes_the_samples)
{
	const uint64_t kernel[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000 };
	const struct written w = written(4);
	struct perf_sample s = sample_of(TID, PC);
	struct callchain user;

	ASSERT_TRUE(take(&w, 4));
	callchain_beside_add(&beside, &s);
	user = perf_sample_user(&s);
	ASSERT_EQ(user.nr, 3);
	EXPECT_EQ(user.ips[0], PC);
	EXPECT_EQ(user.ips[2], PC + 0x20);
	/* The kernel's part stays in front. */
	s = sample_of(TID, PC);
	s.chain = kernel;
	s.nr = 2;
	ASSERT_TRUE(take(&w, 4));
	callchain_beside_add(&beside, &s);
	ASSERT_EQ(s.nr, 6);
	EXPECT_EQ(s.chain[1], kernel[1]);
	EXPECT_EQ(perf_sample_user(&s).nr, 3);
}

/* Returns whether the sample gets a callchain that was written for another one. */
static bool gets(struct perf_sample s)
{
	const struct written w = written(4);
	const uint64_t nr = s.nr;

	take(&w, 4);
	callchain_beside_add(&beside, &s);
	return s.nr != nr;
}

TEST(no_other_sample_gets_it)
{
	const uint64_t own[] = { PERF_CONTEXT_USER, PC };
	struct perf_sample s = sample_of(TID, PC);

	EXPECT_TRUE(gets(s));
	EXPECT_FALSE(gets(sample_of(TID + 1, PC)));
	EXPECT_FALSE(gets(sample_of(TID, PC + 1)));
	s.walked = true;
	EXPECT_FALSE(gets(s));
	s = sample_of(TID, PC);
	s.chain = own;
	s.nr = 2;
	EXPECT_FALSE(gets(s));
	/* A sample that follows gets none. */
	s = sample_of(TID, PC);
	callchain_beside_add(&beside, &s);
	EXPECT_EQ(s.nr, 0);
}

TEST(records_that_are_wrong_are_passed_over)
{
	struct perf_sample s = sample_of(TID, PC);
	struct written w = written(4);

	/* Less than it says. */
	EXPECT_TRUE(take(&w, 3));
	callchain_beside_add(&beside, &s);
	EXPECT_EQ(s.nr, 0);
	w = written(WALK_ENTRIES + 1);
	EXPECT_TRUE(take(&w, WALK_ENTRIES + 1));
	callchain_beside_add(&beside, &s);
	EXPECT_EQ(s.nr, 0);
	/* Another kind of record. */
	w.head.end = LANGUAGE_MOMENT;
	EXPECT_FALSE(take(&w, 4));
	EXPECT_FALSE(callchain_beside_take(&beside, TID, &w, 8));
}

TEST(as_many_entries_as_there_is_room_for)
{
	static uint64_t kernel[CALLCHAIN_BESIDE_MAX];
	const struct written w = written(WALK_ENTRIES);
	struct perf_sample s = sample_of(TID, PC);

	kernel[0] = PERF_CONTEXT_KERNEL;
	s.chain = kernel;
	s.nr = CALLCHAIN_BESIDE_MAX - WALK_ENTRIES;
	ASSERT_TRUE(take(&w, WALK_ENTRIES));
	callchain_beside_add(&beside, &s);
	EXPECT_EQ(s.nr, CALLCHAIN_BESIDE_MAX);
	s.chain = kernel;
	s.nr = CALLCHAIN_BESIDE_MAX - WALK_ENTRIES + 1;
	ASSERT_TRUE(take(&w, WALK_ENTRIES));
	callchain_beside_add(&beside, &s);
	EXPECT_EQ(s.chain, &kernel[0]);
}

TEST(as_many_entries_as_are_asked_for)
{
	const uint64_t kernel[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000 };
	const struct written w = written(4);
	struct perf_sample s = sample_of(TID, PC);

	s.chain = kernel;
	s.nr = 2;
	s.max_chain = 3;
	ASSERT_TRUE(take(&w, 4));
	callchain_beside_add(&beside, &s);
	EXPECT_EQ(s.nr, 5);
	ASSERT_EQ(perf_sample_user(&s).nr, 2);
	EXPECT_EQ(perf_sample_user(&s).max, 2);
	EXPECT_EQ(perf_sample_user(&s).ips[1], PC + 0x10);
}

TEST(a_stack_whose_callchain_was_lost_is_not_complete)
{
	static struct stacks st = { .source = STACK_COPIES };
	struct perf_sample s = sample_of(TID, PC);
	struct population all = { .live = false };
	struct process p = { .pid = TID };
	struct task t = { .process = &p };
	struct stack stack;

	s.abi = PERF_SAMPLE_REGS_ABI_32;
	ASSERT_EQ(stacks_make(&st, &all, &t, &s, NULL, NULL, &stack), 0);
	ASSERT_EQ(stack.nr, 1);
	EXPECT_EQ(stack.pcs[0], PC);
	EXPECT_NE(stack.end, SHSTK_END_COMPLETE);
}

/* Returns whether samples of the event have the kernel's callchain of user space. */
static bool has_user(const char *name, int which, bool no_user)
{
	const struct perf_opts opts = {
		.main = perf_event_find(name),
		.freq = 99,
		.no_user = no_user,
		.cgroup = -1,
	};
	struct perf_event_attr attr;

	perf_rings_attr(&opts, which, &attr);
	return !attr.exclude_callchain_user;
}

TEST(no_other_callchain_is_asked_for)
{
	EXPECT_TRUE(has_user("cpu-clock", PERF_MAIN, false));
	EXPECT_FALSE(has_user("cpu-clock", PERF_MAIN, true));
	EXPECT_FALSE(has_user("page-faults", PERF_MAIN, true));
	EXPECT_FALSE(has_user("cpu-clock", PERF_OFF, true));
}

TEST_HARNESS_MAIN
