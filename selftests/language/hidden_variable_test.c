// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hidden_variable_test.c - a thread-local variable that no symbol tells of is found by the very code of a function
 * that reads it, or not at all (tools/language/hidden_variable.c). The memory of the process is this test's own.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "tools/language/hidden_variable.h"

#include "kselftest_harness.h"

#define MEMORY 0x100000 /* its address */
#define MEMORY_BYTES 0x4000
#define FUNCTION 0x120 /* offset of the function, and */
#define WORDS 0x2340 /* of what the loader fills in, and */
#define DESCRIBED 0x3000 /* of what that may refer to */
#define MODULE 3
#define OFFSET 0x28
#define NONE HIDDEN_VARIABLE_RESULT

#include "selftests/language/own_memory.h"

/* PyGILState_GetThisThreadState() of Debian's 3.15.0, as its program has it on x86-64, */
static const uint8_t own_x86[] = {
	0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3,
};

/* its library, without the distance to the words, */
static const uint8_t library_x86[] = {
	0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x3d, 0, 0, 0,    0,
	0xe8, 1,    2,	  3,	4,    0x5d, 0x48, 0x8b, 0x80, 0x28, 0,	  0, 0, 0xc3,
};

#define INDEX_AT 11 /* in it */
#define CALL_AT 16

/* its program on arm64, */
static const uint32_t own_arm64[] = {
	0xd503245f, 0xd53bd040, 0xd503233f, 0xa9bf7bfd, 0x91400400, 0x91008000,
	0x910003fd, 0xa8c17bfd, 0xd50323bf, 0xf9400000, 0xd65f03c0,
};

/* and its library, with the distance to the words. */
static const uint32_t library_arm64[] = {
	0xd503233f, 0xd53bd041, 0xa9bf7bfd, 0x910003fd, 0xd0000000, 0xf941a002,
	0x910d0000, 0xd63f0040, 0xf8606820, 0xa8c17bfd, 0xd50323bf, 0xd65f03c0,
};

static void put(size_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

/* Writes a function, and two words. */
static void make(const void *code, size_t size, uint64_t first, uint64_t second)
{
	const int32_t distance = WORDS - (FUNCTION + INDEX_AT + 4);

	memset(memory, 0, sizeof(memory));
	memcpy(memory + FUNCTION, code, size);
	if (code == library_x86)
		memcpy(memory + FUNCTION + INDEX_AT, &distance, sizeof(distance));
	put(WORDS, first);
	put(WORDS + 8, second);
}

static int find_member(unsigned int machine, int member, struct context_variable *ret)
{
	const struct hidden_variable_reader reader = {
		.read = read_memory,
		.machine = machine,
		.function = MEMORY + FUNCTION,
		.member = member,
	};

	*ret = (struct context_variable){ 0 };
	return hidden_variable_find(&reader, ret);
}

static int find(unsigned int machine, struct context_variable *ret)
{
	return find_member(machine, NONE, ret);
}

#define EXPECT_VARIABLE(machine, number, at, age)           \
	do {                                                \
		struct context_variable found;              \
                                                            \
		ASSERT_EQ(0, find(machine, &found));        \
		EXPECT_EQ(number, found.module);            \
		EXPECT_EQ((int64_t)(at), found.offset);     \
		EXPECT_EQ((uint64_t)age, found.generation); \
	} while (0)

TEST(a_program_has_it_at_a_distance)
{
	make(own_x86, sizeof(own_x86), 0, 0);
	EXPECT_VARIABLE(EM_X86_64, 0, -0x28, 0);
	make(own_arm64, sizeof(own_arm64), 0, 0);
	EXPECT_VARIABLE(EM_AARCH64, 0, 0x1020, 0);
}

TEST(a_library_has_it_in_the_block_of_its_module)
{
	make(library_x86, sizeof(library_x86), MODULE, 0x10);
	EXPECT_VARIABLE(EM_X86_64, MODULE, 0x10 + OFFSET, 0);
}

TEST(a_descriptor_says_the_distance_or_where_its_module_is)
{
	make(library_arm64, sizeof(library_arm64), MEMORY, OFFSET);
	EXPECT_VARIABLE(EM_AARCH64, 0, OFFSET, 0);
	make(library_arm64, sizeof(library_arm64), MEMORY, MEMORY + DESCRIBED);
	put(DESCRIBED, MODULE);
	put(DESCRIBED + 8, OFFSET);
	put(DESCRIBED + 16, 7);
	EXPECT_VARIABLE(EM_AARCH64, MODULE, OFFSET, 7);
}

TEST(code_without_a_mark_for_branches_says_the_same)
{
	make(own_x86 + 4, sizeof(own_x86) - 4, 0, 0);
	EXPECT_VARIABLE(EM_X86_64, 0, -0x28, 0);
	make(own_arm64 + 1, sizeof(own_arm64) - 4, 0, 0);
	EXPECT_VARIABLE(EM_AARCH64, 0, 0x1020, 0);
}

TEST(what_is_not_prepared_is_to_be_asked_again)
{
	struct context_variable found;

	make(library_x86, sizeof(library_x86), 0, 0);
	EXPECT_EQ(-EAGAIN, find(EM_X86_64, &found));
	make(library_arm64, sizeof(library_arm64), 0, 0);
	EXPECT_EQ(-EAGAIN, find(EM_AARCH64, &found));
	make(library_arm64, sizeof(library_arm64), MEMORY, MEMORY + MEMORY_BYTES - 8);
	EXPECT_EQ(-EAGAIN, find(EM_AARCH64, &found));
}

TEST(numbers_that_nobody_has_say_nothing)
{
	static const uint64_t cases[][2] = {
		{ UINT64_MAX, 0 },
		{ 4097, 0 },
		{ MODULE, 1 << 24 },
		{ MODULE, UINT64_MAX },
	};
	struct context_variable found;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		make(library_x86, sizeof(library_x86), cases[i][0], cases[i][1]);
		/* To the last one, the function adds so much that it is small again. */
		EXPECT_EQ(i < 3 ? -ENOENT : 0, find(EM_X86_64, &found));
		make(library_arm64, sizeof(library_arm64), MEMORY, MEMORY + DESCRIBED);
		put(DESCRIBED, cases[i][0]);
		put(DESCRIBED + 8, cases[i][1]);
		EXPECT_EQ(-ENOENT, find(EM_AARCH64, &found));
	}
}

/* Returns whether a byte of the code belongs to an operand that may be anything. */
static bool is_free(const void *code, size_t byte)
{
	if (code == own_x86)
		return byte >= 9 && byte < 13;
	if (code == library_x86)
		return (byte >= INDEX_AT && byte < INDEX_AT + 4) ||
		       (byte >= CALL_AT && byte < CALL_AT + 4) || (byte >= 24 && byte < 28);
	if (code == own_arm64)
		return byte / 4 == 4 || byte / 4 == 5;
	return byte / 4 == 4 || byte / 4 == 5 || byte / 4 == 6;
}

TEST(other_code_says_nothing)
{
	static const struct {
		const void *code;
		size_t size;
		unsigned int machine;
	} cases[] = {
		{ own_x86, sizeof(own_x86), EM_X86_64 },
		{ library_x86, sizeof(library_x86), EM_X86_64 },
		{ own_arm64, sizeof(own_arm64), EM_AARCH64 },
		{ library_arm64, sizeof(library_arm64), EM_AARCH64 },
	};
	struct context_variable found;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (size_t k = 0; k < cases[i].size; k++) {
			make(cases[i].code, cases[i].size, MODULE, OFFSET);
			memory[FUNCTION + k] ^= 0x10;
			if (is_free(cases[i].code, k))
				continue;
			EXPECT_EQ(-ENOENT, find(cases[i].machine, &found))
			{
				TH_LOG("case %zu, byte %zu", i, k);
			}
		}
		make(cases[i].code, cases[i].size, MODULE, OFFSET);
		EXPECT_EQ(-ENOENT, find(cases[i].machine ^ EM_X86_64 ^ EM_AARCH64, &found));
		EXPECT_EQ(-ENOENT, find_member(cases[i].machine, OFFSET, &found));
	}
}

TEST(a_descriptor_of_which_code_calls_another_one_says_nothing)
{
	struct context_variable found;

	make(library_arm64, sizeof(library_arm64), MEMORY, OFFSET);
	memory[FUNCTION + 5 * 4 + 1] ^= 0x04;
	EXPECT_EQ(-ENOENT, find(EM_AARCH64, &found));
}

TEST(a_function_that_is_missing_says_nothing)
{
	struct hidden_variable_reader reader = {
		.read = read_memory,
		.machine = EM_X86_64,
		.member = NONE,
	};
	struct context_variable found;

	EXPECT_EQ(-ENOENT, hidden_variable_find(&reader, &found));
	reader.function = MEMORY + MEMORY_BYTES - 8;
	EXPECT_EQ(-ENOENT, hidden_variable_find(&reader, &found));
}

TEST_HARNESS_MAIN
