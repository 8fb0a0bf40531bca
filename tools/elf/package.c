// SPDX-License-Identifier: GPL-2.0-or-later
/* package.c - find the Debian packages that own the files of a program. See objects.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/elf/objects.h"

/* Takes a line "package[:arch][, package...]: path" of dpkg-query -S. */
static void take_owner(struct objects *set, char *line)
{
	char *path = strstr(line, ": /");
	const char *file;

	if (!path || !strncmp(line, "diversion by ", 13))
		return;
	*path = '\0';
	path += 2;
	path[strcspn(path, "\n")] = '\0';
	line[strcspn(line, ",")] = '\0';
	for (size_t i = 0; i < set->n; i++) {
		file = set->v[i].path;
		if (set->v[i].package)
			continue;
		/* On a system with merged /usr, dpkg may know the file by either path. */
		if (!strcmp(file, path) || (!strncmp(file, "/usr/", 5) && !strcmp(file + 4, path)))
			set->v[i].package = strdup(line);
	}
}

int objects_find_packages(struct objects *set)
{
	char *line = NULL, *root_arg = NULL, **argv = NULL;
	size_t room = 0, n = 0;
	int err = 0, fds[2], status;
	FILE *from;
	pid_t pid;

	if (asprintf(&root_arg, "--admindir=%s/var/lib/dpkg", set->root) < 0)
		return -ENOMEM;
	err = strings_add(&argv, &n, strdup("dpkg-query"));
	err = err ?: strings_add(&argv, &n, root_arg);
	err = err ?: strings_add(&argv, &n, strdup("-S"));
	err = err ?: strings_add(&argv, &n, strdup("--"));
	for (size_t i = 0; !err && i < set->n; i++) {
		err = strings_add(&argv, &n, strdup(set->v[i].path));
		if (!err && !strncmp(set->v[i].path, "/usr/", 5))
			err = strings_add(&argv, &n, strdup(set->v[i].path + 4));
	}
	if (err || pipe2(fds, O_CLOEXEC)) {
		strings_free(argv);
		return err ?: -errno;
	}
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, 0);
		dup2(fds[1], 1);
		dup2(null, 2);
		setenv("LC_ALL", "C", 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	strings_free(argv);
	from = pid > 0 ? fdopen(fds[0], "r") : NULL;
	if (!from) {
		close(fds[0]);
		return -ENOMEM;
	}
	while (getline(&line, &room, from) > 0)
		take_owner(set, line);
	free(line);
	fclose(from);
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : 0;
}
