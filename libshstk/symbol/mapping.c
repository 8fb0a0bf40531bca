// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * mapping.c - a mapping and the file behind it.
 *
 * A file is opened when its mapping is first reported, because it may be gone when its first
 * address is looked up; it is read at that first lookup. Files are told apart by device and inode
 * number, which stay the same file's while the file is open.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hash.h"
#include "store.h"

#define VDSO_MAX (64u * 1024)
#define DELETED " (deleted)"

/* Most bytes in paths of one process, and of all processes. Mappings beyond that have no name. */
#define PATHS_OF_ONE (1u << 20)
#define PATHS_OF_ALL (256u << 20)

struct object_key {
	uint64_t dev;
	uint64_t ino;
};

struct object_entry {
	UT_hash_handle hh;
	struct object_key key;
	struct shstk_object *object;
};

struct image_entry {
	struct image_entry *next;
	struct shstk_object *object;
	const void *image;
	size_t size;
};

size_t shstk_map_path_length(const char *path)
{
	size_t n = strlen(path), m = strlen(DELETED);

	return n >= m && !strcmp(path + n - m, DELETED) ? n - m : n;
}

/*
 * Returns whether a path can name a file. Shared memory and the like have a path that names none.
 */
static bool is_file_path(const char *path)
{
	return path[0] == '/' && path[1] != '/' && strncmp(path, "/memfd:", 7) &&
	       strncmp(path, "/SYSV", 5) && strncmp(path, "/dev/zero", 9) &&
	       strncmp(path, "/[aio]", 6);
}

static int open_mapped(const struct shstk_symproc *proc, uint64_t start, uint64_t end)
{
	struct shstk_root ours = { .fd = -1 };
	char path[96];

	if (proc->pid <= 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", shstk_living_thread(proc->pid),
		 (unsigned long long)start, (unsigned long long)end);
	return shstk_root_open(&ours, path, 0);
}

/*
 * Opens the file of that name in this process's root, if it is the very file that is mapped.
 * Returns a descriptor or a negative errno.
 */
static int open_here(const char *path, const struct shstk_symmap_info *info)
{
	struct shstk_root ours = { .fd = -1 };
	int fd = info->inode ? shstk_root_open(&ours, path, 0) : -ENOENT;
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && st.st_ino == info->inode && st.st_dev == info->dev))
		return fd;
	close(fd);
	return -ESTALE;
}

static struct object_entry *find_object(struct shstk_symbols *symbols, const struct object_key *key)
{
	struct object_entry *entry;

	HASH_FIND(hh, symbols->objects, key, sizeof(*key), entry);
	return entry;
}

static bool add_object(struct shstk_symbols *symbols, const struct object_key *key,
		       struct shstk_object *object)
{
	struct object_entry *entry;

	entry = shstk_pool_alloc(&symbols->pool, sizeof(*entry));
	if (!entry)
		return false;
	entry->key = *key;
	entry->object = object;
	HASH_ADD(hh, symbols->objects, key, sizeof(entry->key), entry);
	return entry->hh.tbl;
}

/*
 * Returns whether few descriptors are left. The kernel gives the lowest free number, so it checks
 * whether @fd is among the last. An object keeps its file open, and other code needs some
 * descriptors for a moment: to unwind, and to write the profile.
 */
static bool few_left(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) &&
	       (rlim_t)fd >= limit.rlim_cur - limit.rlim_cur / 8;
}

/* Returns the object of an open file, which is taken over; NULL if it cannot be had. */
static struct shstk_object *object_of_fd(struct shstk_symproc *proc, int fd, const char *path,
					 const char *name)
{
	struct shstk_symbols *symbols = proc->symbols;
	struct shstk_object *object;
	struct object_entry *entry;
	struct object_key key;
	struct stat st;

	if (fstat(fd, &st)) {
		close(fd);
		return NULL;
	}
	key = (struct object_key){ st.st_dev, st.st_ino };
	entry = find_object(symbols, &key);
	if (entry || few_left(fd)) {
		close(fd);
		return entry ? entry->object : NULL;
	}
	object = shstk_object_create(&symbols->pool, fd, proc->root, path, name, &symbols->opts,
				     &symbols->budget);
	if (object && !add_object(symbols, &key, object)) {
		shstk_object_destroy(object);
		return NULL;
	}
	return object;
}

static struct shstk_object *object_of_image(struct shstk_symbols *symbols, const void *image,
					    size_t size, const char *name)
{
	struct image_entry *entry;
	void *copy;

	for (entry = symbols->images; entry; entry = entry->next)
		if (entry->size == size && !memcmp(entry->image, image, size))
			return entry->object;
	entry = shstk_pool_alloc(&symbols->pool, sizeof(*entry));
	copy = shstk_pool_alloc(&symbols->pool, size);
	if (!entry || !copy)
		return NULL;
	entry->object = shstk_object_create_image(&symbols->pool, image, size, name, &symbols->opts,
						  &symbols->budget);
	if (!entry->object)
		return NULL;
	entry->image = memcpy(copy, image, size);
	entry->size = size;
	entry->next = symbols->images;
	symbols->images = entry;
	return entry->object;
}

/*
 * Returns the object of a living process's vdso. For a dead process it is this process's vdso, if
 * that has the same size: there is one per kernel and instruction set.
 */
static struct shstk_object *vdso_object(struct shstk_symproc *proc, uint64_t start, uint64_t end)
{
	size_t size = end - start < VDSO_MAX ? end - start : VDSO_MAX;
	struct iovec remote = { (void *)(uintptr_t)start, size };
	char buf[VDSO_MAX];
	struct iovec local = { buf, size };
	uintptr_t own = getauxval(AT_SYSINFO_EHDR);
	ssize_t n = -1;

	if (proc->pid > 0)
		n = process_vm_readv(proc->pid, &local, 1, &remote, 1, 0);
	if (n != (ssize_t)size && own) {
		/* A read of this process's own memory in the same way cannot fault. */
		remote.iov_base = (void *)own;
		n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	}
	if (n != (ssize_t)size)
		return NULL;
	return object_of_image(proc->symbols, buf, size, "[vdso]");
}

void shstk_objects_destroy(struct shstk_symbols *symbols)
{
	struct object_entry *entry, *tmp;
	struct image_entry *image;

	HASH_ITER(hh, symbols->objects, entry, tmp)
	shstk_object_destroy(entry->object);
	HASH_CLEAR(hh, symbols->objects);
	for (image = symbols->images; image; image = image->next)
		shstk_object_destroy(image->object);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/*
 * Returns whether a mapping may keep its path, and counts its bytes. Anybody can map files of any
 * number of names, over and over.
 */
static bool may_name(struct shstk_symproc *proc, const char *path, size_t len)
{
	struct shstk_symbols *symbols = proc->symbols;

	if (shstk_pool_has(&symbols->pool, path, len))
		return true;
	if (len > PATHS_OF_ONE - proc->path_bytes || len > PATHS_OF_ALL - symbols->path_bytes)
		return false;
	proc->path_bytes += len;
	symbols->path_bytes += len;
	return true;
}

static bool set_names(struct shstk_map *map, const char *path)
{
	struct shstk_pool *pool = &map->pub.proc->symbols->pool;
	size_t len = shstk_map_path_length(path);
	const char *name = base_name(path);

	map->pub.path = shstk_pool_text(pool, path, len);
	map->pub.name = *path ? shstk_pool_text(pool, name, path + len - name) : "[anon]";
	return map->pub.path && map->pub.name;
}

static bool id_matches(struct shstk_object *object, const void *id, size_t size)
{
	const uint8_t *found;

	return shstk_object_build_id(object, &found) == size && !memcmp(found, id, size);
}

/* Finds the file behind a mapping, and sets the kind of the mapping. */
static void attach(struct shstk_map *map, const struct shstk_symmap_info *info)
{
	struct shstk_symproc *proc = map->pub.proc;
	const char *path = info->path ? info->path : "";
	bool gone = path[shstk_map_path_length(path)];
	int fd = -ENOENT;

	if (info->image && info->image_size) {
		map->pub.kind = SHSTK_SYMMAP_VDSO;
		map->object = object_of_image(proc->symbols, info->image, info->image_size,
					      map->pub.name);
		return;
	}
	if (!strcmp(path, "[vdso]")) {
		map->pub.kind = SHSTK_SYMMAP_VDSO;
		map->object = vdso_object(proc, info->start, info->end);
		return;
	}
	if (*path != '/' || path[1] == '/')
		return;
	if (is_file_path(path)) {
		map->pub.kind = SHSTK_SYMMAP_FILE;
		/* A name may really end in " (deleted)": then there is such a file. */
		fd = shstk_root_open(proc->root, path, 0);
	}
	/*
	 * /proc/PID/maps shows names from this process's root, also where the process's root is a
	 * folder below it.
	 */
	if (fd < 0 && !gone && map->pub.kind == SHSTK_SYMMAP_FILE)
		fd = open_here(path, info);
	if (fd < 0)
		fd = open_mapped(proc, info->start, info->end);
	if (fd < 0 && map->pub.kind == SHSTK_SYMMAP_FILE)
		fd = shstk_remote_open(proc->symbols, proc->pid, info->start);
	if (fd >= 0)
		map->object = object_of_fd(proc, fd, path, map->pub.name);
	if (map->object && info->build_id_size &&
	    !id_matches(map->object, info->build_id, info->build_id_size))
		map->object = NULL;
	if (map->object && map->pub.kind == SHSTK_SYMMAP_ANON) {
		if (shstk_object_valid(map->object))
			map->pub.kind = SHSTK_SYMMAP_FILE;
		else
			map->object = NULL;
	}
}

static struct shstk_map *get(struct shstk_symbols *symbols)
{
	struct shstk_map *map = symbols->spare;

	if (!map)
		return shstk_pool_alloc(&symbols->pool, sizeof(*map));
	symbols->spare = map->next;
	memset(map, 0, sizeof(*map));
	return map;
}

void shstk_map_put(struct shstk_map *map)
{
	struct shstk_symbols *symbols = map->pub.proc->symbols;

	if (map->found)
		return;
	map->next = symbols->spare;
	symbols->spare = map;
}

struct shstk_map *shstk_map_create(struct shstk_symproc *proc, const struct shstk_symmap_info *info)
{
	struct shstk_pool *pool = &proc->symbols->pool;
	const char *path = info->path ? info->path : "";
	bool named = may_name(proc, path, shstk_map_path_length(path));
	struct shstk_map *map = get(proc->symbols);
	uint8_t *id;

	if (!map)
		return NULL;
	map->pub.proc = proc;
	map->pub.start = info->start;
	map->pub.end = info->end;
	map->pub.offset = info->offset;
	map->dev = info->dev;
	map->inode = info->inode;
	if (!set_names(map, named ? path : ""))
		return NULL;
	map->pub.kind = SHSTK_SYMMAP_ANON;
	if (!named)
		return map;
	if (info->build_id && info->build_id_size) {
		id = shstk_pool_alloc(pool, info->build_id_size);
		if (!id)
			return NULL;
		map->pub.build_id = memcpy(id, info->build_id, info->build_id_size);
		map->pub.build_id_size = info->build_id_size;
	}
	attach(map, info);
	return map;
}

/*
 * Copies a part of a mapping, or a mapping for another process. Returns NULL when memory runs out.
 */
struct shstk_map *shstk_map_copy(struct shstk_symproc *proc, const struct shstk_map *map,
				 uint64_t start, uint64_t end)
{
	struct shstk_map *copy;

	copy = get(proc->symbols);
	if (!copy)
		return NULL;
	*copy = *map;
	copy->next = NULL;
	copy->pieces = 0;
	copy->found = false;
	copy->pub.proc = proc;
	copy->pub.start = start;
	copy->pub.end = end;
	copy->pub.offset = map->pub.offset + (start - map->pub.start);
	return copy;
}

size_t shstk_symbols_missing(const struct shstk_symbols *symbols, const char **first)
{
	const char *of_object = NULL;
	struct object_entry *entry;
	size_t nr = 0;

	*first = NULL;
	for (entry = symbols->objects; entry; entry = entry->hh.next) {
		nr += shstk_object_missing(entry->object, &of_object);
		if (!*first)
			*first = of_object;
	}
	return nr;
}

size_t shstk_symbols_lost(const struct shstk_symbols *symbols, const char **name,
			  const char **debug)
{
	const char *lost, *of_object;
	struct object_entry *entry;
	size_t nr = 0;

	*name = *debug = NULL;
	for (entry = symbols->objects; entry; entry = entry->hh.next) {
		lost = shstk_object_lost(entry->object, &of_object);
		nr += lost != NULL;
		if (!lost || *debug)
			continue;
		*name = of_object;
		*debug = lost;
	}
	return nr;
}

void shstk_symmap_build_id(struct shstk_symbols *symbols, const struct shstk_symmap *pub)
{
	struct shstk_map *map = (struct shstk_map *)pub;

	(void)symbols;
	if (!pub->build_id && map->object)
		map->pub.build_id_size = shstk_object_build_id(map->object, &map->pub.build_id);
}

void shstk_symmap_htlhash(const struct shstk_symmap *pub)
{
	struct shstk_map *map = (struct shstk_map *)pub;

	if (!pub->htlhash && map->object)
		map->pub.htlhash = shstk_object_htlhash(map->object);
}
