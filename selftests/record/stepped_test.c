// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stepped_test.c - tests how much code is looked at when probed instructions are searched.
 *
 * The process is this one, with a mapping of a file of which each page was written. It is named
 * again and again, as if there were many.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/convert/stepped.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define PAGE 4096
#define PAGES 64
#define MAPS 1000
#define MOST 16384 /* pages that are compared at most */
#define BREAKPOINT 0xcc

static int file;
static size_t bytes;
static uint8_t byte;

uint64_t now_ns(clockid_t clock)
{
	(void)clock;
	return 1;
}

bool mappings_is_file(const char *path)
{
	(void)path;
	return true;
}

static int read_page(void *arg, pid_t pid, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	(void)pid;
	(void)addr;
	bytes += size;
	memset(buf, byte, size);
	return 0;
}

static int open_file(void *arg, pid_t pid, const struct mappings_map *map)
{
	(void)arg;
	(void)pid;
	(void)map;
	return dup(file);
}

FIXTURE(stepped)
{
	struct mappings_map *maps;
	uint8_t *code;
	struct stepped found;
};

FIXTURE_SETUP(stepped)
{
	const size_t page = sysconf(_SC_PAGESIZE);

	if (page != PAGE)
		SKIP(return, "pages are not of 4096 bytes");
	if (access("/proc/self/pagemap", R_OK))
		SKIP(return, "no /proc/self/pagemap");
	file = memfd_create("code", MFD_CLOEXEC);
	ASSERT_GE(file, 0);
	ASSERT_EQ(ftruncate(file, PAGES * PAGE), 0);
	self->code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	ASSERT_NE(self->code, MAP_FAILED);
	for (size_t i = 0; i < PAGES; i++)
		self->code[i * PAGE] = 1;
	self->maps = calloc(MAPS, sizeof(*self->maps));
	ASSERT_NE(self->maps, NULL);
	for (size_t i = 0; i < MAPS; i++)
		self->maps[i] = (struct mappings_map){
			.start = (uintptr_t)self->code,
			.end = (uintptr_t)self->code + PAGES * PAGE,
			.path = (char *)"/code",
		};
}

FIXTURE_TEARDOWN(stepped)
{
	free(self->maps);
}

static void find(struct stepped *found, const struct mappings_map *maps)
{
	const struct mappings_files files = {
		.arch = SHSTK_ARCH_X86,
		.read = read_page,
		.open = open_file,
	};

	stepped_find(found, &files, getpid(), maps, MAPS);
}

TEST_F(stepped, many_copied_pages_are_not_all_compared)
{
	find(&self->found, self->maps);
	EXPECT_EQ(self->found.nr, 0);
	EXPECT_GE(bytes, PAGES * PAGE);
	EXPECT_LE(bytes, MOST * PAGE);
}

TEST_F(stepped, the_search_ends_when_there_is_no_room)
{
	byte = BREAKPOINT;
	find(&self->found, self->maps);
	EXPECT_EQ(self->found.nr, STEPPED_SITES);
	EXPECT_LE(bytes, PAGES * PAGE);
}

TEST_HARNESS_MAIN
