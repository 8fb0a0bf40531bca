/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mounts.h - tells what file systems are, without asking them. Anybody may run a FUSE server, which
 * may never answer, and may say anything about its files.
 */
#ifndef TOOLS_RULES_MOUNTS_H
#define TOOLS_RULES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct mount - a mount
 * @dev: device of its file system, as in makedev(3).
 * @id: number of the mount.
 * @fuse: a process serves the file system.
 * @stacked: it shows files of other file systems, which may be anything. Ordinary users can mount such
 *	a file system in a user namespace of their own.
 */
struct mount {
	uint64_t dev;
	int id;
	bool fuse;
	bool stacked;
};

/**
 * struct mounts - all mounts that a process sees
 * @v: the mounts.
 * @n: number of mounts.
 */
struct mounts {
	struct mount *v;
	size_t n;
};

/**
 * mounts_read() - read the mounts that a process sees
 * @pid: the process; 0 for this one.
 * @ret: receives the mounts; the caller frees @ret->v.
 *
 * Return: 0 or a negative errno; then there are no mounts.
 */
int mounts_read(pid_t pid, struct mounts *ret);

/* Returns the first mount of a file system, or NULL. */
const struct mount *mounts_find(const struct mounts *mounts, uint64_t dev);

/* Returns the mount with the number @id, or NULL. */
const struct mount *mounts_find_id(const struct mounts *mounts, int id);

/*
 * Returns the number of the mount through which @fd was opened, or -1. As long as @fd is open, no other
 * mount has this number. The file system is not asked.
 */
int mounts_id_of(int fd);

/*
 * Returns whether an open file was opened through a mount that this process sees and that is not
 * FUSE.
 */
bool mounts_have_file(int fd);

#endif
