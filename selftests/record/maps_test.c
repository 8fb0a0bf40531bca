// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maps_test.c - tests what is read of lines of /proc/PID/maps.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

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

TEST_HARNESS_MAIN
