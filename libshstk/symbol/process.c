// SPDX-License-Identifier: LGPL-2.1-or-later
/* process.c - views of processes: what is mapped where, now and before. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proc_maps.h"
#include "store.h"

#define MAPS_MAX (1u << 18) /* most executable mappings of one process */

static void read_status(struct shstk_symproc *proc)
{
	char path[64], line[256];
	const char *last;
	FILE *file;

	proc->ns_pid = proc->pid;
	proc->uid = (uid_t)-1;
	if (proc->pid <= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/status", proc->pid);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Uid:", 4))
			sscanf(line + 4, "%*u %u", &proc->uid);
		last = strrchr(line, '\t');
		if (!strncmp(line, "NSpid:", 6) && last)
			proc->ns_pid = atoi(last);
	}
	fclose(file);
}

/*
 * Returns when a living process started, in seconds since 1970, or 0. Field 22 of its stat file
 * counts from boot. The name before it may contain anything, also blanks and parentheses.
 */
static int64_t read_start(int pid)
{
	char path[64], text[1024], *at;
	struct timespec now, up;
	uint64_t ticks;
	size_t size;
	FILE *file;
	int field;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = '\0';
	at = strrchr(text, ')');
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%" SCNu64, &ticks) != 1)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return now.tv_sec - up.tv_sec + ticks / sysconf(_SC_CLK_TCK);
}

int shstk_symproc_create(struct shstk_symbols *symbols, int pid, struct shstk_symproc **ret)
{
	struct shstk_symproc *proc = calloc(1, sizeof(*proc));

	if (!proc)
		return -ENOMEM;
	proc->symbols = symbols;
	proc->pid = pid;
	proc->root = shstk_root_get(&symbols->roots, pid);
	if (!proc->root) {
		free(proc);
		return -ENOMEM;
	}
	read_status(proc);
	if (pid > 0)
		proc->started = read_start(pid);
	proc->none.pub = (struct shstk_symmap){
		.proc = proc,
		.kind = SHSTK_SYMMAP_NONE,
		.end = UINT64_MAX,
		.path = "",
		.name = "[unknown]",
	};
	proc->next = symbols->procs;
	symbols->procs = proc;
	*ret = proc;
	return 0;
}

int shstk_symproc_create_past(struct shstk_symbols *symbols, int pid, struct shstk_symproc **ret)
{
	int err = shstk_symproc_create(symbols, 0, ret);

	if (!err)
		(*ret)->pid = (*ret)->ns_pid = pid;
	return err;
}

int shstk_symproc_pid(const struct shstk_symproc *proc)
{
	return proc->pid;
}

int shstk_symproc_set_labels(struct shstk_symproc *proc, const char *labels, size_t size)
{
	char *copy = shstk_pool_alloc(&proc->symbols->pool, size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, labels, size);
	proc->labels = copy;
	proc->labels_size = size;
	proc->labels_serial = 0;
	return 0;
}

void shstk_symproc_destroy(struct shstk_symproc *proc)
{
	shstk_generated_deinit(proc);
	shstk_kernel_destroy(proc->functions);
	free(proc->maps);
	free(proc->former_mappings.v);
	free(proc);
}

static void forget_maps(struct shstk_symproc *proc)
{
	shstk_former_mappings_clear(&proc->former_mappings);
	while (proc->nr)
		shstk_map_put(proc->maps[--proc->nr]);
}

/* Returns the index of the first mapping that ends behind @addr. */
static size_t first_behind(const struct shstk_symproc *proc, uint64_t addr)
{
	size_t lo = 0, hi = proc->nr, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (proc->maps[mid]->pub.end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int make_room(struct shstk_symproc *proc, size_t nr)
{
	struct shstk_map **more;
	size_t max;

	if (nr <= proc->max)
		return 0;
	max = nr < 32 ? 32 : nr + nr / 2;
	more = reallocarray(proc->maps, max, sizeof(*more));
	if (!more)
		return -ENOMEM;
	proc->maps = more;
	proc->max = max;
	return 0;
}

/* Replaces @gone mappings from index @at by @nr others. The caller has made room. */
static void exchange(struct shstk_symproc *proc, size_t at, size_t gone, struct shstk_map **with,
		     size_t nr)
{
	size_t i;

	proc->changes++;
	for (i = 0; i < gone; i++)
		shstk_former_mappings_add(&proc->former_mappings, proc->maps[at + i]);
	memmove(proc->maps + at + nr, proc->maps + at + gone,
		(proc->nr - at - gone) * sizeof(*proc->maps));
	if (nr)
		memcpy(proc->maps + at, with, nr * sizeof(*with));
	proc->nr += nr - gone;
}

/* Puts @map, or nothing, in place of all that is between @start and @end. Returns 0 or -ENOMEM. */
static int replace(struct shstk_symproc *proc, uint64_t start, uint64_t end, struct shstk_map *map)
{
	struct shstk_map *with[3], *first, *last;
	size_t at = first_behind(proc, start), stop, nr = 0;

	for (stop = at; stop < proc->nr; stop++)
		if (proc->maps[stop]->pub.start >= end)
			break;
	if (make_room(proc, proc->nr + 2))
		return -ENOMEM;
	if (stop > at) {
		first = proc->maps[at];
		if (first->pub.start < start) {
			with[nr] = shstk_map_copy(proc, first, first->pub.start, start);
			if (!with[nr++])
				return -ENOMEM;
		}
	}
	if (map)
		with[nr++] = map;
	if (stop > at) {
		last = proc->maps[stop - 1];
		if (last->pub.end > end) {
			with[nr] = shstk_map_copy(proc, last, end, last->pub.end);
			if (!with[nr++])
				return -ENOMEM;
		}
	}
	exchange(proc, at, stop - at, with, nr);
	return 0;
}

int shstk_symproc_add(struct shstk_symproc *proc, const struct shstk_symmap_info *info)
{
	struct shstk_map *map;

	if (info->start >= info->end)
		return -EINVAL;
	if (proc->nr >= MAPS_MAX)
		return -ENOMEM;
	map = shstk_map_create(proc, info);
	return map ? replace(proc, info->start, info->end, map) : -ENOMEM;
}

int shstk_symproc_remove(struct shstk_symproc *proc, uint64_t start, uint64_t end)
{
	if (start >= end)
		return 0;
	if (start || end != UINT64_MAX)
		return replace(proc, start, end, NULL);
	proc->changes++;
	forget_maps(proc);
	proc->parent = NULL;
	shstk_generated_forget(proc);
	return 0;
}

void shstk_symproc_end(struct shstk_symproc *proc)
{
	shstk_generated_end(proc);
	forget_maps(proc);
	free(proc->maps);
	proc->maps = NULL;
	proc->max = 0;
}

int shstk_symproc_fork(struct shstk_symproc *parent, int pid, struct shstk_symproc **ret)
{
	struct shstk_symproc *proc;
	struct shstk_map *map;
	size_t i;
	int err;

	err = shstk_symproc_create(parent->symbols, pid, &proc);
	if (err)
		return err;
	/* A child that has ended already had its parent's root and user. */
	if (proc->uid == (uid_t)-1) {
		proc->root = parent->root;
		proc->uid = parent->uid;
	}
	if (make_room(proc, parent->nr))
		return -ENOMEM;
	for (i = 0; i < parent->nr; i++) {
		map = parent->maps[i];
		map = shstk_map_copy(proc, map, map->pub.start, map->pub.end);
		if (!map)
			return -ENOMEM;
		proc->maps[proc->nr++] = map;
	}
	proc->parent = parent;
	*ret = proc;
	return 0;
}

static struct shstk_map *same_map(const struct shstk_symproc *proc,
				  const struct shstk_symmap_info *info)
{
	size_t at = first_behind(proc, info->start);
	const struct shstk_symmap *pub;
	const char *path;

	if (at == proc->nr)
		return NULL;
	pub = &proc->maps[at]->pub;
	if (pub->start != info->start || pub->end != info->end || pub->offset != info->offset ||
	    proc->maps[at]->dev != info->dev || proc->maps[at]->inode != info->inode)
		return NULL;
	/* The deletion of a mapped file does not change what is mapped. */
	path = shstk_pool_text(&proc->symbols->pool, info->path, shstk_map_path_length(info->path));
	return path == pub->path ? proc->maps[at] : NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct shstk_map *x = *(struct shstk_map *const *)a;
	const struct shstk_map *y = *(struct shstk_map *const *)b;

	return x->pub.start < y->pub.start ? -1 : x->pub.start > y->pub.start;
}

static int by_address(const void *a, const void *b)
{
	const struct shstk_map *x = *(struct shstk_map *const *)a;
	const struct shstk_map *y = *(struct shstk_map *const *)b;

	return x < y ? -1 : x > y;
}

/*
 * Sorts mappings, and drops those that overlap an earlier one, which no kernel writes. Returns how
 * many are left.
 */
static size_t make_disjoint(struct shstk_map **maps, size_t nr)
{
	size_t from, to = 0;

	if (!nr)
		return 0;
	qsort(maps, nr, sizeof(*maps), by_start);
	for (from = 1; from < nr; from++)
		if (maps[from]->pub.start >= maps[to]->pub.end)
			maps[++to] = maps[from];
	return to + 1;
}

/*
 * Moves the old mappings that are not among the new ones to the former ones. Returns 0 or -ENOMEM.
 */
static int retire_missing(struct shstk_symproc *proc, struct shstk_map **maps, size_t nr)
{
	struct shstk_map **kept = calloc(nr ? nr : 1, sizeof(*kept));
	size_t i;

	if (!kept)
		return -ENOMEM;
	if (nr)
		memcpy(kept, maps, nr * sizeof(*kept));
	qsort(kept, nr, sizeof(*kept), by_address);
	for (i = 0; i < proc->nr; i++)
		if (!bsearch(proc->maps + i, kept, nr, sizeof(*kept), by_address))
			shstk_former_mappings_add(&proc->former_mappings, proc->maps[i]);
	free(kept);
	return 0;
}

int shstk_symproc_set_maps(struct shstk_symproc *proc, const char *text, size_t size)
{
	const char *end = text + size;
	struct shstk_map **maps = NULL, **more, *map;
	struct shstk_symmap_info info;
	size_t nr = 0, max = 0;
	char path[PATH_MAX + 16];

	while (nr < MAPS_MAX && shstk_maps_next(&text, end, &info, path)) {
		more = shstk_grow(maps, nr, &max, sizeof(*maps));
		if (!more)
			goto no_memory;
		maps = more;
		map = same_map(proc, &info);
		if (!map)
			map = shstk_map_create(proc, &info);
		if (!map)
			goto no_memory;
		maps[nr++] = map;
	}
	nr = make_disjoint(maps, nr);
	if (retire_missing(proc, maps, nr))
		goto no_memory;
	proc->changes++;
	free(proc->maps);
	proc->maps = maps;
	proc->nr = nr;
	proc->max = max;
	return nr;

no_memory:
	free(maps);
	return -ENOMEM;
}

int shstk_symproc_read_maps(struct shstk_symproc *proc)
{
	ssize_t size;
	char *text;
	int ret;

	size = shstk_maps_read(proc->pid, &text);
	if (size < 0)
		return size;
	ret = shstk_symproc_set_maps(proc, text, size);
	free(text);
	return ret;
}

const struct shstk_symmap *shstk_symproc_find(struct shstk_symproc *proc, uint64_t pc)
{
	size_t at = first_behind(proc, pc);
	const struct shstk_symmap *kernel;
	struct shstk_map *map;

	if (at < proc->nr && proc->maps[at]->pub.start <= pc)
		map = proc->maps[at];
	else
		map = shstk_former_mappings_find(&proc->former_mappings, pc);
	if (map) {
		map->found = true;
		return &map->pub;
	}
	if (pc >> 63 && proc->symbols->opts.kernel) {
		kernel = shstk_kernel_map(proc->symbols);
		if (kernel)
			return kernel;
	}
	return &proc->none.pub;
}
