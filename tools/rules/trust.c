// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trust.c - tells which files belong to root or to the caller, and can be written by nobody else.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/rules/mounts.h"
#include "tools/rules/trust.h"

bool trust_owner(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Opens the file that has the name of @fd here. The name may be any name if the file is in a
 * container. The kernel only walks where it has walked before (RESOLVE_CACHED), which is true for a
 * file that is open, and so it asks no server.
 */
static int open_name(int fd)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS,
	};
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 1 || *path != '/')
		return -1;
	path[n] = '\0';
	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static bool same_file(const struct stat *a, int fd)
{
	struct stat b;

	return !fstat(fd, &b) && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

bool trust_file(int fd)
{
	struct stat st;
	int named;
	bool good;

	if (fstat(fd, &st) || !trust_owner(&st))
		return false;
	named = open_name(fd);
	if (named < 0)
		return false;
	good = mounts_have_file(named) && same_file(&st, named);
	close(named);
	return good;
}

bool trust_works(void)
{
	int fd = open("/", O_PATH | O_CLOEXEC), named = fd < 0 ? -1 : open_name(fd), why = errno;

	if (named >= 0)
		close(named);
	if (fd >= 0)
		close(fd);
	errno = why;
	return named >= 0;
}
