/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * regular.h - open a file whose name somebody else chose.
 *
 * What lies there may be anything by now: to open a FIFO waits for whoever writes to it, to
 * open a device can do something, as a watchdog begins to count. So it is looked at first, and
 * opened only if it is a regular file.
 */
#ifndef SHSTK_REGULAR_H
#define SHSTK_REGULAR_H

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of a place that was found: opened by number it is the same one still. */
static inline int regular_reopen(int place)
{
	char path[32];
	struct stat st;
	int fd;

	if (fstat(place, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/**
 * regular_open_below() - open a regular file to read it
 * @dir: the folder that is its root, out of which links do not lead; below 0: ours.
 * @path: the file.
 * @flags: O_NOFOLLOW or 0.
 *
 * Return: a descriptor, or a negative errno; -EISDIR or -EINVAL: it is no regular file.
 */
static inline int regular_open_below(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int place, fd;

	if (dir < 0)
		place = open(path, how.flags);
	else
		place = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (place < 0)
		return -errno;
	fd = regular_reopen(place);
	close(place);
	return fd;
}

static inline int regular_open(const char *path)
{
	return regular_open_below(-1, path, 0);
}

/* As it is seen below the folder @root: links do not lead out of that. */
static inline int regular_open_in(const char *root, const char *path)
{
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir < 0)
		return -errno;
	fd = regular_open_below(dir, path, 0);
	close(dir);
	return fd;
}

/* As process @pid sees it. */
static inline int regular_open_of(int pid, const char *path)
{
	char root[32];

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	return regular_open_in(root, path);
}

#endif
