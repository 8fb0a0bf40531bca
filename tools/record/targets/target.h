/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target.h - the command that is recorded: whether it can be recorded, and how it is started.
 */
#ifndef TOOLS_RECORD_TARGETS_TARGET_H
#define TOOLS_RECORD_TARGETS_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * target_check() - find a program and check that the agent can record it
 * @name: the program as on the command line: a path, or a name to be looked up in PATH.
 *
 * Prints one line if something is wrong.
 *
 * Return: 0, or the exit status to end with.
 */
int target_check(const char *name);

/*
 * Returns why the agent cannot enter a program, such as "is statically linked"; NULL if no reason
 * is known.
 */
const char *target_reason(const char *name);

/*
 * Returns whether a program gains privileges when it is executed. If it does, the kernel ends an
 * ordinary user's perf events of the process.
 */
bool target_gains(const char *name);

/*
 * Finds a program as target_check() does, but does not check that it can be recorded. Returns 0 or
 * the exit status to end with.
 */
int target_find(const char *name);

/**
 * struct target - a process that waits to execute the command
 * @pid: its process ID.
 * @gate: file descriptor to which a byte is written to let it go.
 * @report: file descriptor from which numbers are read: a negative errno if the command could not be
 *	executed, the process ID of another process that becomes the command.
 * @apart: may be set before target_go(): another process becomes the command, which this one starts, if
 *	there may be one more process. It does nothing else, so that its events can be changed: the command
 *	has inherited them.
 * @starter: process ID of the process that waited, if another one became the command, or 0.
 */
struct target {
	pid_t pid;
	int gate;
	int report;
	bool apart;
	pid_t starter;
};

/**
 * target_hold() - make the process that will become the command
 * @argv: the command.
 * @agent: path of the object to preload, or NULL.
 * @env: value of REC_ENV.
 * @mute: whether standard input and output become /dev/null where they are a terminal.
 * @ret: receives the process. target_go() or target_drop() must follow.
 *
 * Return: 0, or the exit status to end with.
 */
int target_hold(char *const argv[], const char *agent, const char *env, bool mute,
		struct target *ret);

/**
 * target_go() - have the process execute the command
 * @argv: the command.
 * @target: the process that target_hold() made. Receives the process ID of the command. target_end()
 *	must follow.
 *
 * Return: 0, or the exit status to end with.
 */
int target_go(char *const argv[], struct target *target);

/* Ends the process that started the command, if there is one. The command goes on. */
void target_end(struct target *target);

/* Has the process end without executing anything, and waits for it. */
void target_drop(struct target *target);

#endif
