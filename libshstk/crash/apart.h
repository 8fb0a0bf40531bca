/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * apart.h - start a process that is no child of this one: no wait(2) of the program finds it, and no
 * SIGCHLD comes when it ends.
 *
 * It shares memory with this process until it executes a program, so that a process of many gigabytes
 * is not copied.
 */
#ifndef LIBSHSTK_CRASH_APART_H
#define LIBSHSTK_CRASH_APART_H

#include <sys/types.h>

#define APART_STACK 2048 /* bytes: some system calls */

/**
 * struct apart - a process that is started
 * @stacks: where the new processes run before a program is executed.
 * @execute: executes a program. It runs in the new process, in the memory of this one, while the calling
 *	thread waits; all signals should be blocked then. It must not return.
 * @arg: its argument.
 * @pid: the new process.
 */
struct apart {
	char stacks[2][APART_STACK] __attribute__((aligned(16)));
	int (*execute)(void *arg);
	void *arg;
	pid_t pid;
};

/*
 * Starts the process. Returns 0 or a negative errno. It is async-signal-safe, and no cancellation point.
 */
int apart_start(struct apart *a);

#endif
