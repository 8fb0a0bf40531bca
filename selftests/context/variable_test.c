// SPDX-License-Identifier: GPL-2.0-or-later
/* variable_test.c - where the variable of a library is (tools/convert/context_variable.c), with files of its own. */
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "selftests/many_tables.h"
#include "tools/convert/context_variable.h"
#include "tools/language/language.h"

#include "kselftest_harness.h"

#define START 0x700000000000
#define MODULE 5 /* number of the library, which the loader has filled in */
#define PLENTY (1u << 28)

static struct many_tables file;

/* Makes the library. The type of the first relocations tells nothing of a variable. */
static void make_library(unsigned int nr)
{
	make_many_tables(&file, EM_X86_64, nr, MANY_DYNSYM, R_X86_64_GLOB_DAT, CONTEXT_VARIABLE,
			 R_X86_64_DTPMOD64);
	file.symbols[2].st_value = 16;
}

static int read_process(void *arg, uint64_t addr, void *buf, size_t size)
{
	const uint64_t module = MODULE;

	(void)arg;
	if (addr != START + MANY_PLACE || size != sizeof(module))
		return -EFAULT;
	memcpy(buf, &module, size);
	return 0;
}

/* Returns what context_variable_find() returns of the library, which may take @memory bytes. */
static int find(uint64_t memory, struct context_variable *ret)
{
	int fd = memfd_create("library", MFD_CLOEXEC), err = -EINVAL;
	struct shstk_account account;
	struct shstk_budget budget;
	const struct language_module m = {
		.fd = fd, .start = START, .read = read_process, .account = &account
	};

	shstk_budget_init(&budget, memory, 0);
	shstk_account_open(&account, &budget, "library");
	if (fd >= 0 && write(fd, &file, sizeof(file)) == (ssize_t)sizeof(file))
		err = context_variable_find(&m, CONTEXT_VARIABLE, ret);
	/* All is given back. */
	if (account.memory)
		err = -EINVAL;
	shstk_account_close(&account);
	close(fd);
	return err;
}

TEST(a_relocation_tells_where_the_number_of_the_library_is)
{
	struct context_variable found = { 0 };

	make_library(1);
	EXPECT_EQ(0, find(PLENTY, &found));
	EXPECT_EQ(MODULE, found.module);
	EXPECT_EQ(16, found.offset);
}

TEST(no_more_than_a_few_tables_are_looked_at)
{
	struct context_variable found;

	make_library(MANY_TABLES);
	EXPECT_EQ(-ENOENT, find(PLENTY, &found));
}

TEST(tables_take_memory_until_all_were_looked_at)
{
	struct context_variable found;

	/* All three are as large. One account gets three quarters of what there is. */
	make_library(2);
	file.sections[MANY_FIRST + 2].sh_size = MANY_BYTES;
	file.sections[MANY_FIRST + 2].sh_offset =
		offsetof(struct many_tables, last) + sizeof(file.last) - MANY_BYTES;
	EXPECT_EQ(-ENOENT, find(MANY_BYTES * 2, &found));
	EXPECT_EQ(0, find(MANY_BYTES * 5, &found));
}

TEST_HARNESS_MAIN
