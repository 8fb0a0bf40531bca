// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * targets_find_test.c - tests that all children of many processes are found, each once.
 *
 * /proc is replaced: there are @existing processes with the numbers FIRST, FIRST + 1, ..., each of which
 * but the first one is the child of the one with a tenth of its distance from the first.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/proc/tasks.h"
#include "tools/record/targets/targets.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define FIRST 5000000
#define FEWER 10 /* parents than children */
#define MANY 10000

static int existing, next_process;
static bool complained;

uid_t geteuid(void)
{
	return 0;
}

DIR *tasks_open(pid_t pid)
{
	next_process = 0;
	return pid ? NULL : opendir("/");
}

pid_t tasks_next(DIR *dir)
{
	(void)dir;
	return next_process < existing ? FIRST + next_process++ : 0;
}

int task_stat(pid_t pid, pid_t tid, struct task_stat *ret)
{
	(void)tid;
	*ret = (struct task_stat){
		.name = "one",
		.state = 'S',
		.parent = pid == FIRST ? 1 : FIRST + (pid - FIRST) / FEWER,
	};
	return 0;
}

bool process_gone(pid_t pid)
{
	(void)pid;
	return false;
}

const char *process_gone_why(pid_t pid)
{
	(void)pid;
	return "";
}

unsigned long parse_number(const struct argp_state *state, const char *what, const char *arg,
			   unsigned long min, unsigned long max)
{
	(void)state;
	(void)what;
	(void)min;
	(void)max;
	return strtoul(arg, NULL, 10);
}

void complain(const char *format, ...)
{
	(void)format;
	complained = true;
}

FIXTURE(targets)
{
	struct targets targets;
};

FIXTURE_SETUP(targets)
{
	existing = MANY;
	complained = false;
}

FIXTURE_TEARDOWN(targets)
{
	targets_deinit(&self->targets);
}

/* Takes process IDs as words. */
static bool give(struct targets *t, const char *one, const char *other)
{
	char *words[] = { strdup(one), other ? strdup(other) : NULL, NULL };
	const bool ret = targets_take_words(t, words);

	free(words[0]);
	free(words[1]);
	return ret;
}

TEST_F(targets, all_descendants_are_found_once)
{
	static bool seen[MANY];

	ASSERT_TRUE(give(&self->targets, "5000000", NULL));
	ASSERT_EQ(targets_find(&self->targets), 0);
	ASSERT_EQ(self->targets.nr_pids, MANY);
	EXPECT_EQ(self->targets.given, 1);
	for (int i = 0; i < MANY; i++) {
		const int which = self->targets.pids[i] - FIRST;

		ASSERT_TRUE(which >= 0 && which < MANY && !seen[which]);
		seen[which] = true;
	}
}

TEST_F(targets, a_child_that_is_given_is_not_added_again)
{
	ASSERT_TRUE(give(&self->targets, "5000000", "5000012"));
	ASSERT_EQ(targets_find(&self->targets), 0);
	EXPECT_EQ(self->targets.nr_pids, MANY);
	EXPECT_EQ(self->targets.given, 2);
	EXPECT_EQ(self->targets.pids[1], 5000012);
}

TEST_F(targets, children_of_no_target_are_none)
{
	ASSERT_TRUE(give(&self->targets, "5000012", NULL));
	ASSERT_EQ(targets_find(&self->targets), 0);
	/* 12, 120 to 129, 1200 to 1299. */
	EXPECT_EQ(self->targets.nr_pids, 111);
}

TEST_F(targets, more_than_can_be_recorded_is_an_error)
{
	existing = TARGETS_ALL + 1;
	ASSERT_TRUE(give(&self->targets, "5000000", NULL));
	EXPECT_EQ(targets_find(&self->targets), EXIT_OWN);
	EXPECT_TRUE(complained);
}

TEST_HARNESS_MAIN
