// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * read_twice_test.c - tests how much is read of a stack that seems to have no end, and what counts
 * of what was read.
 *
 * The functions of mappings.h are replaced: all addresses can be read, and each unwinding ends
 * where nothing was read, or has the callers that a test says.
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

/* The stack pointers of the entries of the whole stack; NULL: the stack has no end. */
static const uint64_t *whole;

/* The entry of the whole stack that is a signal's frame; 0: there is none. */
static unsigned int signal_entry;

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

/* The stack goes on right behind what was read, unless it is known. */
int mappings_unwind(struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
		    struct unwound *ret)
{
	const struct memory_piece *last = &copy->more[copy->nr_more - 1];

	(void)mappings;
	(void)pid;
	unwound++;
	if (whole) {
		memcpy(ret->sps, whole, ENTRIES * sizeof(*whole));
		memset(ret->pcs, 1, ENTRIES * sizeof(*ret->pcs));
		memset(ret->marks, 0, ENTRIES);
		if (signal_entry)
			ret->marks[signal_entry] = SHSTK_MARK_SIGNAL;
		ret->nr = ENTRIES;
		ret->end = SHSTK_END_COMPLETE;
		return 0;
	}
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

/* Looks twice at a stack with these stack pointers, whose first @copied entries are from its copy. */
static bool continues(const uint64_t *sps, unsigned int copied, uint8_t marks[ENTRIES])
{
	struct shstk_regs regs = { 0 };
	struct stack_copy copy = { .regs = &regs };
	uint64_t pcs[ENTRIES], to[ENTRIES];
	struct unwound stack = {
		.pcs = pcs,
		.sps = to,
		.marks = marks,
		.max = ENTRIES,
		.end = SHSTK_END_READ,
		.nr = copied,
	};
	size_t kept = 0;
	struct above a;
	bool ret;

	whole = sps;
	above_init(&a, &kept);
	ret = above_continue(&a, NULL, 1, ++now, &copy, &stack) ||
	      above_continue(&a, NULL, 1, ++now, &copy, &stack);
	above_deinit(&a);
	whole = NULL;
	return ret;
}

/* Functions may be called from elsewhere between two looks, and again by the same callers. */
TEST(callers_that_were_read_are_guesses)
{
	uint8_t marks[ENTRIES] = { 0 };
	uint64_t sps[ENTRIES];

	for (unsigned int i = 0; i < ENTRIES; i++)
		sps[i] = TOP + 16 * i;
	ASSERT_TRUE(continues(sps, 4, marks));
	for (unsigned int i = 0; i < ENTRIES; i++)
		EXPECT_EQ(marks[i] & SHSTK_MARK_GUESS, i < 4 ? 0 : SHSTK_MARK_GUESS);
}

/* Fibers of a runtime are short-lived. */
TEST(callers_on_a_lower_stack_are_not_taken)
{
	uint8_t marks[ENTRIES] = { 0 };
	uint64_t sps[ENTRIES];

	for (unsigned int i = 0; i < ENTRIES; i++)
		sps[i] = TOP + 16 * i - (i < 8 ? 0 : 65536);
	EXPECT_FALSE(continues(sps, 4, marks));
	EXPECT_FALSE(continues(sps, 8, marks));
	/* What the copy has is of the moment of the sample. */
	EXPECT_TRUE(continues(sps, 9, marks));
	/* A signal handler has interrupted what lies there, on a stack of its own. */
	signal_entry = 7;
	EXPECT_TRUE(continues(sps, 4, marks));
	EXPECT_TRUE(marks[8] & SHSTK_MARK_GUESS);
	signal_entry = 0;
}

TEST_HARNESS_MAIN
