// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * read_twice_test.c - tests how much is read of a stack that seems to have no end.
 *
 * The functions of mappings.h are replaced: all addresses can be read, and each unwinding ends
 * where nothing was read.
 */
#include "tools/convert/stack_read_twice.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define TOP 0x7ffff7000123ull
#define MOST (1u << 20) /* bytes of a stack that are read at most */
#define STEP 16384 /* bytes that are read at a time */
#define ENTRIES 16

static uint64_t now;
static unsigned int reads, unwound;

uint64_t now_ns(clockid_t clock)
{
	(void)clock;
	return ++now;
}

bool mappings_has_jit(const struct mappings *mappings)
{
	(void)mappings;
	return false;
}

uint64_t mappings_sp(const struct mappings *mappings, const struct stack_copy *copy)
{
	(void)mappings;
	(void)copy;
	return TOP;
}

int mappings_read(const struct mappings *mappings, pid_t pid, uint64_t addr, void *buf, size_t size)
{
	(void)mappings;
	(void)pid;
	(void)addr;
	reads++;
	memset(buf, 0, size);
	return 0;
}

/* The stack goes on right behind what was read. */
int mappings_unwind(struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
		    struct unwound *ret)
{
	const struct memory_piece *last = &copy->more[copy->nr_more - 1];

	(void)mappings;
	(void)pid;
	unwound++;
	ret->end = SHSTK_END_READ;
	ret->missed = last->addr + last->size;
	return 0;
}

TEST(of_a_stack_without_an_end_a_fixed_part_is_read)
{
	struct shstk_regs regs = { 0 };
	struct stack_copy copy = { .regs = &regs };
	struct unwound stack = { .max = ENTRIES, .end = SHSTK_END_READ };
	size_t kept = 0;
	struct above a;

	above_init(&a, &kept);
	EXPECT_FALSE(above_continue(&a, NULL, 1, now, &copy, &stack));
	EXPECT_GT(reads, 0);
	EXPECT_LE(unwound, ABOVE_PIECES);
	EXPECT_GE(a.last.size, MOST);
	EXPECT_LT(a.last.size, MOST + STEP);
	EXPECT_LE(kept, MOST + STEP);
	above_deinit(&a);
	EXPECT_EQ(kept, 0);
}

TEST_HARNESS_MAIN
