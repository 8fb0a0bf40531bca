// SPDX-License-Identifier: GPL-2.0-or-later
/* known_names_test.c - tests names that outlive the store which found them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/symbol/known_names.h"
#include "libshstk/symbol/object_names.h"
#include "libshstk/symbol/pool.h"
#include "libshstk/symbol/symbol.h"
#include "kselftest_harness.h"

#define MANY 40000 /* entries, more than there is room for */
#define FILE_NAME "[known_names_test+0x" /* in the name of an address without another name */

static const struct shstk_known_file some_file = { 1, 2, 3, 4 };

/* A function that is looked up. */
static __attribute__((noinline)) void looked_up(void)
{
	__asm__ volatile("");
}

FIXTURE(known)
{
	struct shstk_known_names *known;
	struct shstk_pool pool;
};

FIXTURE_SETUP(known)
{
	self->known = shstk_known_names_create();
	ASSERT_NE(NULL, self->known);
	shstk_pool_init(&self->pool);
}

FIXTURE_TEARDOWN(known)
{
	shstk_pool_deinit(&self->pool);
	shstk_known_names_destroy(self->known);
}

static void add(struct shstk_known_names *known, const struct shstk_known_file *file, uint64_t addr,
		const char *function)
{
	struct shstk_symframe frames[] = {
		{ .function = function, .file = "file.c", .line = 7, .inlined = true },
		{ .function = "outer", .linkage = "linkage", .start_line = 9 },
	};
	struct shstk_resolved names = { .resolved = true, .start = 64, .nr = 2, .frames = frames };

	shstk_known_names_add(known, file, addr, &names);
}

/* Returns the innermost function of an address of a file, or "" if it is not known. */
static const char *find(FIXTURE_DATA(known) * self, const struct shstk_known_file *file,
			uint64_t addr)
{
	const struct shstk_resolved *found =
		shstk_known_names_find(self->known, file, addr, &self->pool);

	return found ? found->frames[0].function : "";
}

TEST_F(known, all_of_an_address_is_found_again)
{
	const struct shstk_resolved *found;

	shstk_known_names_use(self->known);
	add(self->known, &some_file, 100, "inner");
	found = shstk_known_names_find(self->known, &some_file, 100, &self->pool);
	ASSERT_NE(NULL, found);
	EXPECT_TRUE(found->resolved);
	EXPECT_EQ(64, found->start);
	ASSERT_EQ(2, found->nr);
	EXPECT_STREQ("inner", found->frames[0].function);
	EXPECT_EQ(NULL, found->frames[0].linkage);
	EXPECT_STREQ("file.c", found->frames[0].file);
	EXPECT_EQ(7, found->frames[0].line);
	EXPECT_TRUE(found->frames[0].inlined);
	EXPECT_STREQ("outer", found->frames[1].function);
	EXPECT_STREQ("linkage", found->frames[1].linkage);
	EXPECT_EQ(NULL, found->frames[1].file);
	EXPECT_EQ(9, found->frames[1].start_line);
	EXPECT_FALSE(found->frames[1].inlined);
}

TEST_F(known, other_files_and_addresses_are_not_known)
{
	struct shstk_known_file changed = some_file;

	shstk_known_names_use(self->known);
	add(self->known, &some_file, 100, "inner");
	changed.changed++;
	EXPECT_STREQ("", find(self, &changed, 100));
	EXPECT_STREQ("", find(self, &some_file, 101));
	EXPECT_STREQ("inner", find(self, &some_file, 100));
}

TEST_F(known, who_may_not_use_them_neither_finds_nor_adds)
{
	add(self->known, &some_file, 100, "inner");
	EXPECT_STREQ("", find(self, &some_file, 100));
	shstk_known_names_use(self->known);
	EXPECT_STREQ("", find(self, &some_file, 100));
	EXPECT_EQ(NULL, shstk_known_names_find(NULL, &some_file, 100, &self->pool));
}

TEST_F(known, a_child_process_leaves_them_to_the_next)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		shstk_known_names_use(self->known);
		add(self->known, &some_file, 100, "inner");
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	pid = fork();
	if (!pid) {
		shstk_known_names_use(self->known);
		_exit(strcmp(find(self, &some_file, 100), "inner"));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(known, without_room_the_older_ones_are_forgotten)
{
	char *name = calloc(1, 1000);

	ASSERT_NE(NULL, name);
	memset(name, 'x', 999);
	shstk_known_names_use(self->known);
	for (uint64_t i = 0; i < MANY; i++) {
		add(self->known, &some_file, i, name);
		ASSERT_STREQ(name, find(self, &some_file, i));
	}
	EXPECT_STREQ("", find(self, &some_file, 0));
	free(name);
}

/*
 * Returns the name of looked_up() in a new store of this process's mappings, in the pool. @memory: bytes
 * that reading files may take; 0: a default.
 */
static const char *look_up(FIXTURE_DATA(known) * self, uint64_t memory)
{
	const struct shstk_symbols_opts opts = {
		.known = self->known,
		.no_servers = true,
		.memory = memory,
	};
	struct shstk_symbols *symbols;
	struct shstk_symproc *proc;
	const char *ret = NULL;

	if (shstk_symbols_create(&opts, &symbols))
		return NULL;
	if (!shstk_symproc_create(symbols, getpid(), &proc) && shstk_symproc_read_maps(proc) > 0) {
		const struct shstk_symbol *found =
			shstk_symproc_lookup(proc, (uintptr_t)looked_up, SHSTK_SYMADDR_PC);

		ret = shstk_pool_text(&self->pool, found->frames[0].function,
				      strlen(found->frames[0].function));
	}
	shstk_symbols_destroy(symbols);
	return ret;
}

/* Returns the address of looked_up() in the file, as the store passes it. */
static uint64_t address_in_file(void)
{
	extern char __executable_start[];

	return (uintptr_t)looked_up - (uintptr_t)__executable_start;
}

/* Identifies this program's file. */
static bool find_own(struct shstk_known_file *ret)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool found = shstk_known_file(fd, ret);

	close(fd);
	return found;
}

TEST_F(known, a_store_takes_what_the_one_before_it_found)
{
	struct shstk_known_file own;

	ASSERT_TRUE(find_own(&own));
	looked_up();
	shstk_known_names_use(self->known);
	ASSERT_STREQ("looked_up", look_up(self, 0));
	/* The store left it there; what is there now is taken, not what the file has. */
	ASSERT_STREQ("looked_up", find(self, &own, address_in_file()));
	add(self->known, &own, address_in_file(), "remembered");
	EXPECT_STREQ("remembered", look_up(self, 0));
}

TEST_F(known, what_is_found_beyond_a_limit_is_not_kept)
{
	struct shstk_known_file own;
	const char *poor;

	ASSERT_TRUE(find_own(&own));
	shstk_known_names_use(self->known);
	poor = look_up(self, 1);
	ASSERT_NE(NULL, poor);
	ASSERT_EQ(0, strncmp(poor, FILE_NAME, strlen(FILE_NAME)));
	EXPECT_STREQ("", find(self, &own, address_in_file()));
	EXPECT_STREQ("looked_up", look_up(self, 0));
}

TEST_F(known, a_name_that_has_the_file_has_the_one_of_now)
{
	struct shstk_symframe frame = { .function = "[before+0x40]", .linkage = "[before+0x40]" };
	const struct shstk_resolved names = { .start = 64, .nr = 1, .frames = &frame };
	struct shstk_known_file own;

	ASSERT_TRUE(find_own(&own));
	shstk_known_names_use(self->known);
	shstk_known_names_add(self->known, &own, address_in_file(), &names);
	EXPECT_STREQ(FILE_NAME "40]", look_up(self, 0));
}

TEST(a_file_without_a_name_is_no_known_file)
{
	struct shstk_known_file file;
	char path[] = "/tmp/known_names.XXXXXX";
	int fd = mkstemp(path);

	ASSERT_LE(0, fd);
	EXPECT_TRUE(shstk_known_file(fd, &file));
	unlink(path);
	EXPECT_FALSE(shstk_known_file(fd, &file));
	EXPECT_FALSE(shstk_known_file(-1, &file));
	close(fd);
}

TEST_HARNESS_MAIN
