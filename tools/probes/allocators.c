// SPDX-License-Identifier: GPL-2.0-or-later
/* allocators.c - find the allocators of a process. See allocators.h. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "tools/elf/functions.h"
#include "tools/probes/allocators.h"
#include "tools/proc/maps.h"

#define MAX_FILES 4096
#define MAX_FUNCTIONS 256
#define LOADER_TELLS "_dl_debug_state" /* of glibc and musl: <link.h> */

/* Prefixes of C's allocation functions, in libraries and where allocators are linked in. */
static const char *const prefixes[] = { "", "je_", "rje_", "_rjem_", "mi_", "tc_", "rp" };

static const struct known {
	const char *name;
	enum probe_kind kind;
} c_functions[] = {
	{ "malloc", PROBE_SIZE },
	{ "calloc", PROBE_COUNT_SIZE },
	{ "realloc", PROBE_REALLOC },
	{ "reallocarray", PROBE_REALLOC_ARRAY },
	{ "free", PROBE_FREE },
	{ "cfree", PROBE_FREE },
	{ "memalign", PROBE_ALIGN_SIZE },
	{ "aligned_alloc", PROBE_ALIGN_SIZE },
	{ "posix_memalign", PROBE_POINTER },
	{ "valloc", PROBE_SIZE },
	{ "pvalloc", PROBE_SIZE },
	/* These are jemalloc's; mimalloc and tcmalloc have none of these names. */
	{ "mallocx", PROBE_SIZE },
	{ "rallocx", PROBE_REALLOC },
	{ "dallocx", PROBE_FREE },
	{ "sdallocx", PROBE_FREE },
};

/*
 * operator new and delete. Their further arguments follow the ones in these names and do not
 * matter.
 */
static const struct known cxx_functions[] = {
	{ "_Znwm", PROBE_SIZE },
	{ "_Znam", PROBE_SIZE },
	{ "_ZdlPv", PROBE_FREE },
	{ "_ZdaPv", PROBE_FREE },
};

/**
 * struct looking - a file that is being searched
 * @found: receives the functions of the file.
 * @before: number of functions of other files.
 * @file: index of the file.
 * @allocates: the file has a malloc().
 * @frees: the file has a free().
 * @loads: the file is the loader.
 */
struct looking {
	struct allocators *found;
	size_t before;
	unsigned int file;
	bool allocates;
	bool frees;
	bool loads;
};

static const struct known *find_c(const char *name)
{
	for (size_t p = 0; p < sizeof(prefixes) / sizeof(*prefixes); p++) {
		size_t length = strlen(prefixes[p]);

		if (strncmp(name, prefixes[p], length))
			continue;
		for (size_t i = 0; i < sizeof(c_functions) / sizeof(*c_functions); i++)
			if (!strcmp(name + length, c_functions[i].name))
				return &c_functions[i];
	}
	return NULL;
}

static const struct known *find_cxx(const char *name)
{
	for (size_t i = 0; i < sizeof(cxx_functions) / sizeof(*cxx_functions); i++)
		if (!strncmp(name, cxx_functions[i].name, strlen(cxx_functions[i].name)))
			return &cxx_functions[i];
	return NULL;
}

static int add(struct looking *l, enum probe_kind kind, uint64_t offset)
{
	struct allocators *a = l->found;
	struct allocator_function *more;

	/* Most functions have several names. */
	for (size_t i = l->before; i < a->nr; i++)
		if (a->functions[i].offset == offset)
			return 0;
	if (a->nr - l->before >= MAX_FUNCTIONS)
		return 0;
	if (a->nr == a->max) {
		more = reallocarray(a->functions, a->max + 64, sizeof(*more));
		if (!more)
			return -ENOMEM;
		a->functions = more;
		a->max += 64;
	}
	a->functions[a->nr++] = (struct allocator_function){ l->file, offset, kind };
	return 0;
}

/*
 * Returns true for placement new and delete, which neither allocate nor free. Their last argument
 * is the address.
 */
static bool is_placement(const char *name)
{
	return !strcmp(name + strlen(name) - 2, name[2] == 'n' ? "Pv" : "S_");
}

/* Takes the function by which the loader tells that it has mapped or removed libraries. */
static int take_loader(struct looking *l, uint64_t offset)
{
	l->loads = true;
	l->found->has_loader = true;
	l->found->loader = (struct allocator_function){ l->file, offset, PROBE_LOADER };
	return 0;
}

static int take_function(void *arg, const char *name, uint64_t offset)
{
	const struct known *known = find_c(name);
	struct looking *l = arg;

	if (!l->found->has_loader && !strcmp(name, LOADER_TELLS))
		return take_loader(l, offset);
	if (known) {
		l->allocates |= known == &c_functions[0];
		l->frees |= !strcmp(known->name, "free");
	} else if (!strncmp(name, "_Z", 2) && !is_placement(name)) {
		known = find_cxx(name);
	}
	return known ? add(l, known->kind, offset) : 0;
}

/*
 * Opens the file of a mapping. Tries map_files first, which has deleted files, too, but needs
 * privileges; then the path below the root of the process. Sets @path to the path that worked.
 * Returns a descriptor or a negative errno.
 */
static int open_mapped(pid_t pid, const struct mapping *m, char *path, size_t size)
{
	int fd;

	snprintf(path, size, "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)m->start,
		 (unsigned long long)m->end);
	fd = regular_open(path);
	if (fd >= 0)
		return fd;
	snprintf(path, size, "/proc/%d/root%s", (int)pid, m->path);
	return regular_open(path);
}

static int keep_path(struct allocators *a, const char *path)
{
	char **more = reallocarray(a->files, a->nr_files + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	a->files = more;
	more[a->nr_files] = strdup(path);
	return more[a->nr_files++] ? 0 : -ENOMEM;
}

static int find_in_file(struct allocators *a, pid_t pid, const struct mapping *m)
{
	struct looking l = { .found = a, .before = a->nr, .file = a->nr_files };
	char path[PATH_MAX + 64];
	int fd = open_mapped(pid, m, path, sizeof(path)), ret;

	if (fd < 0)
		return 0;
	ret = functions_find(fd, take_function, &l);
	close(fd);
	if (ret || !l.allocates || !l.frees)
		a->nr = l.before;
	if (ret && l.loads)
		a->has_loader = false;
	return !ret && (a->nr > l.before || l.loads) ? keep_path(a, path) : ret;
}

/* Returns true if the file of a mapping was already searched, or if there are too many files. */
static bool is_seen(uint64_t seen[][2], size_t *nr, const struct mapping *m)
{
	for (size_t i = 0; i < *nr; i++)
		if (seen[i][0] == m->dev && seen[i][1] == m->inode)
			return true;
	if (*nr == MAX_FILES)
		return true;
	seen[*nr][0] = m->dev;
	seen[(*nr)++][1] = m->inode;
	return false;
}

static int find_in_maps(struct allocators *a, struct maps *maps, pid_t pid, uint64_t seen[][2])
{
	bool foreign = false;
	struct mapping m;
	size_t nr = 0;

	while (maps_next(maps, &m)) {
		int err;

		if (!m.exec || !m.inode || *m.path != '/' || is_seen(seen, &nr, &m))
			continue;
		err = find_in_file(a, pid, &m);
		foreign |= err == -ENOEXEC;
		if (err && err != -ENOEXEC)
			return err;
	}
	return a->nr ? 0 : foreign ? -ENOEXEC : -ENODATA;
}

int allocators_find(pid_t pid, struct allocators *ret)
{
	uint64_t(*seen)[2] = calloc(MAX_FILES, sizeof(*seen));
	struct maps maps;
	int err;

	*ret = (struct allocators){ .nr = 0 };
	if (!seen)
		return -ENOMEM;
	err = maps_open(pid, "maps", &maps);
	if (!err) {
		err = find_in_maps(ret, &maps, pid, seen);
		maps_close(&maps);
	}
	free(seen);
	return err;
}

void allocators_deinit(struct allocators *a)
{
	for (size_t i = 0; i < a->nr_files; i++)
		free(a->files[i]);
	free(a->files);
	free(a->functions);
	*a = (struct allocators){ .nr = 0 };
}
