// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * path.c - finds programs in PATH. See path.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/proc/path.h"

int find_program(const char *name, char **ret)
{
	const char *path = getenv("PATH");
	int err = -ENOENT;
	char *file;

	if (strchr(name, '/')) {
		*ret = strdup(name);
		return *ret ? 0 : -ENOMEM;
	}
	path = path ? path : "/bin:/usr/bin";
	while (*name) {
		size_t len = strcspn(path, ":");
		struct stat st;

		if (asprintf(&file, "%.*s%s%s", (int)len, path, len ? "/" : "./", name) < 0)
			return -ENOMEM;
		if (!stat(file, &st)) {
			if (S_ISREG(st.st_mode) && !access(file, X_OK)) {
				*ret = file;
				return 0;
			}
			err = -EACCES;
		}
		free(file);
		if (!path[len])
			break;
		path += len + 1;
	}
	return err;
}

const char *find_program_error(const char *name, int err)
{
	return err == -ENOENT && !strchr(name, '/') ? "not found in PATH" : strerror(-err);
}
