/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * regular.h - opens a file whose name another program chose.
 *
 * The file may be of any type by now. Opening a FIFO waits for a writer, and opening a device can
 * start something, such as a watchdog timer. So these functions first look at the file, and open
 * it only if it is a regular file.
 */
#ifndef SHSTK_REGULAR_H
#define SHSTK_REGULAR_H

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Opens the file that the O_PATH descriptor @place stands for. Because it is opened by the number
 * of the descriptor, it is the same file that was looked at. Returns as regular_open_below().
 */
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
 * regular_open_below() - open a regular file for reading
 * @dir: descriptor of the folder that is the root of @path; symbolic links do not lead out of
 *	it. If it is negative, @path is opened as usual.
 * @path: path of the file.
 * @flags: O_NOFOLLOW or 0.
 *
 * Return: a descriptor; -EISDIR or -EINVAL: it is not a regular file; or another negative errno.
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

/* Opens the file @path with the folder @root as its root; links do not lead out of the folder. */
static inline int regular_open_in(const char *root, const char *path)
{
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir < 0)
		return -errno;
	fd = regular_open_below(dir, path, 0);
	close(dir);
	return fd;
}

/* Opens the file @path as process @pid sees it. */
static inline int regular_open_of(int pid, const char *path)
{
	char root[32];

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	return regular_open_in(root, path);
}

/*
 * Opens the file that process @pid has mapped from @start to @end, by the mapping where that is
 * permitted, else by the file's name @path.
 */
static inline int regular_open_mapped(int pid, uint64_t start, uint64_t end, const char *path)
{
	char link[96];
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
		 (unsigned long long)end);
	fd = regular_open(link);
	return fd >= 0 ? fd : regular_open_of(pid, path);
}

#endif
