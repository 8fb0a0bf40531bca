// SPDX-License-Identifier: GPL-2.0-or-later
/* objects.c - a list of ELF files: a program, its interpreter and its libraries. See objects.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/elf/objects.h"

#define MAX_OBJECTS 4096

void objects_deinit(struct objects *set)
{
	for (size_t i = 0; i < set->n; i++)
		object_deinit(&set->v[i]);
	free(set->v);
	strings_free(set->missing);
	free(set->script);
	free(set->root);
	memset(set, 0, sizeof(*set));
}

struct object *objects_push(struct objects *set)
{
	struct object *v;

	if (set->n >= MAX_OBJECTS)
		return NULL;
	if (!(set->n & (set->n - 1))) {
		v = reallocarray(set->v, set->n ? set->n * 2 : 1, sizeof(*v));
		if (!v)
			return NULL;
		set->v = v;
	}
	memset(&set->v[set->n], 0, sizeof(*v));
	return &set->v[set->n];
}

int objects_add_file(struct objects *set, const char *path, const char *name, size_t parent)
{
	int fd = root_open(set->root, path);

	return fd < 0 ? 0 : objects_add_fd(set, fd, name, parent);
}

int objects_add_fd(struct objects *set, int fd, const char *name, size_t parent)
{
	struct object *o = objects_push(set);
	int err;

	if (!o) {
		close(fd);
		return -ENOMEM;
	}
	err = object_read(fd, set->root, o);
	close(fd);
	if (!err && set->n && (o->machine != set->v[0].machine || o->bits != set->v[0].bits))
		err = -ENOEXEC;
	for (size_t i = 0; !err && i < set->n; i++)
		if (!strcmp(set->v[i].path, o->path)) {
			object_deinit(o);
			return 1;
		}
	if (!err) {
		o->name = strdup(name);
		err = o->name ? 0 : -ENOMEM;
	}
	if (err) {
		object_deinit(o);
		return err == -ENOMEM ? err : 0;
	}
	o->parent = parent;
	set->n++;
	return 1;
}

int objects_add_missing(struct objects *set, const char *name, size_t parent)
{
	char *s;

	/* As long as the set is empty, no object can be named that needs this one. */
	if (parent >= set->n)
		s = strdup(name);
	else if (asprintf(&s, "%s (needed by %s)", name, set->v[parent].path) < 0)
		s = NULL;
	if (!s)
		return -ENOMEM;
	return strings_add(&set->missing, &set->missing_n, s);
}

const struct object *objects_find(const struct objects *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++) {
		const char *base = strrchr(set->v[i].path, '/');

		if (!strncmp(base ? base + 1 : set->v[i].path, name, strlen(name)) ||
		    (set->v[i].soname && !strcmp(set->v[i].soname, name)))
			return &set->v[i];
	}
	return NULL;
}

const struct object *objects_blocker(const struct objects *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (!set->v[i].marked)
			return &set->v[i];
	return NULL;
}
