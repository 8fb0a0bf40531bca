// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * about_test.c - tests what is told of a process: of one that is gone, nothing. Its labels must not
 * be what happened to be on the stack.
 */
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/proc/about.h"
#include "kselftest_harness.h"

/* Fills the stack, as far as a function that is called next will use it, with letters. */
static __attribute__((noinline)) void paint(void)
{
	volatile char letters[16384];

	for (size_t i = 0; i < sizeof(letters); i++)
		letters[i] = 'x';
}

TEST(a_process_that_is_gone_has_no_labels)
{
	char labels[ABOUT_MAX];

	/* No process has this number: Linux has 4194304 at most. */
	paint();
	EXPECT_EQ(0, about_process(INT_MAX, labels));
}

TEST(a_living_process_has_its_name_and_command)
{
	static const char key[] = "process\0about_test\0command";
	char labels[ABOUT_MAX];
	size_t size;

	ASSERT_EQ(0, prctl(PR_SET_NAME, "about_test"));
	paint();
	size = about_process(getpid(), labels);
	ASSERT_GT(size, sizeof(key));
	EXPECT_EQ(0, memcmp(labels, key, sizeof(key)));
	EXPECT_EQ('\0', labels[size - 1]);
}

TEST_HARNESS_MAIN
