// SPDX-License-Identifier: GPL-2.0-or-later
/* store.c - the folders of reports and of core files; see crash.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/crash/crash.h"

#define TRIES 100 /* files of one second, process name and number */

/* Replaces what does not belong into a name of a file: only letters, digits and "_-." stay. */
static void make_plain(const char *name, char *ret, size_t size)
{
	size_t i;

	for (i = 0; i + 1 < size && name[i]; i++) {
		char c = name[i];

		ret[i] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
					 (c >= '0' && c <= '9') || c == '-' || (c == '.' && i) ?
				 c :
				 '_';
	}
	ret[i] = '\0';
}

int crash_store(const char *dir, const char *name, int pid, const char *suffix, char *path,
		size_t size)
{
	char plain[32], when[32];
	time_t now = time(NULL);
	struct tm tm;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	make_plain(name, plain, sizeof(plain));
	if (!gmtime_r(&now, &tm) || !strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm))
		return -EINVAL;
	for (int i = 0; i < TRIES; i++) {
		char more[16] = "";
		int fd;

		if (i)
			snprintf(more, sizeof(more), ".%d", i);
		if (snprintf(path, size, "%s/%s-%s-%d%s%s", dir, when, plain, pid, more, suffix) >=
		    (int)size)
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n > s && *name != '.' && !strcmp(name + n - s, suffix);
}

/*
 * Names begin with the time, so they sort by age. Other files of that suffix, which somebody may have
 * put there, would be removed as well, so only those that begin as this command's do are counted.
 */
static bool is_ours(const char *name)
{
	static const char form[] = "00000000T000000Z-";

	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != form[i])
			return false;
	return true;
}

void crash_prune(const char *dir, const char *suffix, unsigned int max)
{
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort), kept = 0;

	if (n < 0)
		return;
	while (n-- > 0) {
		const char *name = list[n]->d_name;
		char path[4096];

		if (is_ours(name) && has_suffix(name, suffix) && ++kept > (int)max &&
		    snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
			unlink(path);
		free(list[n]);
	}
	free(list);
}
