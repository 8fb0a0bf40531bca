/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hopeless.h - remembers files for which no table could be made, so that they are left alone: files
 * that can never have a table, until they change, and files for which making it failed, for a few
 * minutes.
 */
#ifndef TOOLS_RULES_HOPELESS_H
#define TOOLS_RULES_HOPELESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Number of places. A file whose place is taken replaces the old one, which is then tried once
 * more.
 */
#define NR_HOPELESS 1024

/**
 * struct hopeless - the files, by inode number; all bytes are 0 at the beginning
 * @until: time of the next try, by CLOCK_BOOTTIME in ns; ~0 if never.
 */
struct hopeless {
	struct {
		dev_t dev;
		ino_t ino;
		struct timespec changed;
		uint64_t until;
	} files[NR_HOPELESS];
};

/**
 * hopeless_add() - leave a file alone
 * @h: the files.
 * @st: the file.
 * @err: negative errno that is the reason.
 */
void hopeless_add(struct hopeless *h, const struct stat *st, int err);

/*
 * Returns whether an error, a negative errno, is the file's own, so that it stays the same while the file
 * does not change.
 */
bool hopeless_lasts(int err);

/* Returns whether a file is to be left alone. */
bool hopeless_has(const struct hopeless *h, const struct stat *st);

#endif
