// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * splice_test.c - copies of stacks of Go programs that lack a part, and the kernel's callchain
 * of the same moment: both are made here.
 */
#include <errno.h>
#include <stdlib.h>

#include "selftests/go/small_program.h"
#include "tools/convert/go_stacks.h"

#include "kselftest_harness.h"

#define PROGRAM 0x20000000ull
#define STACK 0x30000000ull
#define FRAME 32
#define MAX 16

enum {
	LEAF,
	WORK,
	RUN,
	SYSTEMSTACK,
	GOEXIT,
	NANOTIME,
};

#define PC(f) (PROGRAM + SMALL_CODE + SMALL_FUNC_SIZE * (f) + 8)

static const struct small_func program[] = {
	{ "main.leaf", { 0 }, 0, 0 },
	{ "main.work", { 0 }, FRAME, 4 },
	{ "main.run", { 0 }, FRAME, 4 },
	{ "runtime.systemstack", { 0 }, FRAME, 4 },
	{ "runtime.goexit", { 0 }, 0, 0 },
	{ "runtime.nanotime1", { 0 }, FRAME, 4 },
	{ NULL, { 0 }, 0, 0 },
};

static int add(void *arg, pid_t pid, struct shstk_space *space, const struct mappings_map *map)
{
	static uint8_t file[SMALL_SIZE];

	(void)arg;
	(void)pid;
	memset(file, 0, sizeof(file));
	make_program(file, program, EM_AARCH64, PROGRAM, SMALL_READ_ONLY);
	return shstk_space_add_image(space, file, sizeof(file), map->start);
}

static const struct mappings_files files = { .arch = SHSTK_ARCH_ARM64, .add = add };

/* clang-format off */
FIXTURE(splice)
{
	struct mappings *mappings;
	struct unwound stack;
	uint64_t pcs[MAX], sps[MAX];
	uint8_t marks[MAX];
};

FIXTURE_SETUP(splice)
{
	struct mappings_map map = { .start = PROGRAM, .end = PROGRAM + SMALL_TABLE };

	map.path = "/program";
	self->mappings = mappings_create(&files);
	ASSERT_NE(self->mappings, NULL);
	ASSERT_EQ(mappings_add(&self->mappings, 1, &map), 1);
	self->stack = (struct unwound){ .pcs = self->pcs, .marks = self->marks,
					.sps = self->sps, .max = MAX };
}

FIXTURE_TEARDOWN(splice)
{
	mappings_put(self->mappings);
}
/* clang-format on */

/*
 * Unwinds a copy of the stack of main.leaf(), which keeps no frame, main.work() and main.run(),
 * called by where goroutines begin. @lost bytes of the outer end were not copied.
 */
static int unwind(FIXTURE_DATA(splice) * self, size_t lost)
{
	static const uint64_t words[2 * FRAME / 8] = { PC(RUN), 0, 0, 0, PC(GOEXIT) };
	struct shstk_regs regs = { .size = sizeof(regs), .known = UINT32_MAX, .pc = PC(LEAF) };
	struct stack_copy copy = { .regs = &regs,
				   .bytes = (const uint8_t *)words,
				   .size = sizeof(words) - lost };

	regs.r[30] = PC(WORK);
	regs.r[31] = STACK;
	return mappings_unwind(self->mappings, 1, &copy, &self->stack);
}

static bool is_stack(const FIXTURE_DATA(splice) * self, const uint64_t *pcs, size_t nr)
{
	return self->stack.nr == nr && !memcmp(self->pcs, pcs, nr * sizeof(*pcs));
}

static const uint64_t whole[] = { PC(LEAF), PC(WORK), PC(RUN), PC(GOEXIT) };

TEST_F(splice, a_whole_copy_needs_no_callchain)
{
	const uint64_t ips[] = { PC(LEAF), PC(WORK), PC(RUN), PC(GOEXIT) };
	const struct callchain chain = { ips, 4, 127 };

	ASSERT_EQ(unwind(self, 0), 0);
	EXPECT_TRUE(is_stack(self, whole, 4));
	EXPECT_EQ(self->stack.end, SHSTK_END_COMPLETE);
	EXPECT_FALSE(splice_stack(self->mappings, &chain, &self->stack));
	EXPECT_TRUE(is_stack(self, whole, 4));
}

TEST_F(splice, what_is_behind_the_copy_is_the_callchains)
{
	const uint64_t ips[] = { PC(LEAF), PC(WORK), PC(RUN), PC(GOEXIT) };
	const struct callchain chain = { ips, 4, 127 };

	ASSERT_EQ(unwind(self, FRAME), 0);
	EXPECT_TRUE(is_stack(self, whole, 3));
	EXPECT_EQ(self->stack.end, SHSTK_END_READ);
	EXPECT_TRUE(splice_stack(self->mappings, &chain, &self->stack));
	EXPECT_TRUE(is_stack(self, whole, 4));
	EXPECT_EQ(self->stack.end, SHSTK_END_COMPLETE);
}

TEST_F(splice, the_callchain_may_lack_the_caller_of_a_function_without_a_frame)
{
	const uint64_t ips[] = { PC(LEAF), PC(RUN), PC(GOEXIT) };
	const struct callchain chain = { ips, 3, 127 };

	ASSERT_EQ(unwind(self, FRAME), 0);
	EXPECT_TRUE(splice_stack(self->mappings, &chain, &self->stack));
	EXPECT_TRUE(is_stack(self, whole, 4));
}

TEST_F(splice, a_callchain_of_other_frames_adds_nothing)
{
	const uint64_t ips[][4] = {
		{ PC(LEAF), PC(WORK), PC(WORK), PC(GOEXIT) },
		/* this chain goes on like this: it was cut */
		{ PC(LEAF), PC(WORK), PC(RUN), PC(RUN) },
		{ PC(LEAF), PC(WORK), PC(GOEXIT), 0 },
		{ PC(LEAF), PC(WORK), PC(RUN), 0 },
	};
	const size_t nr[] = { 4, 4, 3, 3 };
	size_t i;

	for (i = 0; i < 4; i++) {
		const struct callchain chain = { ips[i], nr[i], 127 };

		ASSERT_EQ(unwind(self, FRAME), 0);
		EXPECT_FALSE(splice_stack(self->mappings, &chain, &self->stack));
		EXPECT_TRUE(is_stack(self, whole, 3));
		EXPECT_EQ(self->stack.end, SHSTK_END_READ);
	}
}

/*
 * Work for a goroutine that runs on its thread's own stack, from which frame pointers lead to the
 * goroutine's.
 */
TEST_F(splice, the_callchain_leads_to_the_goroutines_stack)
{
	const uint64_t ips[] = { PC(LEAF), PC(SYSTEMSTACK), PC(RUN), PC(GOEXIT) };
	const struct callchain chain = { ips, 4, 127 };

	ASSERT_EQ(unwind(self, 0), 0); /* this makes the library read the program */
	self->stack.nr = 2;
	self->pcs[1] = PC(SYSTEMSTACK);
	self->stack.end = SHSTK_END_COMPLETE;
	EXPECT_TRUE(splice_stack(self->mappings, &chain, &self->stack));
	EXPECT_TRUE(is_stack(self, ips, 4));
	self->stack.nr = 2;
	self->stack.end = SHSTK_END_COMPLETE;
	EXPECT_FALSE(
		splice_stack(self->mappings, &(struct callchain){ ips, 3, 127 }, &self->stack));
	EXPECT_EQ(self->stack.end, SHSTK_END_BAD_STACK);
}

static bool in_vdso(FIXTURE_DATA(splice) * self, uint64_t inner, uint64_t next, uint8_t mark)
{
	self->stack.nr = 2;
	self->pcs[0] = inner;
	self->pcs[1] = next;
	self->marks[0] = SHSTK_MARK_PC;
	self->marks[1] = mark;
	return splice_in_vdso(self->mappings, &self->stack);
}

/* A register has the goroutine's stack pointer then only. */
TEST_F(splice, the_vdso_is_called_by_the_innermost_function_of_go)
{
	const uint64_t vdso = STACK;

	ASSERT_EQ(unwind(self, 0), 0); /* this makes the library read the program */
	EXPECT_TRUE(in_vdso(self, vdso, PC(NANOTIME), 0));
	EXPECT_TRUE(in_vdso(self, PC(NANOTIME), PC(RUN), 0));
	EXPECT_FALSE(in_vdso(self, PC(LEAF), PC(NANOTIME), 0));
	EXPECT_FALSE(in_vdso(self, vdso, PC(SYSTEMSTACK), 0));
	/* A signal handler has interrupted it. */
	EXPECT_FALSE(in_vdso(self, vdso, PC(NANOTIME), SHSTK_MARK_PC));
	EXPECT_FALSE(in_vdso(self, vdso, vdso, 0));
}

TEST_HARNESS_MAIN
