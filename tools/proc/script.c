// SPDX-License-Identifier: GPL-2.0-or-later
/* script.c - tells which program runs a script. See script.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/proc/path.h"
#include "tools/proc/script.h"

char *script_interpreter(int fd, char **word)
{
	char line[PATH_MAX], *start, *arg, *save;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	*word = NULL;
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	start = strtok_r(line + 2, " \t", &save);
	if (!start)
		return NULL;
	if (strcmp(path_name(start), "env"))
		return strdup(start);
	do {
		arg = strtok_r(NULL, " \t", &save);
	} while (arg && (*arg == '-' || strchr(arg, '=')));
	if (arg)
		*word = strdup(arg);
	start = strdup(start);
	if (!start) {
		free(*word);
		*word = NULL;
	}
	return start;
}

/*
 * Finds what the file at @path is run by. Returns 0 with @ret as the next name to look for, NULL if the
 * file is no script; or a negative errno.
 */
static int read_script(const char *path, char **ret)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char *word, *interp;
	struct stat st;

	*ret = NULL;
	if (fd < 0)
		return -errno;
	interp = fstat(fd, &st) || !S_ISREG(st.st_mode) ? NULL : script_interpreter(fd, &word);
	close(fd);
	if (!interp)
		return 0;
	*ret = word ? word : interp;
	if (word)
		free(interp);
	return 0;
}

/* Returns the path without links, or NULL with errno. Frees @path. */
static char *resolve(char *path)
{
	char *ret = realpath(path, NULL);

	free(path);
	return ret;
}

int script_program(const char *name, char **ret)
{
	char *at = strdup(name), *path, *next;
	int err = at ? 0 : -ENOMEM;

	for (int level = 0; !err && level <= SCRIPT_LEVELS; level++) {
		err = find_program(at, &path);
		free(at);
		at = NULL;
		if (err)
			break;
		err = read_script(path, &next);
		if (!err && !next) {
			*ret = resolve(path);
			return *ret ? 0 : -errno;
		}
		free(path);
		at = next;
	}
	free(at);
	return err ? err : -ELOOP;
}
