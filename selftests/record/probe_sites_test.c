// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * probe_sites_test.c - tests how calls, the linker's stubs and slots of probed instructions are read, of
 * x86-64 and arm64. The instructions are what compilers and linkers make. Prints KTAP.
 */
#include <string.h>

#include "tools/convert/stepped.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define X86 SHSTK_ARCH_X86
#define ARM64 SHSTK_ARCH_ARM64
#define RA 0x401000ull
#define STUB 0x401000ull

/* Nothing here searches for probes. */
uint64_t now_ns(clockid_t clock)
{
	(void)clock;
	return 0;
}

bool mappings_is_file(const char *path)
{
	(void)path;
	return false;
}

TEST(direct_calls_name_the_function)
{
	/* call 0x400f00 and, of arm64, bl 0x400f00 and bl 0x402000 */
	static const uint8_t back[] = { 0x90, 0xe8, 0x00, 0xff, 0xff, 0xff };
	static const uint8_t bl_back[] = { 0x1f, 0x20, 0xc1, 0xff, 0xff, 0x97 };
	static const uint8_t bl_on[] = { 0x1f, 0x20, 0x01, 0x04, 0x00, 0x94 };

	EXPECT_EQ(0x400f00, stepped_call(X86, RA, back).address);
	EXPECT_EQ(0, stepped_call(X86, RA, back).slot);
	EXPECT_EQ(0x400f00, stepped_call(ARM64, RA, bl_back).address);
	EXPECT_EQ(0x402000, stepped_call(ARM64, RA, bl_on).address);
}

TEST(calls_through_a_word_name_the_word)
{
	static const uint8_t call[] = { 0xff, 0x15, 0x00, 0x20, 0x00, 0x00 };

	EXPECT_EQ(0x403000, stepped_call(X86, RA, call).slot);
	EXPECT_EQ(0, stepped_call(X86, RA, call).address);
}

TEST(calls_through_registers_name_nothing)
{
	/* call *%rax and blr x1 */
	static const uint8_t call[] = { 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 };
	static const uint8_t blr[] = { 0x1f, 0x20, 0x20, 0x00, 0x3f, 0xd6 };

	EXPECT_EQ(0, stepped_call(X86, RA, call).address);
	EXPECT_EQ(0, stepped_call(X86, RA, call).slot);
	EXPECT_EQ(0, stepped_call(ARM64, RA, blr).address);
	EXPECT_EQ(0, stepped_call(ARM64, RA, blr).slot);
}

TEST(stubs_of_the_linker_name_the_word)
{
	/* jmp *0x403000(%rip), alone; behind endbr64; there with a bnd prefix */
	static const uint8_t plain[16] = { 0xff, 0x25, 0xfa, 0x1f };
	static const uint8_t endbr[16] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0x1f };
	static const uint8_t bnd[16] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0x1f };

	EXPECT_EQ(0x403000, stepped_stub(X86, STUB, plain));
	EXPECT_EQ(0x403000, stepped_stub(X86, STUB, endbr));
	EXPECT_EQ(0x403000, stepped_stub(X86, STUB, bnd));
}

TEST(stubs_of_arm64_name_the_word)
{
	/* adrp x16, 0x420000; ldr x17, [x16, #16]; add x16, x16, #16; br x17 */
	static const uint8_t plain[16] = { 0xf0, 0x00, 0x00, 0xf0, 0x11, 0x0a, 0x40, 0xf9,
					   0x10, 0x42, 0x00, 0x91, 0x20, 0x02, 0x1f, 0xd6 };
	/* bti c; the same with adrp x16, 0x400000, which is a page before */
	static const uint8_t bti[16] = { 0x5f, 0x24, 0x03, 0xd5, 0xf0, 0xff, 0xff, 0xf0,
					 0x11, 0x0a, 0x40, 0xf9, 0x10, 0x42, 0x00, 0x91 };

	EXPECT_EQ(0x420010, stepped_stub(ARM64, STUB, plain));
	EXPECT_EQ(0x400010, stepped_stub(ARM64, STUB, bti));
}

TEST(other_code_is_no_stub)
{
	static const uint8_t nothing[16] = { 0 };
	/* push %rbp; mov %rsp, %rbp */
	static const uint8_t function[16] = { 0x55, 0x48, 0x89, 0xe5 };

	EXPECT_EQ(0, stepped_stub(X86, STUB, nothing));
	EXPECT_EQ(0, stepped_stub(X86, STUB, function));
	EXPECT_EQ(0, stepped_stub(ARM64, STUB, nothing));
}

TEST(the_first_slot_is_the_trampoline)
{
	EXPECT_TRUE(stepped_is_trampoline(X86, 0x1000, 0x100d));
	EXPECT_FALSE(stepped_is_trampoline(X86, 0x1000, 0x1080));
	EXPECT_TRUE(stepped_is_trampoline(ARM64, 0x1000, 0x1000));
	EXPECT_FALSE(stepped_is_trampoline(ARM64, 0x1000, 0x1004));
}

TEST(a_slot_has_the_beginning_and_the_end_of_an_instruction)
{
	const struct stepped_site known = { RA, 3 }, unknown = { RA, 0 };

	EXPECT_EQ(RA, stepped_pc(X86, 0x1000, 0x1080, &known));
	EXPECT_EQ(RA + 3, stepped_pc(X86, 0x1000, 0x1083, &known));
	EXPECT_EQ(0, stepped_pc(X86, 0x1000, 0x1084, &known));
	EXPECT_EQ(RA + 4, stepped_pc(X86, 0x1000, 0x1084, &unknown));
	EXPECT_EQ(RA, stepped_pc(ARM64, 0x1000, 0x1014, &known));
}

TEST(sites_are_kept_once_and_bounded)
{
	struct stepped s = { .nr = 0 };

	for (int i = 0; i < 3 * STEPPED_SITES; i++)
		stepped_add(&s, RA + i / 2, 1);
	EXPECT_EQ(STEPPED_SITES, s.nr);
	EXPECT_EQ(RA + 1, s.sites[1].address);
}

TEST_HARNESS_MAIN
