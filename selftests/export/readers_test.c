// SPDX-License-Identifier: GPL-2.0-or-later
/* readers_test.c - tests that several threads read the same names as one, from this program's own file. */
#include <fcntl.h>
#include <libelf.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/debugfile.h"
#include "libshstk/symbol/dwarf.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/symbol/object_names.h"
#include "libshstk/symbol/pool.h"
#include "libshstk/symbol/readers.h"
#include "libshstk/symbol/root.h"
#include "libshstk/symbol/symbol.h"
#include "kselftest_harness.h"

#define ADDRESSES 6000
#define THREADS 3

static const struct shstk_root ours = { .fd = -1 };

/* Finds the part of this program's file that is code, in addresses of the file. */
static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *code = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
			code[0] = segment->p_vaddr;
			code[1] = segment->p_vaddr + segment->p_memsz;
		}
	}
	return 1;
}

/* Fills @ret with addresses that are spread over the code. */
static void spread(uint64_t *ret)
{
	uint64_t code[2] = { 0 };

	dl_iterate_phdr(find_code, code);
	for (uint64_t i = 0; i < ADDRESSES; i++)
		ret[i] = code[0] + (code[1] - code[0]) * i / ADDRESSES;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same(const struct shstk_resolved *a, const struct shstk_resolved *b)
{
	if (a->nr != b->nr || a->start != b->start || a->resolved != b->resolved)
		return false;
	for (unsigned int i = 0; i < a->nr; i++) {
		const struct shstk_symframe *one = &a->frames[i], *two = &b->frames[i];

		if (!same_text(one->function, two->function) ||
		    !same_text(one->linkage, two->linkage) || !same_text(one->file, two->file) ||
		    one->line != two->line || one->start_line != two->start_line ||
		    one->inlined != two->inlined)
			return false;
	}
	return true;
}

/* A reader of this program's debug information. */
FIXTURE(readers)
{
	int fd;
	Elf *elf;
	struct shstk_pool pool;
	struct shstk_budget budget;
	struct shstk_account account;
	struct shstk_symbols_opts opts;
	struct shstk_debugplace place;
	struct shstk_dwarf *dwarf;
	uint64_t addrs[ADDRESSES];
	struct shstk_wanted wanted[ADDRESSES];
	size_t nr;
};

FIXTURE_SETUP(readers)
{
	self->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	self->elf = shstk_elf_begin(self->fd);
	ASSERT_NE(NULL, self->elf);
	shstk_pool_init(&self->pool);
	shstk_budget_init(&self->budget, 0, 0);
	shstk_account_open(&self->account, &self->budget, "file");
	self->opts = (struct shstk_symbols_opts){ .no_servers = true, .debug_dirs = "" };
	self->place = (struct shstk_debugplace){ .root = &ours, .dirs = "" };
	self->dwarf = shstk_dwarf_create(&self->pool, self->elf, self->fd, &self->place, NULL,
					 &self->opts, &self->account);
	ASSERT_NE(NULL, self->dwarf);
	spread(self->addrs);
	self->nr = 0;
	for (size_t i = 0; i < ADDRESSES; i++) {
		struct shstk_wanted *wanted = &self->wanted[self->nr];

		*wanted = (struct shstk_wanted){ .addr = self->addrs[i] };
		self->nr += shstk_dwarf_unit(self->dwarf, wanted->addr, &wanted->unit);
	}
	/* Most of the program is code of this project, compiled with debug information. */
	ASSERT_LT(ADDRESSES / 4, self->nr);
}

FIXTURE_TEARDOWN(readers)
{
	shstk_dwarf_destroy(self->dwarf);
	shstk_account_close(&self->account);
	elf_end(self->elf);
	shstk_pool_deinit(&self->pool);
	close(self->fd);
}

TEST_F(readers, find_what_the_first_reader_finds)
{
	struct shstk_readers *readers =
		shstk_readers_run(self->dwarf, &self->account, self->wanted, self->nr, THREADS);
	size_t found = 0, units = 1;

	ASSERT_NE(NULL, readers);
	for (size_t i = 0; i < self->nr; i++) {
		const struct shstk_wanted *wanted = &self->wanted[i];
		struct shstk_symframe frames[SHSTK_FRAMES_MAX] = { 0 };
		struct shstk_resolved names = { .frames = frames };

		names.nr = shstk_dwarf_find(self->dwarf, wanted->addr, NULL, &names);
		names.resolved = names.nr;
		EXPECT_EQ(names.nr, wanted->names.nr);
		if (names.nr) {
			EXPECT_TRUE(same(&names, &wanted->names));
		}
		found += !!names.nr;
		units += i && wanted->unit != self->wanted[i - 1].unit;
	}
	EXPECT_LT(self->nr / 2, found);
	EXPECT_LT(THREADS, units);
	shstk_readers_destroy(readers);
}

TEST_F(readers, draw_their_time_from_the_budget)
{
	uint64_t before = self->budget.time, memory = self->budget.memory;
	struct shstk_readers *readers =
		shstk_readers_run(self->dwarf, &self->account, self->wanted, self->nr, THREADS);

	ASSERT_NE(NULL, readers);
	EXPECT_GT(before, self->budget.time);
	EXPECT_EQ(memory, self->budget.memory);
	shstk_readers_destroy(readers);
}

TEST_F(readers, stop_where_their_time_ends)
{
	size_t named = 0;
	struct shstk_readers *readers;

	self->budget.time = 1;
	readers = shstk_readers_run(self->dwarf, &self->account, self->wanted, self->nr, THREADS);
	for (size_t i = 0; i < self->nr; i++)
		named += self->wanted[i].names.nr;
	EXPECT_EQ(0, named);
	EXPECT_EQ(0, self->account.excess);
	shstk_readers_destroy(readers);
}

/* What the readers of little memory name they name as the first reader does, also the lines. */
TEST_F(readers, tell_nothing_that_the_end_of_their_memory_made_less)
{
	size_t named = 0, other = 0;

	for (uint64_t memory = 1 << 14; memory < 1 << 25; memory += memory / 4) {
		const uint64_t all = self->budget.memory;
		struct shstk_readers *readers;

		for (size_t i = 0; i < self->nr; i++)
			self->wanted[i].names = (struct shstk_resolved){ 0 };
		self->budget.memory = memory;
		readers = shstk_readers_run(self->dwarf, &self->account, self->wanted, self->nr,
					    THREADS);
		self->budget.memory = all;
		for (size_t i = 0; readers && i < self->nr; i++) {
			const struct shstk_wanted *wanted = &self->wanted[i];
			struct shstk_symframe frames[SHSTK_FRAMES_MAX] = { 0 };
			struct shstk_resolved names = { .frames = frames };

			if (!wanted->names.nr)
				continue;
			names.nr = shstk_dwarf_find(self->dwarf, wanted->addr, NULL, &names);
			names.resolved = names.nr;
			named++;
			other += !same(&names, &wanted->names);
		}
		shstk_readers_destroy(readers);
	}
	EXPECT_LT(0, named);
	EXPECT_EQ(0, other);
}

static volatile sig_atomic_t gone;

/* Puts zeros in the place of a page that is gone, as the commands do. */
static void replace_page(int signo, siginfo_t *info, void *context)
{
	const uintptr_t size = getpagesize();

	(void)signo;
	(void)context;
	gone++;
	mmap((void *)((uintptr_t)info->si_addr & -size), size, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

TEST_F(readers, survive_that_a_mapped_file_is_shortened)
{
	const struct sigaction action = { .sa_sigaction = replace_page, .sa_flags = SA_SIGINFO };
	const struct shstk_bytes lines = shstk_elf_bytes(self->elf, ".debug_line");
	const uintptr_t page = getpagesize();
	const uintptr_t from = ((uintptr_t)lines.p + page - 1) & -page;
	const size_t size = ((uintptr_t)lines.end & -page) - from;
	const int empty = memfd_create("empty", MFD_CLOEXEC);
	struct shstk_readers *readers;

	ASSERT_LE(0, empty);
	ASSERT_LT(from, (uintptr_t)lines.end & -page);
	ASSERT_EQ(0, sigaction(SIGBUS, &action, NULL));
	ASSERT_NE(MAP_FAILED, mmap((void *)from, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_FIXED, empty, 0));
	readers = shstk_readers_run(self->dwarf, &self->account, self->wanted, self->nr, THREADS);
	EXPECT_NE(NULL, readers);
	EXPECT_LT(0, gone);
	shstk_readers_destroy(readers);
	/* All can be read again, whatever does that next. */
	ASSERT_NE(MAP_FAILED, mmap((void *)from, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	close(empty);
}

/* Makes an object of this program's file. */
static struct shstk_object *open_object(struct shstk_pool *pool,
					const struct shstk_symbols_opts *opts,
					struct shstk_budget *budget)
{
	shstk_pool_init(pool);
	shstk_budget_init(budget, opts->memory, opts->time);
	return shstk_object_create(pool, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &ours,
				   "/proc/self/exe", "readers_test", opts, budget);
}

/* Returns how many addresses an object names as another one does that prepared nothing. */
static size_t count_same(struct __test_metadata *_metadata, const struct shstk_symbols_opts *opts,
			 const uint64_t *addrs)
{
	struct shstk_budget budgets[2];
	struct shstk_object *one, *two;
	struct shstk_pool pools[2];
	size_t ret = 0;

	one = open_object(&pools[0], opts, &budgets[0]);
	two = open_object(&pools[1], opts, &budgets[1]);
	ASSERT_NE(NULL, one);
	ASSERT_NE(NULL, two);
	shstk_object_prepare(two, addrs, ADDRESSES, THREADS);
	for (size_t i = 0; i < ADDRESSES; i++) {
		const struct shstk_resolved *a = shstk_object_resolve(one, addrs[i]);
		const struct shstk_resolved *b = shstk_object_resolve(two, addrs[i]);

		ret += a && b && same(a, b);
	}
	shstk_object_destroy(one);
	shstk_object_destroy(two);
	shstk_pool_deinit(&pools[0]);
	shstk_pool_deinit(&pools[1]);
	return ret;
}

TEST_F(readers, a_prepared_object_has_the_same_names)
{
	EXPECT_EQ(ADDRESSES, count_same(_metadata, &self->opts, self->addrs));
	self->opts.no_inline = true;
	EXPECT_EQ(ADDRESSES, count_same(_metadata, &self->opts, self->addrs));
}

TEST_HARNESS_MAIN
