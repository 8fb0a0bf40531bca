/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * held_command.h - a command that begins when its events are there, for programs that sample it with
 * a BPF program.
 */
#ifndef SELFTESTS_BPF_HELD_COMMAND_H
#define SELFTESTS_BPF_HELD_COMMAND_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Says why the calling program cannot go on, and ends it. */
static inline void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	exit(1);
}

/* Starts a process that waits until release_command(), then is the command. Returns its ID. */
static inline pid_t hold_command(char **command, int *go)
{
	int fds[2];
	pid_t pid;
	char c;

	if (pipe(fds))
		die("pipe", strerror(errno));
	pid = fork();
	if (pid < 0)
		die("fork", strerror(errno));
	if (pid) {
		close(fds[0]);
		*go = fds[1];
		return pid;
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) == 1)
		execvp(*command, command);
	_exit(127);
}

/* Lets the command begin. */
static inline void release_command(int go)
{
	if (write(go, "", 1) != 1)
		die("command", strerror(errno));
	close(go);
}

#endif
