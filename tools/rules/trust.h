/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trust.h - which files are root's, and nobody else's.
 */
#ifndef TOOLS_RULES_TRUST_H
#define TOOLS_RULES_TRUST_H

#include <stdbool.h>
#include <sys/stat.h>

/* Root's, or the caller's, and nobody else may write to it. */
bool trust_owner(const struct stat *st);

/**
 * trust_file() - is an open file one that root alone can have made?
 * @fd: the file.
 *
 * It has to be root's, or the caller's, and the file of its name here, outside of all
 * containers: in a container, and in a file system that a process serves (FUSE), others can
 * have files that are root's. Nothing of this waits for a file system that does not answer,
 * unless @fd's own.
 */
bool trust_file(int fd);

/* Can that be asked at all? False: errno says why not. Then no file is. */
bool trust_works(void);

#endif
