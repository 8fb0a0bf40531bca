// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * accessors_test.c - what V8 has no variables for is found by the very code of its functions, or not at all
 * (tools/language/v8/accessors.c). The memory of the process is this test's own.
 */
#include <errno.h>
#include <string.h>

#include "tools/language/v8/v8.h"

#include "kselftest_harness.h"

#define MEMORY 0x1000 /* its address */
#define MEMORY_BYTES 0x800
#define CURRENT 0x40 /* offsets of functions */
#define TRY_CURRENT 0x80
#define INNER 0x100 /* of one to which both go on */
#define RANGE 0x180
#define ACCESSORS 0x200
#define INDEX 0x400 /* offset of what __tls_get_addr() gets */
#define MODULE 3
#define OFFSET 0x10
#define DISTANCE (-0xa0) /* from the thread pointer */
#define BLOB 0x11050

#include "selftests/language/own_memory.h"

static const struct v8_symbols stripped = {
	.current = MEMORY + CURRENT,
	.try_current = MEMORY + TRY_CURRENT,
	.range = MEMORY + RANGE,
};

/* Writes a number of four bytes. */
static void put(size_t at, uint32_t number)
{
	memcpy(memory + at, &number, sizeof(number));
}

/* Writes an instruction that goes to an offset. */
static void go_to(size_t at, uint8_t instruction, size_t to)
{
	memory[at] = instruction;
	put(at + 1, (uint32_t)(to - (at + 5)));
}

/* As in Debian 14's library, which the functions jump to. */
static void make_library(void)
{
	static const uint8_t code[] = {
		0x55, 0x48, 0x89, 0xe5, 0x66, 0x48, 0x8d, 0x3d, 0,    0,    0,	  0,	0x66,
		0x66, 0x48, 0xe8, 0,	0,    0,    0,	  0x5d, 0x48, 0x8b, 0x00, 0xc3,
	};
	const uint64_t index[] = { MODULE, OFFSET };

	memset(memory, 0, sizeof(memory));
	go_to(CURRENT, 0xe9, INNER);
	go_to(TRY_CURRENT, 0xe9, INNER);
	memcpy(memory + INNER, code, sizeof(code));
	put(INNER + 8, INDEX - (INNER + 12));
	memcpy(memory + INDEX, index, sizeof(index));
}

/* As in the program of Node.js 24. */
static void put_program(size_t at)
{
	static const uint8_t code[] = {
		0xb8, 0, 0, 0, 0,    0x48, 0x85, 0xc0, 0x74, 0x16, 0x55, 0x48, 0x89, 0xe5, 0xe8,
		0,    0, 0, 0, 0x5d, 0x64, 0x48, 0x8b, 0x04, 0x25, 0,	 0,    0,    0,	   0xc3,
	};

	memcpy(memory + at, code, sizeof(code));
	put(at + 25, (uint32_t)DISTANCE);
}

/* Functions that return members, and one that calls those which follow them. */
static void make_accessors(void)
{
	static const uint8_t wide[] = { 0x48, 0x8b, 0x87, 0, 0, 0, 0, 0xc3 };

	memset(memory, 0, sizeof(memory));
	for (unsigned int i = 0; i < 4; i++) {
		memcpy(memory + ACCESSORS + 16 * i, wide + i % 2, sizeof(wide) - i % 2);
		put(ACCESSORS + 16 * i + 3 - i % 2, BLOB + 8 * i);
		go_to(RANGE + 5 * i, 0xe8, ACCESSORS + 16 * (7 - i));
	}
	memory[RANGE + 20] = 0xc3;
}

TEST(a_librarys_variable_is_found_by_what_its_functions_read)
{
	struct context_variable v = { 0 };

	make_library();
	ASSERT_EQ(0, v8_find_current(&module, &stripped, &v));
	EXPECT_EQ(MODULE, v.module);
	EXPECT_EQ(OFFSET, v.offset);
	/* It is not loaded yet. */
	memset(memory + INDEX, 0, 8);
	EXPECT_EQ(-EAGAIN, v8_find_current(&module, &stripped, &v));
	/* No library has that number. */
	memset(memory + INDEX, 0xff, 8);
	EXPECT_EQ(-ENOENT, v8_find_current(&module, &stripped, &v));
}

TEST(a_programs_variable_is_found_by_what_its_functions_read)
{
	struct context_variable v = { .module = 1 };

	memset(memory, 0, sizeof(memory));
	put_program(CURRENT);
	put_program(TRY_CURRENT);
	ASSERT_EQ(0, v8_find_current(&module, &stripped, &v));
	EXPECT_EQ(0, v.module);
	EXPECT_EQ(DISTANCE, v.offset);
}

TEST(functions_that_differ_tell_no_variable)
{
	struct context_variable v;

	memset(memory, 0, sizeof(memory));
	put_program(CURRENT);
	put_program(TRY_CURRENT);
	put(TRY_CURRENT + 25, (uint32_t)DISTANCE + 8);
	EXPECT_EQ(-ENOENT, v8_find_current(&module, &stripped, &v));
}

TEST(code_that_is_different_anywhere_tells_no_variable)
{
	struct context_variable v;

	for (size_t i = 4; i < 25; i++) {
		/* These are distances. */
		if ((i >= 8 && i < 12) || (i >= 16 && i < 20))
			continue;
		make_library();
		memory[INNER + i] ^= 0x20;
		EXPECT_EQ(-ENOENT, v8_find_current(&module, &stripped, &v))
		{
			TH_LOG("byte %zu", i);
		}
	}
}

TEST(functions_outside_of_the_memory_are_tried_again)
{
	struct context_variable v;
	struct v8_symbols far = stripped;

	make_library();
	far.current = MEMORY + sizeof(memory) - 8;
	EXPECT_EQ(-EAGAIN, v8_find_current(&module, &far, &v));
	far.current = 0;
	EXPECT_EQ(-ENOENT, v8_find_current(&module, &far, &v));
}

TEST(members_are_found_by_functions_with_symbols)
{
	const struct v8_symbols s = { .blob = MEMORY + ACCESSORS,
				      .blob_size = MEMORY + ACCESSORS + 16 };
	struct native_target t = { 0 };

	make_accessors();
	ASSERT_TRUE(v8_find_built_in(&module, &s, &t));
	EXPECT_EQ(BLOB, t.built_in_at);
	EXPECT_EQ(BLOB + 8, t.built_in_size_at);
}

TEST(members_are_found_by_functions_that_come_before_those_that_are_called)
{
	struct native_target t = { 0 };

	make_accessors();
	ASSERT_TRUE(v8_find_built_in(&module, &stripped, &t));
	EXPECT_EQ(BLOB, t.built_in_at);
	EXPECT_EQ(BLOB + 8, t.built_in_size_at);
}

TEST(other_functions_before_those_that_are_called_tell_no_members)
{
	struct native_target t;

	for (unsigned int i = 0; i < 4; i++) {
		make_accessors();
		put(ACCESSORS + 16 * i + 3 - i % 2, BLOB + 8 * i + 8);
		EXPECT_FALSE(v8_find_built_in(&module, &stripped, &t));
		make_accessors();
		memory[ACCESSORS + 16 * i + 7 - i % 2] = 0x90;
		EXPECT_FALSE(v8_find_built_in(&module, &stripped, &t));
	}
	make_accessors();
	memory[RANGE] = 0xc3;
	EXPECT_FALSE(v8_find_built_in(&module, &stripped, &t));
}

TEST_HARNESS_MAIN
