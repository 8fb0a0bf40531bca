/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hopeless.h - files that got no table, and are left alone: those that never have one, until
 * they change; those of which making it failed, for a few minutes.
 */
#ifndef TOOLS_RULES_HOPELESS_H
#define TOOLS_RULES_HOPELESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A file that finds its place taken takes it: it is asked about once more, then. */
#define NR_HOPELESS 1024

/**
 * struct hopeless - such files, by inode number; all bytes 0 in the beginning
 * @until: when it is tried again, by CLOCK_BOOTTIME in ns; ~0: never.
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
 * @h: these files.
 * @st: the file.
 * @err: the negative errno because of which.
 */
void hopeless_add(struct hopeless *h, const struct stat *st, int err);

/* Is a file to be left alone? */
bool hopeless_has(const struct hopeless *h, const struct stat *st);

#endif
