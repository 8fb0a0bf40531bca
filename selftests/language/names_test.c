// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * names_test.c - the table with the names of Ruby's methods is found by the very code of rb_id2str(), or not at
 * all (tools/language/ruby/names.c). The memory of the process is this test's own.
 */
#include <errno.h>
#include <string.h>

#include "tools/language/ruby/names.h"

#include "kselftest_harness.h"

#define MEMORY 0x10000 /* its address */
#define MEMORY_BYTES 0x3000
#define READER 0x100 /* offset of the function that reads the table */
#define BEFORE 8 /* bytes in it before those that are looked at */
#define LAST 0x400 /* offset of the number of the last name */
#define NAMES (LAST + 16) /* of the variable with the table's address */
#define TABLE 0x500
#define LIST 0x600
#define WORDS 0x1000 /* of the elements of the list */
#define TEXTS 0x2000

#include "selftests/language/own_memory.h"

static void put_word(size_t at, uint64_t word)
{
	memcpy(memory + at, &word, sizeof(word));
}

/* Writes the distance from behind @at to @to. */
static void put_distance(size_t at, size_t to)
{
	const int32_t distance = (int32_t)to - (int32_t)(at + 4);

	memcpy(memory + at, &distance, sizeof(distance));
}

/* As Debian 13's rb_id2str() and what it goes on in. */
static void put_code(void)
{
	static const uint8_t id2str[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x31, 0xf6, 0x48, 0xc1, 0xe8, 0x04,
		0x48, 0x81, 0xff, 0xa9, 0,    0,    0,	  0x48, 0x0f, 0x47, 0xf8, 0xe9,
	};
	static const uint8_t reader[] = {
		0x39, 0x3d, 0, 0, 0, 0,	   0x72, 0x71, 0x48, 0x8b,
		0x3d, 0,    0, 0, 0, 0x89, 0xde, 0xc1, 0xee, 0x09,
	};
	const size_t at = READER + BEFORE;

	memcpy(memory, id2str, sizeof(id2str));
	put_distance(sizeof(id2str), READER);
	memcpy(memory + at, reader, sizeof(reader));
	put_distance(at + 2, LAST);
	put_distance(at + 11, NAMES);
}

/* As Debian 14's: another register is compared, and the jump is longer. */
static void put_newer_code(void)
{
	static const uint8_t id2str[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x31, 0xf6, 0x48, 0xc1, 0xef,
		0x04, 0x48, 0x3d, 0xa9, 0,    0,    0,	  0x48, 0x0f, 0x46, 0xf8, 0xe9,
	};
	static const uint8_t reader[] = {
		0x39, 0x3d, 0,	  0, 0, 0, 0x0f, 0x82, 0x90, 0,	   0,	 0,
		0x48, 0x8b, 0x3d, 0, 0, 0, 0,	 0x89, 0xd6, 0xc1, 0xee, 0x09,
	};
	const size_t at = READER + BEFORE;

	memset(memory, 0, TABLE);
	put_word(NAMES, MEMORY + TABLE);
	memcpy(memory, id2str, sizeof(id2str));
	put_distance(sizeof(id2str), READER);
	memcpy(memory + at, reader, sizeof(reader));
	put_distance(at + 2, LAST);
	put_distance(at + 15, NAMES);
}

/* Writes the name of an operator: short texts of 3.3 have their length before them. */
static void put_name(char name)
{
	const size_t at = TEXTS + 32 * (size_t)name;

	put_word(WORDS + 16 * (size_t)name, MEMORY + at);
	put_word(at, 5);
	put_word(at + 16, 1);
	memory[at + 24] = (uint8_t)name;
}

/* Makes the library. Short lists have their elements in themselves. */
static void make(void)
{
	memset(memory, 0, sizeof(memory));
	put_code();
	put_word(NAMES, MEMORY + TABLE);
	put_word(TABLE, 7 | RUBY_LIST_INSIDE);
	put_word(TABLE + 16, MEMORY + LIST);
	put_word(LIST, 7);
	put_word(LIST + 32, MEMORY + WORDS);
	put_name('+');
	put_name('-');
}

/* Returns the address of the table's variable, 0: it was not found; or a negative errno. */
static int64_t find(void)
{
	struct language_numbered found;
	const int err = ruby_names_find(&module, ruby_version("3.3.8"), MEMORY, &found);

	return err ? err : (int64_t)found.names;
}

TEST(the_table_is_where_the_code_says)
{
	make();
	EXPECT_EQ(MEMORY + NAMES, find());
	put_word(TABLE, 7);
	put_word(TABLE + 32, MEMORY + TABLE + 16);
	EXPECT_EQ(MEMORY + NAMES, find());
}

TEST(code_of_a_newer_compiler_says_the_same)
{
	make();
	put_newer_code();
	EXPECT_EQ(MEMORY + NAMES, find());
	memory[READER + BEFORE + 7] ^= 0x10;
	EXPECT_EQ(0, find());
	put_newer_code();
	memory[14] ^= 0x10;
	EXPECT_EQ(0, find());
}

TEST(other_code_says_nothing)
{
	/* The register that is copied may be any one. */
	static const uint8_t looked_at[] = { 0, 1, 6, 8, 9, 10, 15, 17, 18, 19 };

	for (size_t i = 13; i < 20; i++) {
		make();
		memory[i] ^= 0x10;
		EXPECT_EQ(0, find());
	}
	for (size_t i = 0; i < sizeof(looked_at); i++) {
		make();
		memory[READER + BEFORE + looked_at[i]] ^= 0x10;
		EXPECT_EQ(0, find());
	}
	make();
	put_distance(READER + BEFORE + 2, LAST + 8);
	EXPECT_EQ(0, find());
}

TEST(a_table_with_other_names_says_nothing)
{
	make();
	memory[TEXTS + 32 * '-' + 24] = '+';
	EXPECT_EQ(0, find());
	make();
	memory[TEXTS + 32 * '+' + 25] = '+';
	EXPECT_EQ(0, find());
	make();
	put_word(LIST, 5);
	EXPECT_EQ(0, find());
}

TEST(a_table_that_is_not_made_yet_is_looked_for_again)
{
	make();
	put_word(NAMES, 0);
	EXPECT_EQ(-EAGAIN, find());
}

TEST(a_function_that_is_missing_says_nothing)
{
	struct language_numbered found;

	make();
	EXPECT_EQ(0, ruby_names_find(&module, ruby_version("3.3.8"), 0, &found));
	EXPECT_EQ(0, found.names);
	EXPECT_EQ(0, ruby_names_find(&module, ruby_version("3.3.8"), MEMORY + sizeof(memory) - 8,
				     &found));
	EXPECT_EQ(0, found.names);
}

TEST_HARNESS_MAIN
