// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * moment_test.c - copies of a thread's own stack, with the goroutine's and what leads to it beside
 * them, as a BPF program copies these: the program and its memory are made here.
 */
#include <stdlib.h>

#include "selftests/go/runtime.h"
#include "tools/convert/mappings.h"

#include "kselftest_harness.h"

#define MAX 16
#define WORDS 26 /* words of a goroutine's description */

enum { OF_G0, OF_M, OF_G, OF_STACK, PIECES };

static int add(void *arg, pid_t pid, struct shstk_space *space, const struct mappings_map *map)
{
	static uint8_t file[SMALL_SIZE];

	(void)arg;
	(void)pid;
	memset(file, 0, sizeof(file));
	make_program(file, program_arm64, EM_AARCH64, PROGRAM, SMALL_READ_ONLY);
	return shstk_space_add_image(space, file, sizeof(file), map->start);
}

static const struct mappings_files files = { .arch = SHSTK_ARCH_ARM64, .add = add };

/* clang-format off */
FIXTURE(moment)
{
	struct mappings *mappings;
	struct memory_piece pieces[PIECES];
	struct unwound stack;
	uint64_t pcs[MAX], sps[MAX];
	uint8_t marks[MAX];
};

FIXTURE_SETUP(moment)
{
	struct mappings_map map = { .start = PROGRAM, .end = PROGRAM + SMALL_TABLE };

	map.path = "/program";
	self->mappings = mappings_create(&files);
	ASSERT_NE(self->mappings, NULL);
	ASSERT_EQ(mappings_add(&self->mappings, 1, &map), 1);
	ASSERT_TRUE(make_thread());
	self->stack = (struct unwound){ .pcs = self->pcs, .marks = self->marks,
					.sps = self->sps, .max = MAX };
}

FIXTURE_TEARDOWN(moment)
{
	mappings_put(self->mappings);
	munmap((void *)(uintptr_t)MEMORY, MEMORY_SIZE);
}
/* clang-format on */

static struct memory_piece piece(uint64_t addr, size_t size)
{
	return (struct memory_piece){ addr, (const uint8_t *)(uintptr_t)addr, size };
}

/*
 * Unwinds the copied stack of a thread and the first @nr pieces beside it: main.run() called
 * systemstack, on whose other side main.work() runs.
 */
static int unwind(FIXTURE_DATA(moment) * self, uint64_t work_in, size_t nr)
{
	const uint64_t g_sp = MEMORY + G_STACK + STACK_SIZE - 128;
	const uint64_t g0_sp = MEMORY + G0_STACK + STACK_SIZE - 128;
	struct shstk_regs regs = { .size = sizeof(regs), .known = UINT32_MAX };
	struct stack_copy copy = { .regs = &regs };

	put(g_sp, PC(RUN, 2));
	put(g_sp + 32, PC(GOEXIT, 1));
	put(MEMORY + G + SCHED_SP, work_in == PC(MORESTACK, 2) ? g_sp + 32 : g_sp);
	put(MEMORY + G + SCHED_PC, PC(RUN, 1));
	put(g0_sp, work_in);
	regs.pc = PC(WORK, 2);
	regs.r[31] = g0_sp;
	regs.r[28] = MEMORY + G0;
	self->pieces[OF_G0] = piece(MEMORY + G0, 8 * WORDS);
	self->pieces[OF_M] = piece(MEMORY + M, 8 * WORDS);
	self->pieces[OF_G] = piece(MEMORY + G, 8 * WORDS);
	self->pieces[OF_STACK] = piece(g_sp, 128);
	copy.bytes = (const uint8_t *)(uintptr_t)g0_sp;
	copy.size = 128;
	copy.more = self->pieces;
	copy.nr_more = nr;
	return mappings_unwind(self->mappings, 1, &copy, &self->stack);
}

static bool is_stack(const FIXTURE_DATA(moment) * self, const uint64_t *pcs, size_t nr)
{
	return self->stack.nr == nr && !memcmp(self->pcs, pcs, nr * sizeof(*pcs));
}

TEST_F(moment, the_goroutines_stack_follows)
{
	const uint64_t whole[] = { PC(WORK, 2), PC(SYSTEMSTACK, 2), PC(RUN, 2), PC(GOEXIT, 1) };

	ASSERT_EQ(unwind(self, PC(SYSTEMSTACK, 2), PIECES), 0);
	EXPECT_TRUE(is_stack(self, whole, 4));
	EXPECT_EQ(self->stack.end, SHSTK_END_COMPLETE);
}

TEST_F(moment, so_it_does_where_a_larger_stack_is_made)
{
	const uint64_t whole[] = { PC(WORK, 2), PC(MORESTACK, 2), PC(RUN, 1), PC(GOEXIT, 1) };

	ASSERT_EQ(unwind(self, PC(MORESTACK, 2), PIECES), 0);
	EXPECT_TRUE(is_stack(self, whole, 4));
	EXPECT_EQ(self->stack.end, SHSTK_END_COMPLETE);
}

TEST_F(moment, without_the_goroutines_stack_it_ends_at_the_switch)
{
	ASSERT_EQ(unwind(self, PC(SYSTEMSTACK, 2), OF_STACK), 0);
	EXPECT_EQ(self->stack.nr, 2);
	EXPECT_EQ(self->stack.end, SHSTK_END_READ);
}

TEST_F(moment, a_goroutine_that_does_not_agree_leads_nowhere)
{
	put(MEMORY + G + SCHED_G, MEMORY + G0);
	ASSERT_EQ(unwind(self, PC(SYSTEMSTACK, 2), PIECES), 0);
	EXPECT_EQ(self->stack.nr, 2);
	EXPECT_EQ(self->stack.end, SHSTK_END_BAD_STACK);
}

TEST_HARNESS_MAIN
