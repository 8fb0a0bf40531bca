/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mounts.h - what file systems are, without asking them: a server of FUSE may be anybody's
 * and never answer, and say of its files what it likes.
 */
#ifndef TOOLS_RULES_MOUNTS_H
#define TOOLS_RULES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct mount - one
 * @dev: device of its file system, as makedev(3) has it.
 * @id: its number.
 * @fuse: a process serves it.
 */
struct mount {
	uint64_t dev;
	int id;
	bool fuse;
};

/**
 * struct mounts - all that a process sees
 * @v: these.
 * @n: number of them.
 */
struct mounts {
	struct mount *v;
	size_t n;
};

/**
 * mounts_read() - read the mounts that a process sees
 * @pid: the process; 0: this one.
 * @ret: receives them; free @ret->v.
 *
 * Return: 0 or a negative errno; there are none then.
 */
int mounts_read(pid_t pid, struct mounts *ret);

/* The first of a file system, or NULL. */
const struct mount *mounts_find(const struct mounts *mounts, uint64_t dev);

/* Is the mount that an open file was opened by one of this process's, and none of FUSE? */
bool mounts_have_file(int fd);

#endif
