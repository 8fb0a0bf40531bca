// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * living_files.c - finds and opens the files that living processes have mapped. See living_files.h.
 *
 * A file is opened as the process sees it: by /proc/PID/map_files, which also has deleted files but
 * needs privileges, or below /proc/PID/root. The process may be gone when the recorder comes to
 * look. Then a file of the same name in our own view is taken, if it is the same by its inode
 * number.
 *
 * Most programs share their files, so these files are kept open, by device and inode number as the
 * kernel tells them for mappings. A file that is found through a process may not be the one that
 * the process had mapped when the kernel told of it. Such a file is not kept, because other
 * processes would get it instead of theirs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/file_rules.h"
#include "libshstk/regular.h"
#include "libshstk/symbol/budget.h"
#include "tools/convert/holes.h"
#include "tools/convert/living_files.h"
#include "tools/perf/regs.h"
#include "tools/proc/maps.h"
#include "tools/proc/tasks.h"
#include "tools/shstk.h"

#define MAX_KEPT 4096
#define VDSO_HEAD 4096 /* bytes of the vdso in which its notes are */

/* Identifies the file of a mapping. */
struct kept_key {
	uint64_t dev;
	uint64_t inode;
};

/* A file that stays open, and its state when it was opened, as it may be written to. */
struct open_file {
	UT_hash_handle hh;
	struct kept_key key;
	int fd;
	off_t size;
	struct timespec changed;
};

struct live {
	struct mappings_files files;
	struct shstk_symbols *symbols;
	struct open_file *kept;
	uint64_t vdso_size;
	dev_t blind; /* device whose mappings have other numbers than stat(2) tells */
};

static bool is_unchanged(const struct open_file *k)
{
	struct stat st;

	return !fstat(k->fd, &st) && st.st_size == k->size &&
	       st.st_mtim.tv_sec == k->changed.tv_sec && st.st_mtim.tv_nsec == k->changed.tv_nsec;
}

static void forget(struct live *live, struct open_file *k)
{
	HASH_DEL(live->kept, k);
	close(k->fd);
	free(k);
}

static struct open_file *find_kept(struct live *live, const struct mappings_map *map)
{
	struct kept_key key = { map->dev, map->inode };
	struct open_file *k;

	HASH_FIND(hh, live->kept, &key, sizeof(key), k);
	if (!k || is_unchanged(k))
		return k;
	forget(live, k);
	return NULL;
}

/*
 * Returns whether a mapping of the file has the numbers of @map. On overlays and on btrfs these
 * differ from those of stat(2), so the file is mapped to find out.
 */
static bool is_mapped_as(int fd, const struct mappings_map *map)
{
	void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	bool same = false, found = false;
	struct mapping m;
	struct maps maps;

	if (page == MAP_FAILED)
		return false;
	if (!maps_open(getpid(), "maps", &maps)) {
		while (!found && maps_next(&maps, &m))
			found = m.start <= (uintptr_t)page && (uintptr_t)page < m.end;
		same = found && m.inode == map->inode && m.dev == map->dev;
		maps_close(&maps);
	}
	munmap(page, 1);
	return same;
}

/* Returns whether @fd is the file that was mapped. */
static bool is_same(struct live *live, int fd, const struct mappings_map *map)
{
	struct stat st;

	if (!map->inode || fstat(fd, &st))
		return false;
	if (st.st_ino == map->inode && st.st_dev == map->dev)
		return true;
	if (live && live->blind == st.st_dev)
		return false;
	if (is_mapped_as(fd, map))
		return true;
	if (live)
		live->blind = st.st_dev;
	return false;
}

/*
 * Returns whether half of all file descriptors are in use, as others need some too. They are given
 * out from 0 on.
 */
static bool many_taken(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd >= limit.rlim_cur / 2;
}

static bool keep(struct live *live, const struct mappings_map *map, int fd)
{
	struct open_file *k;
	struct stat st;

	if (HASH_COUNT(live->kept) >= MAX_KEPT || many_taken(fd) || !is_same(live, fd, map) ||
	    fstat(fd, &st))
		return false;
	k = calloc(1, sizeof(*k));
	if (!k)
		return false;
	k->key = (struct kept_key){ map->dev, map->inode };
	k->fd = fd;
	k->size = st.st_size;
	k->changed = st.st_mtim;
	HASH_ADD(hh, live->kept, key, sizeof(k->key), k);
	if (k->hh.tbl)
		return true;
	free(k);
	return false;
}

/*
 * Opens the file of that name in our own view, if it is the same file. Returns a file descriptor or
 * a negative errno.
 */
static int open_same(struct live *live, const struct mappings_map *map)
{
	int fd = regular_open(map->path);

	if (fd < 0 || is_same(live, fd, map))
		return fd;
	close(fd);
	return -ESTALE;
}

/* Does what live_open() does. @live is what is known of files, or NULL. */
static int open_mapped(struct live *live, struct shstk_symbols *symbols, pid_t pid,
		       const struct mappings_map *map)
{
	int fd = regular_open_mapped(pid, map->start, map->end, map->path);
	pid_t other = fd < 0 ? tasks_other(pid) : 0;

	if (other)
		fd = regular_open_mapped(other, map->start, map->end, map->path);
	if (fd < 0)
		fd = open_same(live, map);
	/*
	 * A file that an ordinary user may not open any more can be read from the process's memory.
	 */
	return fd < 0 && mappings_is_file(map->path) ? shstk_remote_open(symbols, pid, map->start) :
						       fd;
}

int live_open(struct shstk_symbols *symbols, pid_t pid, const struct mappings_map *map)
{
	return open_mapped(NULL, symbols, pid, map);
}

static int add_fd(struct shstk_space *space, int fd, const struct mappings_map *map)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return shstk_space_add_file(space, path, map->start, map->end, map->offset);
}

/*
 * Adds our own vdso to @space. All processes have the same one, unless its length differs, as in
 * 32-bit processes.
 */
static int add_vdso(const struct live *live, struct shstk_space *space,
		    const struct mappings_map *map)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (!vdso || live->vdso_size != map->end - map->start)
		return -ENOENT;
	return shstk_space_add_image(space, vdso, live->vdso_size, map->start);
}

static int add_code(void *arg, pid_t pid, struct shstk_space *space, const struct mappings_map *map)
{
	struct live *live = arg;
	struct open_file *kept;
	int fd, err;

	if (!strcmp(map->path, "[vdso]"))
		return add_vdso(live, space, map);
	if (*map->path != '/' || map->path[1] == '/')
		return -ENOENT;
	kept = find_kept(live, map);
	if (kept)
		return add_fd(space, kept->fd, map);
	fd = open_mapped(live, live->symbols, pid, map);
	if (fd < 0)
		return fd;
	err = add_fd(space, fd, map);
	if (!keep(live, map, fd))
		close(fd);
	return err;
}

static int add_names(void *arg, pid_t pid, struct shstk_symproc *proc,
		     const struct mappings_map *map)
{
	struct shstk_symmap_info info = {
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.path = strncmp(map->path, "//", 2) ? map->path : "",
		.build_id = map->id.size ? map->id.data : NULL,
		.build_id_size = map->id.size,
		.dev = map->dev,
		.inode = map->inode,
	};

	(void)arg;
	(void)pid;
	return shstk_symproc_add(proc, &info) == -ENOMEM ? -ENOMEM : 0;
}

static int read_memory(void *arg, pid_t pid, uint64_t addr, void *buf, size_t size)
{
	struct iovec here = { buf, size }, there = { (void *)(uintptr_t)addr, size };
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	(void)arg;
	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

static int open_file(void *arg, pid_t pid, const struct mappings_map *map)
{
	struct live *live = arg;

	return open_mapped(live, live->symbols, pid, map);
}

static struct shstk_account *account_of(void *arg, pid_t pid)
{
	const struct live *live = arg;

	return shstk_symbols_process_account(live->symbols, pid);
}

struct live *live_create(struct shstk_symbols *symbols)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->files = (struct mappings_files){
		.arch = perf_regs_arch(),
		.arg = live,
		.add = add_code,
		.name = add_names,
		.read = read_memory,
		.open = open_file,
		.account = account_of,
	};
	/* Without memory, each process has its own. */
	live->files.rules = file_rules_create();
	live->symbols = symbols;
	live->vdso_size = maps_vdso_size();
	return live;
}

void live_renew(struct live *live, struct shstk_symbols *symbols)
{
	live->symbols = symbols;
}

void live_destroy(struct live *live)
{
	struct open_file *k, *next;

	if (!live)
		return;
	HASH_ITER(hh, live->kept, k, next)
	{
		HASH_DEL(live->kept, k);
		close(k->fd);
		free(k);
	}
	file_rules_destroy(live->files.rules);
	free(live);
}

const struct mappings_files *live_files(struct live *live)
{
	return &live->files;
}

uint64_t live_vdso(const struct live *live, struct build_id *id)
{
	if (!live->vdso_size)
		return 0;
	build_id_of((const void *)getauxval(AT_SYSINFO_EHDR), VDSO_HEAD, id);
	return live->vdso_size;
}

struct mappings_map live_map(const struct mapping *m)
{
	return (struct mappings_map){
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.path = (char *)m->path,
		.dev = m->dev,
		.inode = m->inode,
	};
}

/* Where the mappings of a process go that are read. */
struct reading {
	struct shstk_symbols *symbols;
	struct mappings **mappings;
	pid_t pid;
	int (*fn)(void *arg, pid_t pid, const struct mappings_map *map);
	void *arg;
};

/* Takes an executable mapping. Returns 0 or -ENOMEM. */
static int take_mapping(const struct reading *r, const struct mapping *m)
{
	struct mappings_map map = live_map(m);
	int ret;

	if (!strcmp(m->path, "[vdso]") && getauxval(AT_SYSINFO_EHDR))
		build_id_of((const void *)getauxval(AT_SYSINFO_EHDR), VDSO_HEAD, &map.id);
	ret = mappings_add(r->mappings, r->pid, &map);
	if (ret > 0)
		ret = r->fn(r->arg, r->pid, &map);
	return ret < 0 ? ret : 0;
}

/*
 * Takes the executable mappings that the kernel answers. Returns 1, 0 if all lines have to be read: the
 * kernel does not answer, or what lies before a mapping is needed to know what it is; or -ENOMEM.
 */
static int ask_mappings(const struct reading *r, struct maps *maps)
{
	struct mapping m;
	int ret;

	while ((ret = maps_next_code(maps, &m)) > 0) {
		if (holes_may_be(&m))
			return 0;
		ret = take_mapping(r, &m);
		if (ret)
			return ret;
	}
	return !ret;
}

/*
 * If the first thread of a process has ended before others, its list of mappings is empty. Then that of
 * another thread is opened. Returns 0, or a negative errno; then nothing is open.
 */
static int open_other_if_empty(pid_t pid, struct maps *maps)
{
	const int c = fgetc(maps->in);
	pid_t other;

	if (c != EOF) {
		ungetc(c, maps->in);
		return 0;
	}
	other = tasks_other(pid);
	if (!other)
		return 0;
	maps_close(maps);
	return maps_open(other, "maps", maps);
}

/* Takes the executable mappings of all lines. Returns 0 or -ENOMEM. */
static int read_mappings(const struct reading *r, struct maps *maps)
{
	struct holes holes;
	struct mapping m;
	int ret = 0;

	holes_begin(&holes, r->symbols, r->pid);
	while (!ret && maps_next(maps, &m)) {
		holes_look(&holes, &m);
		ret = m.exec ? take_mapping(r, &m) : 0;
	}
	holes_end(&holes);
	return ret;
}

int live_read(struct shstk_symbols *symbols, struct mappings **mappings, pid_t pid,
	      int (*fn)(void *arg, pid_t pid, const struct mappings_map *map), void *arg)
{
	const struct reading r = { symbols, mappings, pid, fn, arg };
	struct maps maps;
	int ret = maps_open(pid, "maps", &maps);

	if (ret)
		return ret;
	ret = ask_mappings(&r, &maps);
	if (!ret) {
		ret = open_other_if_empty(pid, &maps);
		if (ret)
			return ret;
		ret = read_mappings(&r, &maps);
	}
	maps_close(&maps);
	return ret < 0 ? ret : 0;
}
