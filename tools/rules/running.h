/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * running.h - the files that running processes execute code of.
 */
#ifndef TOOLS_RULES_RUNNING_H
#define TOOLS_RULES_RUNNING_H

#include <sys/types.h>

/**
 * struct running - what is asked for
 * @pid: files of this process only; 0: of all.
 * @stop: a descriptor; when there is something to read, the search ends. -1: there is none.
 * @use: called with each file, once, which is its to close, and the name that the kernel shows.
 * @arg: passed to @use.
 */
struct running {
	pid_t pid;
	int stop;
	void (*use)(void *arg, int fd, const char *path);
	void *arg;
};

/**
 * running_files() - open each such file once
 * @r: what is asked for.
 *
 * What ends, or may not be opened, meanwhile is passed over, unless it is @r->pid itself. So are
 * files of FUSE, whose server may not answer, and of file systems that are not mounted any more;
 * and processes of which nothing is told for a second.
 *
 * The caller has no threads.
 *
 * Return: 0, or a negative errno; -ETIMEDOUT: of @r->pid, or of too many users' processes, the
 * kernel tells nothing; -ECANCELED: @r->stop.
 */
int running_files(const struct running *r);

#endif
