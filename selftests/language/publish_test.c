// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * publish_test.c - where PHP makes a frame the innermost one (tools/language/php/publish.c), with code of the
 * test's own.
 */
#include <errno.h>
#include <string.h>

#include "tools/language/php/publish.h"

#include "kselftest_harness.h"

#define START 0x400000
#define CURRENT (START + 0x200000 + OFFSET) /* address of the variable */
#define OFFSET 0x1e8
#define PIECE 65536 /* is read at once */

static uint8_t code[3 * PIECE];

/* Reads memory of the process. @arg: so many bytes can be read. */
static int read_code(void *arg, uint64_t addr, void *buf, size_t size)
{
	const size_t *most = arg;

	if (addr < START || addr - START + size > *most)
		return -EFAULT;
	memcpy(buf, code + (addr - START), size);
	return 0;
}

/* An instruction that stores a register. */
struct store {
	uint8_t bytes[8];
	unsigned int length;
};

static const struct store stores[] = {
	{ { 0x48, 0x89, 0x85, 0xe8, 1, 0, 0 }, 7 }, /* mov %rax,0x1e8(%rbp) */
	{ { 0x4d, 0x89, 0xbe, 0xe8, 1, 0, 0 }, 7 }, /* mov %r15,0x1e8(%r14) */
	{ { 0x49, 0x89, 0x94, 0x24, 0xe8, 1, 0, 0 }, 8 }, /* mov %rdx,0x1e8(%r12) */
};

static void put(size_t at, const struct store *s)
{
	memcpy(code + at, s->bytes, s->length);
}

/* Puts an instruction that stores a register in the variable, which tells the distance. Returns its end. */
static size_t put_relative(size_t at)
{
	const uint32_t distance = (uint32_t)(CURRENT - (START + at + 7));

	memcpy(code + at, (const uint8_t[]){ 0x48, 0x89, 0x05 }, 3);
	memcpy(code + at + 3, &distance, sizeof(distance));
	return at + 7;
}

static void find(size_t size, size_t readable, struct language_found *ret)
{
	const struct language_module m = { .read = read_code, .arg = &readable };

	php_find_publishing(&m, START, size, CURRENT, OFFSET, ret);
}

TEST(instructions_that_store_a_register_in_the_variable_are_found)
{
	struct language_found found = { 0 };
	size_t end;

	memset(code, 0x90, sizeof(code));
	for (size_t i = 0; i < 3; i++)
		put(100 * (i + 1), &stores[i]);
	end = put_relative(400);
	find(sizeof(code), sizeof(code), &found);
	ASSERT_EQ(4, found.nr_publishing);
	for (size_t i = 0; i < 3; i++)
		EXPECT_EQ(START + 100 * (i + 1) + stores[i].length, found.publishing[i]);
	EXPECT_EQ(START + end, found.publishing[3]);
}

TEST(others_are_not)
{
	static const struct store others[] = {
		{ { 0x48, 0x89, 0x85, 0xe0, 1, 0, 0 }, 7 }, /* another offset */
		{ { 0x48, 0x8b, 0x85, 0xe8, 1, 0, 0 }, 7 }, /* it is loaded */
		{ { 0x40, 0x89, 0x85, 0xe8, 1, 0, 0 }, 7 }, /* half of it */
		{ { 0x48, 0x89, 0x45, 0xe8, 1, 0, 0 }, 7 }, /* an offset of one byte */
		{ { 0x48, 0x89, 0xc5, 0xe8, 1, 0, 0 }, 7 }, /* to a register */
		{ { 0x48, 0x89, 0x05, 0xe8, 1, 0, 0 }, 7 }, /* elsewhere */
	};
	struct language_found found = { 0 };

	memset(code, 0x90, sizeof(code));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		put(100 * (i + 1), &others[i]);
	find(sizeof(code), sizeof(code), &found);
	EXPECT_EQ(0, found.nr_publishing);
}

TEST(they_are_found_wherever_pieces_end)
{
	struct language_found found;

	for (size_t at = PIECE - 9; at <= PIECE + 1; at++) {
		memset(code, 0x90, sizeof(code));
		found = (struct language_found){ 0 };
		put(at, &stores[2]);
		find(sizeof(code), sizeof(code), &found);
		ASSERT_EQ(1, found.nr_publishing);
		EXPECT_EQ(START + at + 8, found.publishing[0]);
	}
	/* At the end of the code, too; not beyond it. */
	memset(code, 0x90, sizeof(code));
	put(1000, &stores[2]);
	for (size_t size = 1000; size <= 1010; size++) {
		found = (struct language_found){ 0 };
		find(size, size, &found);
		EXPECT_EQ(size >= 1008, found.nr_publishing);
	}
}

TEST(the_function_that_runs_frames_has_none)
{
	struct language_found found = {
		.run_start = START + 50,
		.run_end = START + 150,
		.cold_start = START + 300,
		.cold_end = START + 310,
	};

	memset(code, 0x90, sizeof(code));
	for (size_t i = 0; i < 3; i++)
		put(100 * (i + 1), &stores[i]);
	find(sizeof(code), sizeof(code), &found);
	ASSERT_EQ(1, found.nr_publishing);
	EXPECT_EQ(START + 207, found.publishing[0]);
}

TEST(if_not_all_are_known_they_may_be_anywhere)
{
	struct language_found found = { 0 };

	memset(code, 0x90, sizeof(code));
	find(sizeof(code), sizeof(code) - 1, &found);
	EXPECT_LT(LANGUAGE_PUBLISHING, found.nr_publishing);
	find(0, sizeof(code), &found);
	EXPECT_LT(LANGUAGE_PUBLISHING, found.nr_publishing);
	find(1ull << 60, sizeof(code), &found);
	EXPECT_LT(LANGUAGE_PUBLISHING, found.nr_publishing);
	for (size_t i = 0; i < LANGUAGE_PUBLISHING; i++)
		put(10 * i, &stores[0]);
	find(sizeof(code), sizeof(code), &found);
	EXPECT_EQ(LANGUAGE_PUBLISHING, found.nr_publishing);
	put(sizeof(code) - 10, &stores[0]);
	find(sizeof(code), sizeof(code), &found);
	EXPECT_LT(LANGUAGE_PUBLISHING, found.nr_publishing);
}

TEST_HARNESS_MAIN
