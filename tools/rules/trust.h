/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trust.h - tells which files belong to root or to the caller, and can be written by nobody else.
 */
#ifndef TOOLS_RULES_TRUST_H
#define TOOLS_RULES_TRUST_H

#include <stdbool.h>
#include <sys/stat.h>

/* Returns whether a file belongs to root or to the caller, and nobody else may write to it. */
bool trust_owner(const struct stat *st);

/**
 * trust_file() - tell whether only root can have made an open file
 * @fd: the file.
 *
 * The file must belong to root or to the caller, and must be the file with its name here, outside
 * of all containers. In a container, and in a file system that a process serves (FUSE), others can
 * have files that belong to root. The function does not wait for a file system that does not
 * answer, unless it is that of @fd.
 *
 * Return: true if the file is trusted.
 */
bool trust_file(int fd);

/*
 * Returns whether trust_file() can work at all. If it cannot, errno says why, and no file is
 * trusted.
 */
bool trust_works(void);

#endif
