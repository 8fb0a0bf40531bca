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
	if (!*line)
		return;
	for (size_t i = 0; i < set->n; i++) {
		file = set->v[i].path;
		if (set->v[i].package)
			continue;
		/* On a system with merged /usr, dpkg may know the file by either path. */
		if (!strcmp(file, path) || (!strncmp(file, "/usr/", 5) && !strcmp(file + 4, path)))
			set->v[i].package = strdup(line);
	}
}

void objects_take_packages(struct objects *set, FILE *from)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, from) > 0)
		take_owner(set, line);
	free(line);
}

/* Makes the arguments that ask for all objects. Returns NULL if out of memory. */
static char **make_arguments(const struct objects *set)
{
	char **argv = NULL, *root = NULL;
	size_t n = 0;
	int err;

	if (asprintf(&root, "--admindir=%s/var/lib/dpkg", set->root) < 0)
		return NULL;
	err = strings_add(&argv, &n, strdup("dpkg-query"));
	err = err ?: strings_add(&argv, &n, root);
	err = err ?: strings_add(&argv, &n, strdup("-S"));
	err = err ?: strings_add(&argv, &n, strdup("--"));
	for (size_t i = 0; !err && i < set->n; i++) {
		err = strings_add(&argv, &n, strdup(set->v[i].path));
		if (!err && !strncmp(set->v[i].path, "/usr/", 5))
			err = strings_add(&argv, &n, strdup(set->v[i].path + 4));
	}
	if (!err)
		return argv;
	strings_free(argv);
	return NULL;
}

/* Becomes dpkg-query, which writes to @out. */
static _Noreturn void ask(char **argv, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, 0);
	dup2(out, 1);
	dup2(null, 2);
	setenv("LC_ALL", "C", 1);
	execvp(argv[0], argv);
	_exit(127);
}

/* Starts dpkg-query. Returns what it says, to be read, or NULL with errno. */
static FILE *start(char **argv, pid_t *pid)
{
	int fds[2];
	FILE *ret;

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	ret = fdopen(fds[0], "r");
	*pid = ret ? fork() : -1;
	if (!*pid)
		ask(argv, fds[1]);
	close(fds[1]);
	if (*pid > 0)
		return ret;
	if (ret)
		fclose(ret);
	else
		close(fds[0]);
	return NULL;
}

int objects_find_packages(struct objects *set)
{
	char **argv = make_arguments(set);
	int status, err;
	FILE *from;
	pid_t pid;

	if (!argv)
		return -ENOMEM;
	from = start(argv, &pid);
	err = from ? 0 : -errno;
	strings_free(argv);
	if (!from)
		return err;
	objects_take_packages(set, from);
	fclose(from);
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : 0;
}
