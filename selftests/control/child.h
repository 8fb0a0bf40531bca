/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * child.h - runs a function under shadow stacks in a child of its own.
 */
#ifndef CONTROL_CHILD_H
#define CONTROL_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/shstk.h"

/* Runs @fn in a child that switches on in its outermost frame and never
 * returns from it. Returns the child's exit status, 100 + errno if the switch
 * failed, 200 + N for signal N.
 */
static __attribute__((noinline, noreturn)) void outermost(uint64_t status, int (*fn)(void))
{
	int err = shstk_status_set(status);

	if (err)
		_exit(100 - err);
	_exit(fn());
}

static int in_child(uint64_t status, int (*fn)(void))
{
	int ret;
	pid_t pid = fork();

	if (!pid)
		outermost(status, fn);
	if (pid < 0 || waitpid(pid, &ret, 0) < 0)
		return -1;
	return WIFSIGNALED(ret) ? 200 + WTERMSIG(ret) : WEXITSTATUS(ret);
}

static int nothing(void)
{
	return 0;
}

static int have(void)
{
	static int known = -1;

	if (known < 0)
		known = in_child(SHSTK_STATUS_ENABLE, nothing);
	return !known;
}

#endif
