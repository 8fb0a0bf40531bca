// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * apart.c - start a process that is no child of this one; see apart.h.
 *
 * A child can be made that sends no signal, but execve(2) undoes that. So the child makes another one,
 * which executes the program, and ends.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/crash/apart.h"

/* Makes the process that executes the program. */
static int make_process(void *arg)
{
	struct apart *a = arg;

	a->pid = clone(a->execute, a->stacks[1] + APART_STACK, CLONE_VM | CLONE_VFORK, a->arg);
	_exit(0);
}

int apart_start(struct apart *a)
{
	pid_t child;
	long got;

	a->pid = 0;
	child = clone(make_process, a->stacks[0] + APART_STACK, CLONE_VM | CLONE_VFORK, a);
	if (child < 0)
		return -errno;
	do {
		got = syscall(SYS_wait4, child, NULL, __WALL, NULL);
	} while (got < 0 && errno == EINTR);
	return a->pid > 0 ? 0 : -EAGAIN;
}
