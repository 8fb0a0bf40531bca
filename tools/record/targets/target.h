/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target.h - the command that is recorded: can it be, and starting it.
 */
#ifndef TOOLS_RECORD_TARGETS_TARGET_H
#define TOOLS_RECORD_TARGETS_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * target_check() - find a program and why it could not be recorded
 * @name: as on the command line: a path, or looked up in PATH.
 *
 * Says in one line what is wrong.
 *
 * Return: 0, or the exit status to end with.
 */
int target_check(const char *name);

/* Why no agent can enter a program, such as "is statically linked"; NULL: not known. */
const char *target_reason(const char *name);

/* Does a program gain privileges by who executes it? Then the kernel ends an ordinary user's
 * perf events of the process.
 */
bool target_gains(const char *name);

/* As target_check(), but only whether the program is there. */
int target_find(const char *name);

/**
 * struct target - a command that waits to be executed
 * @pid: its process ID.
 * @gate: lets it go.
 * @report: tells if it could not be executed.
 */
struct target {
	pid_t pid;
	int gate;
	int report;
};

/**
 * target_hold() - make the process that will become the command
 * @argv: the command.
 * @agent: path of the agent to be preloaded, or NULL.
 * @env: value of REC_ENV.
 * @mute: where its input and output are a terminal they are /dev/null instead.
 * @ret: receives it; it is for target_go() or target_drop().
 *
 * Return: 0, or the exit status to end with.
 */
int target_hold(char *const argv[], const char *agent, const char *env, bool mute,
		struct target *ret);

/**
 * target_go() - have it execute the command
 * @argv: the command.
 * @target: as target_hold() made it.
 *
 * Return: 0, or the exit status to end with.
 */
int target_go(char *const argv[], struct target *target);

/* Have it end without executing anything. */
void target_drop(struct target *target);

#endif
