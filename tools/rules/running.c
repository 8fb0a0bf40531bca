// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * running.c - the files that running processes execute code of.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/proc/maps.h"
#include "tools/proc/tasks.h"
#include "tools/rules/mounts.h"
#include "tools/rules/running.h"

struct seen {
	dev_t dev;
	ino_t ino;
};

/**
 * struct search - files that are looked for
 * @seen: a tree of struct seen.
 * @own: mounts of this process.
 * @mounts: of the process that is looked at, of mount namespace @space.
 * @space: see @mounts.
 * @use: called with each file.
 * @arg: for @use.
 */
struct search {
	void *seen;
	struct mounts own, mounts;
	ino_t space;
	void (*use)(void *arg, int fd, const char *path);
	void *arg;
};

static int compare(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* Is it the first time? */
static bool is_new(struct search *s, const struct stat *st)
{
	struct seen *seen = malloc(sizeof(*seen)), **found;

	if (!seen)
		return false;
	*seen = (struct seen){ st->st_dev, st->st_ino };
	found = tsearch(seen, &s->seen, compare);
	if (found && *found == seen)
		return true;
	free(seen);
	return false;
}

static void read_mounts(struct search *s, pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &st))
		st.st_ino = 0;
	if (st.st_ino && st.st_ino == s->space)
		return;
	free(s->mounts.v);
	mounts_read(pid, &s->mounts);
	s->space = st.st_ino;
}

/*
 * Asked of FUSE, or of what was unmounted and may have been that, nothing might come back. A
 * process with another root directory does not see what that lies on.
 */
static bool answers(const struct search *s, const struct mapping *m)
{
	const struct mount *mount = mounts_find(&s->mounts, m->dev);

	if (!mount)
		mount = mounts_find(&s->own, m->dev);
	return mount && !mount->fuse;
}

/*
 * A link in /proc/PID/map_files leads to the mapped file itself, whatever the root directory
 * of the process is. Unlike in maps, the addresses in its name have no leading zeros.
 */
static void use_mapping(struct search *s, pid_t pid, const struct mapping *m)
{
	char name[128];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start,
		 m->end);
	if (stat(name, &st) || !S_ISREG(st.st_mode) || !is_new(s, &st))
		return;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		s->use(s->arg, fd, m->path);
}

static int search_process(struct search *s, pid_t pid)
{
	struct mapping m;
	struct maps maps;
	int err = maps_open(pid, "maps", &maps);

	if (err)
		return err;
	read_mounts(s, pid);
	while (maps_next(&maps, &m))
		if (m.exec && *m.path == '/' && answers(s, &m))
			use_mapping(s, pid, &m);
	maps_close(&maps);
	return 0;
}

static int search_all(struct search *s)
{
	DIR *dir = tasks_open(0);
	pid_t pid;

	if (!dir)
		return -errno;
	while ((pid = tasks_next(dir)))
		search_process(s, pid);
	closedir(dir);
	return 0;
}

static void forget(struct search *s)
{
	while (s->seen) {
		struct seen *seen = *(struct seen **)s->seen;

		tdelete(seen, &s->seen, compare);
		free(seen);
	}
}

int running_files(pid_t pid, void (*use)(void *arg, int fd, const char *path), void *arg)
{
	struct search s = { .use = use, .arg = arg };
	int err;

	mounts_read(0, &s.own);
	err = pid ? search_process(&s, pid) : search_all(&s);

	forget(&s);
	free(s.own.v);
	free(s.mounts.v);
	return err;
}
