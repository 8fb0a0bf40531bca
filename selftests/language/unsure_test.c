// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * unsure_test.c - at which instructions Python's lists may be in the middle of a change
 * (tools/language/python/unsure.c), with code of the test's own.
 */
#include <elf.h>
#include <string.h>

#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

#include "kselftest_harness.h"

#define RUN 0x400000 /* address of the function */
#define NOTHING_ARM64 0xd503201f
#define BRANCH_ARM64 0xd61f0060 /* br x3 */

/* Code of which all but two instructions do nothing. */
struct code {
	uint8_t bytes[PYTHON_BEGINNING];
};

/* Makes code of arm64 that has these instructions there. */
static struct code arm64_with(uint32_t first, unsigned int at, uint32_t second, unsigned int then)
{
	const uint32_t nothing = NOTHING_ARM64;
	struct code ret;

	for (unsigned int i = 0; i < sizeof(ret.bytes); i += 4)
		memcpy(ret.bytes + i, &nothing, 4);
	memcpy(ret.bytes + at, &first, 4);
	memcpy(ret.bytes + then, &second, 4);
	return ret;
}

/* Makes code of x86-64 that publishes the cframe there (mov %rcx,0x38(%rdi)), and jumps (jmp *%rax). */
static struct code x86_with(unsigned int at, unsigned int then)
{
	struct code ret;

	memset(ret.bytes, 0x90, sizeof(ret.bytes));
	memcpy(ret.bytes + at, (const uint8_t[]){ 0x48, 0x89, 0x4f, 0x38 }, 4);
	memcpy(ret.bytes + then, (const uint8_t[]){ 0xff, 0xe0 }, 2);
	return ret;
}

static void expect(struct __test_metadata *_metadata, int minor, unsigned int machine,
		   const struct code *code, uint64_t start, uint64_t end)
{
	struct language_found found = { .run_start = RUN };

	python_find_unsure(python_version(minor), machine, code->bytes, &found);
	EXPECT_EQ(start, found.unsure_start);
	EXPECT_EQ(end, found.unsure_end);
}

TEST(lists_change_from_where_the_cframe_is_published_to_the_first_jump)
{
	/* As Debian's 3.11.2 has them. */
	const struct code x86 = x86_with(0x4f, 0xf5);
	const struct code arm64 = arm64_with(0xf9001c07, 0x44, BRANCH_ARM64, 0xf0);

	expect(_metadata, 11, EM_X86_64, &x86, RUN + 0x4f, RUN + 0xf5);
	expect(_metadata, 12, EM_X86_64, &x86, RUN + 0x4f, RUN + 0xf5);
	expect(_metadata, 11, EM_AARCH64, &arm64, RUN + 0x44, RUN + 0xf0);
}

TEST(without_a_jump_lists_may_change_up_to_the_end_of_what_was_looked_at)
{
	/* Debian's libpython has it farther away. */
	const struct code arm64 = arm64_with(0xf9001c03, 0x44, NOTHING_ARM64, 0xf0);
	const struct code last = arm64_with(NOTHING_ARM64, 0x44, 0xf9001c03, PYTHON_BEGINNING - 4);

	expect(_metadata, 11, EM_AARCH64, &arm64, RUN + 0x44, RUN + PYTHON_BEGINNING);
	expect(_metadata, 11, EM_AARCH64, &last, RUN + PYTHON_BEGINNING - 4,
	       RUN + PYTHON_BEGINNING);
}

TEST(what_is_not_known_may_change_everywhere)
{
	const uint32_t others[] = {
		0xf9001c27, /* str x7, [x1, #56] */
		0xf9002007, /* str x7, [x0, #64] */
		0xb9003807, /* str w7, [x0, #56] */
		0xf9401c07, /* ldr x7, [x0, #56] */
	};
	struct code code;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		code = arm64_with(others[i], 0x44, BRANCH_ARM64, 0xf0);
		expect(_metadata, 11, EM_AARCH64, &code, RUN, RUN + PYTHON_BEGINNING);
	}
	/* No instruction of arm64 lies there; and those of one machine are none of the other. */
	code = arm64_with(0xf9001c07, 0x46, BRANCH_ARM64, 0xf0);
	expect(_metadata, 11, EM_AARCH64, &code, RUN, RUN + PYTHON_BEGINNING);
	code = x86_with(0x4c, 0xf4);
	expect(_metadata, 11, EM_AARCH64, &code, RUN, RUN + PYTHON_BEGINNING);
	code = arm64_with(0xf9001c07, 0x44, BRANCH_ARM64, 0xf0);
	expect(_metadata, 11, EM_X86_64, &code, RUN, RUN + PYTHON_BEGINNING);
}

/* Debian's 3.13.5, 3.14.8 and 3.15.0, and libpython 3.15.0, have the state in different registers. */
TEST(from_3_13_on_the_first_frame_is_published_before_its_entry_is_whole_on_arm64)
{
	static const uint32_t stores[] = { 0xf9002415, 0xf90024e6, 0xf9002528, 0xf9002677 };

	for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
		const struct code arm64 = arm64_with(stores[i], 0x4c, BRANCH_ARM64, 0xf0);
		const struct code other = arm64_with(stores[i] ^ 1 << 10, 0x4c, BRANCH_ARM64, 0xf0);

		for (int minor = 13; minor <= 15; minor++) {
			expect(_metadata, minor, EM_X86_64, &arm64, 0, 0);
			expect(_metadata, minor, EM_AARCH64, &arm64, RUN + 0x4c, RUN + 0xf0);
			expect(_metadata, minor, EM_AARCH64, &other, RUN, RUN + PYTHON_BEGINNING);
		}
	}
}

/* There, what leads to the callers may be left of another call. With a cframe, the innermost frame must be the last. */
TEST(no_stack_is_sound_there)
{
	const struct language_function function = { .frame_size = 80 };
	const struct language_entry entry = { .addr = 0x1000 };
	const struct language_frame frame = { &entry, &function };

	for (int minor = 11; minor <= 15; minor++) {
		const struct python_version *v = python_version(minor);
		struct language_frames frames = { .frames = &frame,
						  .nr = 1,
						  .base_word = 0x1000 + 80 };

		EXPECT_TRUE(python_sound(v, &frames));
		frames.unsure = true;
		EXPECT_EQ(minor < 13, python_sound(v, &frames));
		frames.base_word++;
		EXPECT_FALSE(python_sound(v, &frames));
	}
}

TEST(all_but_3_12_are_known_on_arm64)
{
	for (int minor = 11; minor <= 15; minor++)
		EXPECT_EQ(minor != 12, python_version(minor)->arm64);
	/* As PyGILState_GetThisThreadState() of Debian's 3.11.2 and 3.13.5 reads it. */
	EXPECT_EQ(612, python_version(11)->key + python_version(11)->key_arm64);
	EXPECT_EQ(2164, python_version(13)->key + python_version(13)->key_arm64);
}

TEST_HARNESS_MAIN
