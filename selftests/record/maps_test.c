// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maps_test.c - tests what is read of lines of /proc/PID/maps, and what the kernel answers instead.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tools/proc/maps.h"

#include "kselftest_harness.h"

/* A reader of a text. */
static struct maps of_text(const char *text)
{
	return (struct maps){ .in = fmemopen((void *)text, strlen(text), "r") };
}

static bool is_line(const char *text)
{
	struct maps maps = of_text(text);
	struct mapping m;
	const bool ret = maps_next(&maps, &m);

	maps_close(&maps);
	return ret;
}

TEST(a_line_has_all_fields)
{
	struct maps maps = of_text(
		"55d0c0a2e000-55d0c0a30000 r-xp 0001f000 fd:1b 4294967299                  /usr/bin/a b (deleted)\n"
		"7ffd1c9d4000-7ffd1c9f5000 rw-p 00000000 00:00 0                          [stack]\n"
		"7f0000000000-7f0000001000 -w-s ffffffff000 00:00 0 \n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
	struct mapping m;

	ASSERT_TRUE(maps_next(&maps, &m));
	EXPECT_EQ(m.start, 0x55d0c0a2e000);
	EXPECT_EQ(m.end, 0x55d0c0a30000);
	EXPECT_EQ(m.offset, 0x1f000);
	EXPECT_EQ(m.dev, makedev(0xfd, 0x1b));
	EXPECT_EQ(m.inode, 4294967299);
	EXPECT_TRUE(m.exec && !m.write);
	EXPECT_STREQ(m.path, "/usr/bin/a b (deleted)");
	ASSERT_TRUE(maps_next(&maps, &m));
	EXPECT_TRUE(m.write && !m.exec);
	EXPECT_STREQ(m.path, "[stack]");
	ASSERT_TRUE(maps_next(&maps, &m));
	EXPECT_TRUE(m.write && !m.exec);
	EXPECT_EQ(m.offset, 0xffffffff000);
	EXPECT_STREQ(m.path, "");
	ASSERT_TRUE(maps_next(&maps, &m));
	EXPECT_EQ(m.start, 0xffffffffff600000);
	EXPECT_TRUE(m.exec);
	EXPECT_FALSE(maps_next(&maps, &m));
	EXPECT_EQ(maps_close(&maps), 0);
}

TEST(what_is_no_such_line_is_passed_over)
{
	EXPECT_TRUE(is_line("1000-2000 r-xp 0 0:0 0 \n"));
	EXPECT_TRUE(is_line("1000-2000 r-xp 0 0:0 0\n"));
	EXPECT_FALSE(is_line("\n"));
	EXPECT_FALSE(is_line("-2000 r-xp 0 0:0 0 \n"));
	EXPECT_FALSE(is_line("1000 2000 r-xp 0 0:0 0 \n"));
	EXPECT_FALSE(is_line("1000-20x0 r-xp 0 0:0 0 \n"));
	EXPECT_FALSE(is_line("1000-2000 r-x 0 0:0 0 \n"));
	EXPECT_FALSE(is_line("1000-2000 r-xps 0 0:0 0 \n"));
	EXPECT_FALSE(is_line("1000-2000 r-xp"));
	EXPECT_FALSE(is_line("1000-2000 r-xp x 0:0 0 \n"));
	EXPECT_FALSE(is_line("1000-2000 r-xp 0 0 0 \n"));
	EXPECT_FALSE(is_line("1000-2000 r-xp 0 0: 0 \n"));
	EXPECT_FALSE(is_line("1000-2000 r-xp 0 0:0 a \n"));
	EXPECT_FALSE(is_line("Anonymous:             4 kB\n"));
	EXPECT_TRUE(is_line("VmFlags: rd ex\n1000-2000 r-xp 0 0:0 0 \n"));
}

/* ---- What the kernel answers ---- */

#define CODE_MAX 256 /* executable mappings of this program, at most */

/* An executable mapping, with a path of its own. */
struct code {
	struct mapping m;
	char path[4096];
};

static void keep(struct code *to, const struct mapping *m)
{
	to->m = *m;
	snprintf(to->path, sizeof(to->path), "%s", m->path);
}

/* Asks for this program's executable mappings. Returns how many there are, or a negative errno. */
static int ask(struct maps *maps, struct code *list)
{
	struct mapping m;
	int nr = 0, ret;

	while ((ret = maps_next_code(maps, &m)) > 0 && nr < CODE_MAX)
		keep(&list[nr++], &m);
	return ret < 0 ? ret : nr;
}

/* Reads the lines of them. */
static int read_lines(struct maps *maps, struct code *list)
{
	struct mapping m;
	int nr = 0;

	while (nr < CODE_MAX && maps_next(maps, &m))
		if (m.exec && strcmp(m.path, "[vsyscall]"))
			keep(&list[nr++], &m);
	return nr;
}

static bool is_same(const struct code *a, const struct code *b)
{
	return a->m.start == b->m.start && a->m.end == b->m.end && a->m.offset == b->m.offset &&
	       a->m.dev == b->m.dev && a->m.inode == b->m.inode && a->m.write == b->m.write &&
	       a->m.exec == b->m.exec && !strcmp(a->path, b->path);
}

/* Maps two pages of a new file as code, from its second page on. Returns whether that could be done. */
static bool map_code(const char *name)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const int fd = memfd_create(name, MFD_CLOEXEC);
	void *code = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, 3 * page))
		code = mmap(NULL, 2 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, page);
	if (fd >= 0)
		close(fd);
	return code != MAP_FAILED;
}

/* Maps memory that is code and can be written, which some systems permit nobody. */
static void map_memory(int flags)
{
	mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE | PROT_EXEC, flags | MAP_ANONYMOUS,
	     -1, 0);
}

FIXTURE(answers)
{
	struct code *asked, *lines;
};

FIXTURE_SETUP(answers)
{
	struct maps maps;
	int ret;

	self->asked = calloc(CODE_MAX, sizeof(*self->asked));
	self->lines = calloc(CODE_MAX, sizeof(*self->lines));
	ASSERT_TRUE(self->asked && self->lines);
	ASSERT_EQ(maps_open(getpid(), "maps", &maps), 0);
	ret = ask(&maps, self->asked);
	maps_close(&maps);
	if (ret == -ENOTTY)
		SKIP(return, "the kernel has only lines: Linux 6.11 answers");
}

FIXTURE_TEARDOWN(answers)
{
	free(self->asked);
	free(self->lines);
}

TEST_F(answers, they_are_what_lines_of_code_have)
{
	struct maps maps;
	int asked, lines;

	ASSERT_TRUE(map_code("a b"));
	map_memory(MAP_PRIVATE);
	map_memory(MAP_SHARED);
	ASSERT_EQ(maps_open(getpid(), "maps", &maps), 0);
	asked = ask(&maps, self->asked);
	lines = read_lines(&maps, self->lines);
	maps_close(&maps);
	ASSERT_GT(asked, 3);
	ASSERT_EQ(asked, lines);
	for (int i = 0; i < asked; i++) {
		EXPECT_TRUE(is_same(&self->asked[i], &self->lines[i]))
		{
			TH_LOG("asked: %s, line: %s", self->asked[i].path, self->lines[i].path);
		}
	}
}

TEST_F(answers, a_path_that_lines_escape_has_to_be_read)
{
	struct maps maps;

	ASSERT_TRUE(map_code("a\nb"));
	ASSERT_EQ(maps_open(getpid(), "maps", &maps), 0);
	EXPECT_EQ(ask(&maps, self->asked), -EILSEQ);
	EXPECT_GT(read_lines(&maps, self->lines), 1);
	maps_close(&maps);
}

TEST(what_is_no_list_of_mappings_does_not_answer)
{
	struct maps text = of_text("1000-2000 r-xp 0 0:0 0 \n"), status;
	struct mapping m;

	EXPECT_EQ(maps_next_code(&text, &m), -EBADF);
	EXPECT_TRUE(maps_next(&text, &m));
	maps_close(&text);
	ASSERT_EQ(maps_open(getpid(), "status", &status), 0);
	EXPECT_LT(maps_next_code(&status, &m), 0);
	maps_close(&status);
}

TEST_HARNESS_MAIN
