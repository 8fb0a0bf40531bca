/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * running.h - the files that running processes execute code of.
 */
#ifndef TOOLS_RULES_RUNNING_H
#define TOOLS_RULES_RUNNING_H

#include <sys/types.h>

/**
 * running_files() - open each such file once
 * @pid: of this process only; 0: of all.
 * @use: called with each file, which is its to close, and the name that the kernel shows.
 * @arg: passed to @use.
 *
 * What ends, or may not be opened, meanwhile is passed over, unless it is @pid itself. So are
 * files of FUSE, whose server may not answer, and of file systems that are not mounted any more.
 *
 * Return: 0, or a negative errno.
 */
int running_files(pid_t pid, void (*use)(void *arg, int fd, const char *path), void *arg);

#endif
