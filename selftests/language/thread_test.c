// SPDX-License-Identifier: GPL-2.0-or-later
/* thread_test.c - what the instructions of pthread_self() tell of arm64 (tools/language/python/thread.c). */
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "selftests/many_tables.h"
#include "tools/language/python/python.h"

#include <libelf.h>

#include "kselftest_harness.h"

/* Instructions, and what they tell; 0: nothing. */
struct code {
	uint32_t words[PYTHON_SELF_CODE];
	uint64_t distance;
};

static void compare(struct __test_metadata *_metadata, const struct code *c)
{
	uint64_t distance = 0;

	EXPECT_EQ(c->distance != 0, python_thread_distance(c->words, &distance));
	EXPECT_EQ(c->distance, distance);
}

TEST(pthread_self_tells_how_far_it_is_below_the_thread_pointer)
{
	static const struct code cases[] = {
		/* glibc 2.36; 2.41 and 2.43 */
		{ { 0xd53bd040, 0xd11d0000, 0xd65f03c0, 0xd503201f }, 0x740 },
		{ { 0xd503245f, 0xd53bd040, 0xd11c8000, 0xd65f03c0 }, 0x720 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		compare(_metadata, &cases[i]);
}

TEST(other_instructions_tell_nothing)
{
	static const struct code cases[] = {
		{ { 0, 0, 0, 0 }, 0 },
		/* what is called before the function is bound */
		{ { 0xb0003930, 0xf947fe11, 0x913fe210, 0xd61f0220 }, 0 },
		/* bti twice; another register is read; another one is the result, or the number is shifted */
		{ { 0xd503245f, 0xd503245f, 0xd53bd040, 0xd11c8000 }, 0 },
		{ { 0xd53bd041, 0xd11c8000, 0xd65f03c0, 0xd503201f }, 0 },
		{ { 0xd53bd040, 0xd11c8001, 0xd65f03c0, 0xd503201f }, 0 },
		{ { 0xd53bd040, 0xd15c8000, 0xd65f03c0, 0xd503201f }, 0 },
		/* added, not subtracted; something follows */
		{ { 0xd53bd040, 0x911c8000, 0xd65f03c0, 0xd503201f }, 0 },
		{ { 0xd53bd040, 0xd11c8000, 0xd503201f, 0xd65f03c0 }, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		compare(_metadata, &cases[i]);
}

/* ---- Where it is looked for ---- */

#define FUNCTION 0x5000
#define BIAS 0x700000000000
#define PLENTY (1u << 28)

static struct many_tables file;

static void make_file(unsigned int nr, unsigned int symbols)
{
	make_many_tables(&file, EM_AARCH64, nr, symbols, R_AARCH64_GLOB_DAT, "pthread_self",
			 R_AARCH64_JUMP_SLOT);
}

/* Reads memory of the process, which has the instructions in @arg as the function. */
static int read_process(void *arg, uint64_t addr, void *buf, size_t size)
{
	const uint64_t function = FUNCTION;

	if (addr == BIAS + MANY_PLACE && size == sizeof(function))
		memcpy(buf, &function, size);
	else if (addr == FUNCTION && size == PYTHON_SELF_CODE * sizeof(uint32_t))
		memcpy(buf, arg, size);
	else
		return -EFAULT;
	return 0;
}

/* Returns what python_find_thread() returns of a file that may take @memory bytes. */
static int find(struct many_tables *f, uint32_t *code, uint64_t memory, uint64_t *ret)
{
	Elf *elf = shstk_elf_memory(f, sizeof(*f));
	struct shstk_account account;
	struct shstk_budget budget;
	const struct language_module m = { .read = read_process, .arg = code, .account = &account };
	int err;

	shstk_budget_init(&budget, memory, 0);
	shstk_account_open(&account, &budget, "python3");
	err = elf ? python_find_thread(&m, elf, BIAS, ret) : -EINVAL;
	/* All is given back. */
	if (account.memory)
		err = -EINVAL;
	shstk_account_close(&account);
	elf_end(elf);
	return err;
}

static uint32_t self_code[] = { 0xd53bd040, 0xd11d0000, 0xd65f03c0, 0xd503201f };
static uint32_t other_code[PYTHON_SELF_CODE];

TEST(the_table_of_functions_leads_to_pthread_self)
{
	uint64_t distance = 0;

	make_file(1, MANY_DYNSYM);
	EXPECT_EQ(0, find(&file, self_code, PLENTY, &distance));
	EXPECT_EQ(0x740, distance);
	EXPECT_EQ(-EAGAIN, find(&file, other_code, PLENTY, &distance));
	/* It does not call the function. */
	file.last.r_info = ELF64_R_INFO(1, R_AARCH64_JUMP_SLOT);
	EXPECT_EQ(-ENOENT, find(&file, self_code, PLENTY, &distance));
}

TEST(symbols_and_names_that_are_not_there_lead_nowhere)
{
	uint64_t distance = 0;

	make_file(1, MANY_DYNSYM);
	file.last.r_info = ELF64_R_INFO(UINT32_MAX, R_AARCH64_JUMP_SLOT);
	EXPECT_EQ(-ENOENT, find(&file, self_code, PLENTY, &distance));
	make_file(1, MANY_DYNSYM);
	file.symbols[1].st_name = file.symbols[2].st_name = UINT32_MAX;
	EXPECT_EQ(-ENOENT, find(&file, self_code, PLENTY, &distance));
	make_file(1, MANY_DYNSYM);
	file.sections[MANY_NAMES].sh_size = 10;
	EXPECT_EQ(-ENOENT, find(&file, self_code, PLENTY, &distance));
}

TEST(no_more_than_a_few_tables_are_looked_at)
{
	uint64_t distance = 0;

	make_file(MANY_TABLES, MANY_DYNSYM);
	EXPECT_EQ(-ENOENT, find(&file, self_code, PLENTY, &distance));
	/* What linkers keep of their input is none of them. */
	make_file(MANY_TABLES, MANY_SYMTAB);
	EXPECT_EQ(0, find(&file, self_code, PLENTY, &distance));
}

TEST(tables_take_memory_until_all_were_looked_at)
{
	uint64_t distance = 0;

	/* One account gets three quarters of what there is. */
	make_file(2, MANY_DYNSYM);
	EXPECT_EQ(-ENOENT, find(&file, self_code, MANY_BYTES * 2, &distance));
	EXPECT_EQ(0, find(&file, self_code, MANY_BYTES * 4, &distance));
}

TEST_HARNESS_MAIN
