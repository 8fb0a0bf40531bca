// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * running.c - the files that running processes execute code of.
 */
#include <dirent.h>
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

#include "tools/rules/running.h"

struct seen {
	dev_t dev;
	ino_t ino;
};

struct search {
	void *seen; /* a tree of struct seen */
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

/*
 * map_files names the very file, in whatever root directory its process is. Its names have
 * no leading zeros, other than maps.
 */
static void use_mapping(struct search *s, pid_t pid, const uint64_t range[2], const char *path)
{
	char name[128];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, range[0],
		 range[1]);
	if (stat(name, &st) || !S_ISREG(st.st_mode) || !is_new(s, &st))
		return;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		s->use(s->arg, fd, path);
}

static int search_process(struct search *s, pid_t pid)
{
	char name[64], *line = NULL;
	size_t room = 0;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	if (!maps)
		return -errno;
	while (getline(&line, &room, maps) > 0) {
		uint64_t range[2];
		char perm[8];
		int path = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", range, range + 1,
			   perm, &path) == 3 &&
		    perm[2] == 'x' && path && line[path] == '/')
			use_mapping(s, pid, range, line + path);
	}
	free(line);
	fclose(maps);
	return 0;
}

static int search_all(struct search *s)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;

	if (!proc)
		return -errno;
	while ((d = readdir(proc))) {
		char *end;
		long pid = strtol(d->d_name, &end, 10);

		if (!*end && pid > 0)
			search_process(s, (pid_t)pid);
	}
	closedir(proc);
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
	int err = pid ? search_process(&s, pid) : search_all(&s);

	forget(&s);
	return err;
}
