/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * running_files.h - finds the files whose code running processes execute.
 */
#ifndef TOOLS_RULES_RUNNING_FILES_H
#define TOOLS_RULES_RUNNING_FILES_H

#include <stdint.h>
#include <sys/types.h>

struct subordinate;

/**
 * struct running - what is asked for
 * @pid: only the files of this process; 0 for all processes.
 * @addr: an address at which @pid executes a file, or did so a moment ago; 0: none.
 * @stop: a descriptor; the search ends when it becomes readable. -1 if there is none.
 * @use: is called once with each file, which it must close, and the name that the kernel shows.
 * @arg: passed to @use.
 * @subordinate: ids that count as other users; NULL: none.
 * @stuck: receives the child that looked at the last process, if it did not end when it was killed,
 *	because it waits in the kernel; else 0. The caller then waits for it. NULL: nobody does.
 */
struct running {
	pid_t pid;
	uint64_t addr;
	int stop;
	void (*use)(void *arg, int fd, const char *path);
	void *arg;
	const struct subordinate *subordinate;
	pid_t *stuck;
};

/**
 * running_files() - open each file whose code a running process executes, once
 * @r: what is asked for.
 *
 * A process that ends, or that may not be opened, is skipped unless it is @r->pid itself. Also
 * skipped are files of FUSE, whose server may not answer, files of overlays that an ordinary user
 * mounted in a namespace of the user's, since these may lie over FUSE, and files of file systems that
 * are not mounted any more. So nobody can have @use wait for a file. Processes are skipped about which
 * the kernel tells nothing for a second, or not all within five, or about all of a user's within half a minute;
 * this does not hold for root. Of what @use takes for a process, the first minute is not part of that, nor are
 * the first two minutes for a user. Processes in a user namespace count for the user who created it, and those of
 * @r->subordinate for the user there.
 *
 * The caller must have only one thread.
 *
 * Return: 0 or a negative errno; -ENXIO if no file is executed at @r->addr any more, though others are
 * found; -ETIMEDOUT if the kernel tells nothing about @r->pid, or about the
 * processes of too many users; -ECANCELED if @r->stop became readable.
 */
int running_files(const struct running *r);

#endif
