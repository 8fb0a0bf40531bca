// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shadow_test.c - tests that shadow stacks are found where the kernel shows them, with a stand-in for what it
 * shows.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/proc/maps.h"
#include "tools/proc/shadow.h"
#include "tools/proc/tasks.h"

#include "kselftest_harness.h"

static pid_t opened;

int maps_open(pid_t pid, const char *file, struct maps *ret)
{
	opened = pid;
	ret->in = NULL;
	return strcmp(file, "smaps") ? -ENOENT : 0;
}

bool maps_next_flagged(struct maps *maps, const char *flag, struct mapping *ret)
{
	(void)maps;
	(void)flag;
	(void)ret;
	return false;
}

int maps_close(struct maps *maps)
{
	(void)maps;
	return 0;
}

static void *wait_for_end(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Starts a process whose first thread ends before another one. Returns its number, or -1. */
static pid_t start(void)
{
	const pid_t pid = fork();
	pthread_t other;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&other, NULL, wait_for_end, NULL))
		_exit(1);
	syscall(SYS_exit, 0);
	_exit(1);
}

TEST(a_process_whose_first_thread_has_ended_is_asked_by_another)
{
	struct task_stat stat = { .state = 0 };
	struct shadow_stacks stacks;
	const pid_t pid = start();

	ASSERT_GT(pid, 0);
	while (!task_stat(pid, pid, &stat) && stat.state != 'Z')
		usleep(1000);
	EXPECT_EQ(shadow_stacks_read(pid, &stacks), 0);
	EXPECT_NE(opened, pid);
	EXPECT_EQ(opened, tasks_other(pid));
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(of_a_process_that_has_ended_nothing_is_known)
{
	siginfo_t info;
	const pid_t pid = fork();

	if (!pid)
		_exit(0);
	ASSERT_GT(pid, 0);
	ASSERT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	EXPECT_EQ(shadow_stacks_any(pid), -ESRCH);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(any_other_process_by_its_own_number)
{
	EXPECT_EQ(shadow_stacks_any(getpid()), 0);
	EXPECT_EQ(opened, getpid());
}

TEST_HARNESS_MAIN
