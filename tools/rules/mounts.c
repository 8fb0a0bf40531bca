// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mounts.c - tells what file systems are, without asking them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tools/rules/mounts.h"

/*
 * Parses a line of mountinfo, see proc(5): "36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root
 * rw". Fields contain no blanks.
 */
static bool parse(const char *line, struct mount *m)
{
	const char *type = strstr(line, " - ");
	unsigned int major, minor;

	if (!type || sscanf(line, "%d %*d %u:%u", &m->id, &major, &minor) != 3)
		return false;
	m->dev = makedev(major, minor);
	m->fuse = !strncmp(type + 3, "fuse", 4);
	m->stacked = !strncmp(type + 3, "overlay", 7) || !strncmp(type + 3, "shiftfs", 7);
	return true;
}

static int add(struct mounts *mounts, const struct mount *m)
{
	struct mount *v;

	/* The room is doubled when it is full. */
	if (!(mounts->n & (mounts->n - 1))) {
		v = reallocarray(mounts->v, mounts->n ? 2 * mounts->n : 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		mounts->v = v;
	}
	mounts->v[mounts->n++] = *m;
	return 0;
}

int mounts_read(pid_t pid, struct mounts *ret)
{
	char path[64] = "/proc/self/mountinfo", *line = NULL;
	struct mount m;
	size_t room = 0;
	int err = 0;
	FILE *f;

	*ret = (struct mounts){ 0 };
	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!err && getline(&line, &room, f) > 0)
		if (parse(line, &m))
			err = add(ret, &m);
	free(line);
	fclose(f);
	if (err) {
		free(ret->v);
		*ret = (struct mounts){ 0 };
	}
	return err;
}

const struct mount *mounts_find(const struct mounts *mounts, uint64_t dev)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (mounts->v[i].dev == dev)
			return &mounts->v[i];
	return NULL;
}

const struct mount *mounts_find_id(const struct mounts *mounts, int id)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (mounts->v[i].id == id)
			return &mounts->v[i];
	return NULL;
}

int mounts_id_of(int fd)
{
	char path[48], line[256];
	int ret = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f) && sscanf(line, "mnt_id: %d", &ret) != 1)
		;
	fclose(f);
	return ret;
}

bool mounts_have_file(int fd)
{
	const unsigned int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct mounts mounts;
	struct statx st;
	bool found = false;

	if (statx(fd, "", flags, STATX_MNT_ID, &st) || !(st.stx_mask & STATX_MNT_ID) ||
	    mounts_read(0, &mounts))
		return false;
	for (size_t i = 0; i < mounts.n; i++)
		if ((uint64_t)mounts.v[i].id == st.stx_mnt_id)
			found = !mounts.v[i].fuse;
	free(mounts.v);
	return found;
}
