// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stub_test.c - tests what is known of code that nothing describes: the entries of arm64's PLTs, and the end of
 * make_fcontext(), on any machine; and how much of the code around it may be read.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "machine.h"
#include "module.h"
#include "rule.h"
#include "kselftest_harness.h"

#define PUSH 0xa9bf7bf0 /* stp x16, x30, [sp, #-16]! */
#define PAGE 0xd0000010 /* adrp x16, ... */
#define LOAD 0xf9472211 /* ldr x17, [x16, #3648] */
#define ADD 0x91390210 /* add x16, x16, #3648 */
#define JUMP 0xd61f0220 /* br x17 */
#define BTI 0xd503245f /* bti c */
#define NOP 0xd503201f
#define RETURN 0xd65f03c0

#define IN_REGISTER (RULE_SP | RULE_CFA(0)) /* the return address is in x30 */
#define PUSHED (RULE_SP | RULE_CFA(16))

#define SIZE(code) (sizeof(code) / sizeof(*(code)))

/* Returns the rule at an instruction of @code. */
static uint64_t rule_at(const uint32_t *code, size_t nr, size_t at)
{
	return machine_arm64.stub_rule((const uint8_t *)(code + at), 4 * at, 4 * (nr - at));
}

TEST(first_entry)
{
	const uint32_t code[] = { PUSH, PAGE, LOAD, ADD, JUMP, NOP };

	EXPECT_EQ(IN_REGISTER, rule_at(code, SIZE(code), 0));
	for (size_t i = 1; i <= 4; i++)
		EXPECT_EQ(PUSHED, rule_at(code, SIZE(code), i));
	EXPECT_EQ(RULE_NONE, rule_at(code, SIZE(code), 5));
}

TEST(other_entry)
{
	const uint32_t code[] = { NOP, PAGE, LOAD, ADD, JUMP, PAGE, LOAD, ADD, JUMP };

	EXPECT_EQ(RULE_NONE, rule_at(code, SIZE(code), 0));
	for (size_t i = 1; i < SIZE(code); i++)
		EXPECT_EQ(IN_REGISTER, rule_at(code, SIZE(code), i));
}

TEST(entry_with_a_landing_pad)
{
	const uint32_t code[] = { BTI, PAGE, LOAD, ADD, JUMP, NOP };

	for (size_t i = 0; i <= 4; i++)
		EXPECT_EQ(IN_REGISTER, rule_at(code, SIZE(code), i));
	EXPECT_EQ(RULE_NONE, rule_at(code, SIZE(code), 5));
}

TEST(part_of_an_entry)
{
	const uint32_t code[] = { PAGE, LOAD, ADD, RETURN };

	for (size_t i = 0; i < SIZE(code); i++)
		EXPECT_EQ(RULE_NONE, rule_at(code, SIZE(code), i));
	/* What lies outside of the mapped code is not looked at. */
	for (size_t i = 0; i < 3; i++) {
		const uint32_t entry[] = { PAGE, LOAD, ADD, JUMP };

		EXPECT_EQ(RULE_NONE, rule_at(entry, 3, i));
		EXPECT_EQ(RULE_NONE, machine_arm64.stub_rule((const uint8_t *)(entry + 1 + i), 0,
							     4 * (3 - i)));
	}
}

/* The end of make_fcontext() in Debian's libboost-context1.83.0; the stack's last return address is behind 3 bytes. */
static const uint8_t fcontext_x86[] = { 0x55, 0xff, 0xe3, 0x48, 0x31, 0xff,
					0xe8, 0xd9, 0xfe, 0xff, 0xff, 0xf4 };
/* The same for arm64, where it is behind one instruction. */
static const uint32_t fcontext_arm64[] = { RETURN, 0xd2800000, 0x97ffffa3 };

/* Tells whether @m knows @code of @size bytes, but neither less of it, nor if one of the bytes that say so differs. */
static bool knows_end(const struct machine *m, const void *code, size_t size)
{
	uint8_t other[16];

	if (!machine_ends_context(m, code, size))
		return false;
	for (size_t i = 0; i < m->context_size; i++) {
		memcpy(other, code, size);
		other[i] ^= 0x10;
		if (machine_ends_context(m, code, m->context_size + i / 2) ||
		    machine_ends_context(m, other, size))
			return false;
	}
	return true;
}

TEST(end_of_a_context)
{
	EXPECT_TRUE(knows_end(&machine_x86, fcontext_x86, sizeof(fcontext_x86)));
	EXPECT_TRUE(knows_end(&machine_arm64, fcontext_arm64, sizeof(fcontext_arm64)));
	EXPECT_FALSE(machine_ends_context(&machine_riscv, fcontext_x86, sizeof(fcontext_x86)));
}

/* A file may say anything: here a byte of code is in two segments, and what lies in front of it is in one of them. */
TEST(code_in_two_segments)
{
	const uint8_t file[64] = { 0 };
	const struct module mod = {
		.range = { 0, 0x2000 },
		.img = {
			.data = file,
			.size = sizeof(file),
			.nload = 2,
			.load = {
				{ .vaddr = 0x1000, .filesz = 64, .memsz = 64, .exec = true },
				{ .filesz = 0x2000, .memsz = 0x2000, .exec = true },
			},
		},
	};
	size_t before = 0, after = 0;

	EXPECT_EQ(module_code(&mod, 0x1008, &before, &after), file + 8);
	EXPECT_EQ(before, 8);
	EXPECT_EQ(after, 56);
}

TEST_HARNESS_MAIN
