// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * load.c - find the files that a program loads: by the file before it runs, or by the mappings of a
 * running process. See objects.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "tools/elf/objects.h"
#include "tools/elf/search.h"
#include "tools/proc/maps.h"
#include "tools/proc/path.h"
#include "tools/proc/script.h"
#include "tools/proc/tasks.h"

enum limit {
	MAX_MAPS_LINES = 1 << 20,
};

/*
 * Finds what the objects from @first on need, breadth first, as ld.so does. The list grows while
 * the loop walks it.
 */
static int load_needed(struct objects *set, size_t first)
{
	int ret;

	for (size_t i = first; i < set->n; i++) {
		for (size_t k = 0; set->v[i].needed && set->v[i].needed[k]; k++) {
			ret = search_library(set, set->v[i].needed[k], i);
			if (ret < 0)
				return ret;
			if (ret)
				continue;
			ret = objects_add_missing(set, set->v[i].needed[k], i);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int load_linker(struct objects *set)
{
	int ret;

	if (!set->v[0].interp)
		return 0;
	ret = objects_add_file(set, set->v[0].interp, set->v[0].interp, 0);
	if (ret)
		return ret < 0 ? ret : 0;
	return objects_add_missing(set, set->v[0].interp, 0);
}

int objects_add_preloaded(struct objects *set, const char *list)
{
	size_t first = set->n;
	char *copy, *save;
	int ret = 0;

	if (!list || !set->v[0].interp)
		return 0;
	copy = strdup(list);
	if (!copy)
		return -ENOMEM;
	for (char *name = strtok_r(copy, ": \t\n", &save); name && ret >= 0;
	     name = strtok_r(NULL, ": \t\n", &save))
		ret = search_library(set, name, 0);
	free(copy);
	return ret < 0 ? ret : load_needed(set, first);
}

static int load_program(struct objects *set, const char *path, int depth);

/* Loads the program that runs a script: @interp, or @word as found by env(1). */
static int load_interpreter(struct objects *set, const char *interp, const char *word, int depth)
{
	char *found;
	int err;

	if (!word)
		return load_program(set, interp, depth);
	if (*set->root)
		err = asprintf(&found, "/usr/bin/%s", word) < 0 ? -ENOMEM : 0;
	else
		err = find_program(word, &found);
	if (err)
		return err;
	err = load_program(set, found, depth);
	free(found);
	return err;
}

static int load_program(struct objects *set, const char *path, int depth)
{
	char *interp, *word;
	struct object *o;
	int fd, err;

	fd = root_open(set->root, path);
	if (fd < 0)
		return fd == -EINVAL ? -ENOEXEC : fd;
	interp = script_interpreter(fd, &word);
	if (interp) {
		if (!set->script)
			set->script = strdup(path);
		close(fd);
		err = depth < SCRIPT_LEVELS ? load_interpreter(set, interp, word, depth + 1) :
					      -ELOOP;
		free(interp);
		free(word);
		return err;
	}
	o = objects_push(set);
	err = o ? object_read(fd, set->root, o) : -ENOMEM;
	close(fd);
	if (!o)
		return err;
	if (!err) {
		o->name = strdup(path);
		err = o->name ? 0 : -ENOMEM;
	}
	if (err)
		object_deinit(o);
	else
		set->n++;
	return err;
}

int objects_load(const char *path, const char *root, struct objects *ret)
{
	int err = -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	ret->root = strdup(root ? root : "");
	if (!ret->root)
		return err;
	while (*ret->root && ret->root[strlen(ret->root) - 1] == '/')
		ret->root[strlen(ret->root) - 1] = '\0';
	err = load_program(ret, path, 0);
	if (!err)
		err = load_needed(ret, 0);
	if (!err)
		err = load_linker(ret);
	if (err)
		objects_deinit(ret);
	return err;
}

/* Moves the object at @path, if it is in the set, to the front, since the program comes first. */
static void program_first(struct objects *set, const char *path)
{
	for (size_t i = 1; i < set->n; i++)
		if (!strcmp(set->v[i].path, path)) {
			struct object o = set->v[i];

			memmove(&set->v[1], &set->v[0], i * sizeof(o));
			set->v[0] = o;
		}
	for (size_t i = 0; i < set->n; i++)
		set->v[i].parent = 0;
}

static int add_mapping(struct objects *set, const struct mapping *m)
{
	const char *path = m->path;
	int ret;

	if (!m->exec || path[0] != '/')
		return 0;
	ret = objects_add_file(set, path, path, 0);
	if (ret)
		return ret < 0 ? ret : 0;
	if (set->n && !strcmp(set->v[0].path, path))
		return 0; /* add_program() has already taken the program */
	return strstr(path, " (deleted)") ? objects_add_missing(set, path, 0) : 0;
}

/* Adds the program of a process by its /proc link, which works even if the file is deleted. */
static int add_program(struct objects *set, pid_t pid, const char *exe)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = regular_open(path);
	ret = fd < 0 ? 0 : objects_add_fd(set, fd, exe, 0);
	return ret < 0 ? ret : 0;
}

int objects_load_pid(pid_t pid, struct objects *ret)
{
	char path[64], exe[PATH_MAX];
	struct mapping mapping;
	struct maps maps;
	size_t lines = 0;
	ssize_t n;
	int err;

	memset(ret, 0, sizeof(*ret));
	pid = tasks_living(pid);
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	exe[n] = '\0';
	err = maps_open(pid, "maps", &maps);
	if (err)
		return err;
	if (asprintf(&ret->root, "/proc/%d/root", pid) < 0)
		ret->root = NULL;
	/* Use plain paths if the process has the same root as this one. */
	if (ret->root) {
		struct stat a, b;

		if (!stat(ret->root, &a) && !stat("/", &b) && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino)
			ret->root[0] = '\0';
	}
	if (ret->root)
		err = add_program(ret, pid, exe);
	while (ret->root && !err && lines++ < MAX_MAPS_LINES && maps_next(&maps, &mapping))
		err = add_mapping(ret, &mapping);
	if (maps_close(&maps))
		err = -EIO;
	if (!ret->root)
		err = -ENOMEM;
	else if (!err && !ret->n)
		err = -ENOENT;
	if (err)
		objects_deinit(ret);
	else
		program_first(ret, exe);
	return err;
}

const char *objects_error(const char *path, int err)
{
	if (err == -ENOEXEC)
		return "not an ELF program of a known kind";
	if (err == -ENOENT && path && !access(path, F_OK))
		return "the interpreter that its first line names was not found";
	return strerror(-err);
}
