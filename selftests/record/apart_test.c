// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * apart_test.c - tests the command that another process starts: it is a child of the recorder, has its own
 * status, gets the signals that came before it was let go, and runs where no other process may be started.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/elf/golang.h"
#include "tools/elf/object.h"
#include "tools/proc/path.h"
#include "tools/proc/script.h"
#include "tools/record/targets/target.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define NOBODY 65534

/* ---- What the agent needs to know of a file: no agent is here ---- */

void complain(const char *fmt, ...)
{
	(void)fmt;
}

int find_program(const char *name, char **ret)
{
	(void)name, (void)ret;
	return -ENOENT;
}

char *script_interpreter(int fd, char **word)
{
	(void)fd, (void)word;
	return NULL;
}

enum golang_kind golang_kind(int fd)
{
	(void)fd;
	return 0;
}

int object_read(int fd, const char *root, struct object *o)
{
	(void)fd, (void)root, (void)o;
	return -ENOEXEC;
}

void object_deinit(struct object *o)
{
	(void)o;
}

unsigned int machine_own(void)
{
	return 0;
}

/* ---- The command ---- */

/* Starts the command, after the process that waits has got the signal @signo, unless that is 0. */
static int begin(char *const argv[], int signo, struct target *ret)
{
	if (target_hold(argv, NULL, NULL, false, ret))
		return -1;
	ret->apart = true;
	if (signo)
		kill(ret->pid, signo);
	return target_go(argv, ret);
}

FIXTURE(command)
{
	struct target target;
};

FIXTURE_SETUP(command)
{
	sigset_t set;

	/* As in the recorder: the process that waits inherits it. */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* A shell has ignored it for what runs in the background. */
	signal(SIGINT, SIG_DFL);
}

FIXTURE_TEARDOWN(command)
{
	target_end(&self->target);
}

TEST_F(command, it_is_a_child_with_a_status)
{
	char *argv[] = { "sh", "-c", "exit 7", NULL };
	int status;

	ASSERT_EQ(begin(argv, 0, &self->target), 0);
	ASSERT_GT(self->target.starter, 0);
	ASSERT_NE(self->target.pid, self->target.starter);
	ASSERT_EQ(waitpid(self->target.pid, &status, 0), self->target.pid);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	EXPECT_EQ(waitpid(self->target.starter, &status, WNOHANG), 0);
	target_end(&self->target);
	EXPECT_EQ(waitpid(-1, &status, 0), -1);
	EXPECT_EQ(errno, ECHILD);
}

TEST_F(command, signals_from_before_end_it)
{
	char *argv[] = { "sleep", "1000", NULL };
	const int signals[] = { SIGINT, SIGTERM };

	for (int i = 0; i < 2; i++) {
		int status, most = 10000;
		pid_t pid;

		ASSERT_EQ(begin(argv, signals[i], &self->target), 0);
		pid = self->target.pid;
		while (most-- && waitpid(pid, &status, WNOHANG) != pid)
			usleep(20000);
		if (most < 0)
			kill(pid, SIGKILL);
		ASSERT_GE(most, 0);
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
		target_end(&self->target);
	}
}

TEST_F(command, its_starter_ends_if_it_was_stopped)
{
	char *argv[] = { "true", NULL };
	pid_t pid;

	ASSERT_EQ(begin(argv, 0, &self->target), 0);
	ASSERT_EQ(waitpid(self->target.pid, NULL, 0), self->target.pid);
	pid = self->target.starter;
	ASSERT_EQ(kill(pid, SIGSTOP), 0);
	ASSERT_EQ(waitpid(pid, NULL, WUNTRACED), pid);
	target_end(&self->target);
	EXPECT_EQ(waitpid(pid, NULL, 0), -1);
}

TEST_F(command, it_ends_if_it_was_stopped_before_it_began)
{
	char *argv[] = { "true", NULL };
	pid_t pid;

	ASSERT_EQ(target_hold(argv, NULL, NULL, false, &self->target), 0);
	pid = self->target.pid;
	ASSERT_EQ(kill(pid, SIGSTOP), 0);
	ASSERT_EQ(waitpid(pid, NULL, WUNTRACED), pid);
	target_drop(&self->target);
	EXPECT_EQ(waitpid(pid, NULL, 0), -1);
}

TEST_F(command, it_is_the_waiting_process_where_there_may_be_no_other)
{
	const struct rlimit none = { 0, 0 };
	char *argv[] = { "sh", "-c", "exit 7", NULL };
	int status;

	/* The limit is not for root. */
	if (!getuid() && setuid(NOBODY))
		SKIP(return, "no other user here");
	ASSERT_EQ(target_hold(argv, NULL, NULL, false, &self->target), 0);
	ASSERT_EQ(prlimit(self->target.pid, RLIMIT_NPROC, &none, NULL), 0);
	self->target.apart = true;
	ASSERT_EQ(target_go(argv, &self->target), 0);
	EXPECT_EQ(self->target.starter, 0);
	ASSERT_EQ(waitpid(self->target.pid, &status, 0), self->target.pid);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST_F(command, one_that_cannot_be_executed_leaves_no_process)
{
	char *argv[] = { "/nonexistent/command", NULL };

	EXPECT_EQ(begin(argv, 0, &self->target), EXIT_NOENT);
	EXPECT_EQ(waitpid(-1, NULL, 0), -1);
	EXPECT_EQ(errno, ECHILD);
}

TEST_HARNESS_MAIN
