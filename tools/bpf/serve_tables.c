// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * serve_tables.c - make the tables that the BPF walk asks for. See serve_tables.h.
 *
 * A walk asks for a file by the contents of its inode, and by an address in a process that has it
 * mapped. The file that is opened there is only used if it is the same file and has not changed
 * when its table is ready: no chain may be walked by another file's table. Files of other users are
 * read by worker processes only (tools/rules/worker.h), and the tables that these make are checked.
 */
#if __has_include(<bpf/libbpf.h>)
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "tools/bpf/serve_tables.h"
#include "tools/elf/golang.h"
#include "tools/java/jit_code.h"
#include "tools/proc/maps.h"
#include "tools/rules/device.h"
#include "tools/rules/source.h"

/* Limit of a table's size: as many bytes as linux/shstk_rules.h permits. */
#define MAX_BLOCKS 8192

static int fill(int fd, size_t room, const struct compiled_table *table)
{
	void *to = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (to == MAP_FAILED)
		return -errno;
	memcpy(to, table->header, table->size);
	munmap(to, room);
	return 0;
}

/* Makes a map with the bytes of a table. Returns a descriptor or a negative errno. */
static int make_map(const struct libbpf *lib, const struct compiled_table *table)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	size_t blocks = (table->size + WALK_BLOCK - 1) / WALK_BLOCK;
	int fd, err;

	if (blocks > MAX_BLOCKS)
		return -E2BIG;
	fd = lib->map_create(BPF_MAP_TYPE_ARRAY, "shstk_table", sizeof(__u32), WALK_BLOCK, blocks,
			     &opts);
	if (fd < 0)
		return -errno;
	err = fill(fd, blocks * WALK_BLOCK, table);
	if (err)
		close(fd);
	return err ? err : fd;
}

int serve_config(struct served *s)
{
	__u32 zero = 0;

	return s->lib->map_update_elem(s->config, &zero, &s->told, BPF_ANY) ? -errno : 0;
}

/*
 * Gives a file its table: first the table, then its slot to the file, then a new generation, so
 * that the program looks up its mappings anew.
 */
static int put(struct served *s, const struct walk_file *file, const struct compiled_table *table)
{
	__u32 slot = s->next;
	int fd, err;

	if (slot >= WALK_SLOTS)
		return -ENOSPC;
	fd = make_map(s->lib, table);
	if (fd < 0)
		return fd;
	err = s->lib->map_update_elem(s->tables, &slot, &fd, BPF_ANY);
	close(fd);
	if (err)
		return -errno;
	s->next++;
	if (s->lib->map_update_elem(s->files, file, &slot, BPF_ANY))
		return -errno;
	s->told.generation++;
	return serve_config(s);
}

int serve_vdso(struct served *s)
{
	const struct walk_file vdso = { 0 };
	struct rules_file file;
	struct compiled_table table;
	int err = rules_file_vdso(&file);

	if (!err)
		err = rules_compile(file.data, file.size, NULL, &table);
	if (err)
		return err;
	err = put(s, &vdso, &table);
	free(table.header);
	return err;
}

/* Sets @ret to what a walk most likely knows a file by. */
static void identify(const struct stat *st, struct walk_file *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->ino = st->st_ino;
	ret->sec = st->st_ctim.tv_sec;
	ret->nsec = st->st_ctim.tv_nsec;
	ret->dev = major(st->st_dev) << 20 | minor(st->st_dev);
}

/* The bits of an inode number that tell the inode. Overlays put the layer into the highest bits. */
#define OWN_BITS (((__u64)1 << 56) - 1)

/*
 * Returns true if @st is the file @file. Devices are not compared: stacked file systems have other
 * devices than the file systems below.
 */
static bool is_that(const struct stat *st, const struct walk_file *file)
{
	return !((st->st_ino ^ file->ino) & OWN_BITS) && st->st_ctim.tv_sec == file->sec &&
	       (__u32)st->st_ctim.tv_nsec == file->nsec;
}

static int make(struct served *s, const struct walk_file *file, int fd)
{
	const struct source from = { .cache = s->cache, .stop = -1 };
	struct compiled_table table;
	struct stat before, after;
	int err;

	if (fstat(fd, &before) || !is_that(&before, file))
		err = -ESTALE;
	else if (s->leaves_go && golang_kind(fd) != GOLANG_NONE)
		err = -EOPNOTSUPP;
	else
		err = source_table(&from, fd, &table, NULL);
	if (err)
		return err;
	if (fstat(fd, &after) || !is_that(&after, file))
		err = -ESTALE;
	else
		err = put(s, file, &table);
	free(table.header);
	return err;
}

/*
 * Sets the number of files that wait. This comes before the ring buffer says that a request was
 * read, so that each request is always counted in one of the two.
 */
static void set_waiting(const struct served *s, unsigned int nr)
{
	__atomic_store_n(s->nr_waiting, nr, __ATOMIC_RELEASE);
}

/*
 * Puts a file into a queue, and takes @fd over. A file that has no room here will be asked for
 * again.
 */
static void enqueue(struct served *s, struct queue *q, const struct walk_file *file, int fd)
{
	if (q->nr == SERVE_WAITING) {
		s->lib->map_delete_elem(s->files, file);
		close(fd);
		return;
	}
	q->waiting[(q->first + q->nr++) % SERVE_WAITING] =
		(struct waiting){ .file = *file, .fd = fd };
	set_waiting(s, *s->nr_waiting + 1);
}

/*
 * Opens the file that was asked for. A library that makes code at run time gets no table: only the
 * process's memory has what describes that code, and all its threads begin in the library.
 */
static void open_asked(struct served *s, const struct walk_asked *a, const struct mapping *m)
{
	int fd = jit_is_known(m->path) ?
			 -1 :
			 regular_open_mapped((pid_t)a->pid, m->start, m->end, m->path);

	if (fd >= 0)
		enqueue(s, &s->missed, &a->file, fd);
}

/*
 * Opens another file of the same process, since walks will soon meet it. Nobody tells how the walks
 * will know the file; on most file systems it is what stat(2) says.
 */
static void open_ahead(struct served *s, pid_t pid, const struct mapping *m)
{
	const __u32 none = 0;
	struct walk_file file;
	struct stat st;
	int fd = jit_is_known(m->path) ? -1 : regular_open_mapped(pid, m->start, m->end, m->path);

	if (fd < 0)
		return;
	if (fstat(fd, &st)) {
		close(fd);
		return;
	}
	identify(&st, &file);
	if (s->lib->map_update_elem(s->files, &file, &none, BPF_NOEXIST))
		close(fd);
	else
		enqueue(s, &s->ahead, &file, fd);
}

static bool is_at(const struct mapping *m, uint64_t addr)
{
	return addr >= m->start && addr < m->end;
}

/*
 * Opens the file that was asked for (@first), or all other files of the process, some of which may
 * have been used between samples. Returns true if there is such a file.
 */
static bool open_files(struct served *s, const struct walk_asked *a, bool first)
{
	struct mapping m;
	struct maps maps;
	bool found = false;

	if (maps_open((pid_t)a->pid, "maps", &maps))
		return false;
	while (maps_next(&maps, &m)) {
		if (!m.exec || !m.inode || is_at(&m, a->addr) != first)
			continue;
		found = true;
		if (first)
			open_asked(s, a, &m);
		else
			open_ahead(s, (pid_t)a->pid, &m);
	}
	maps_close(&maps);
	return found;
}

/*
 * Takes a request. The process that asked may have ended: then the request is forgotten, and the
 * next process that runs the file asks again. A file that gets no table for another reason is not
 * asked for again.
 */
static int hear(void *arg, const void *record, size_t size)
{
	const struct walk_asked *a = record;
	struct served *s = arg;

	if (size < sizeof(*a))
		return 0;
	if (open_files(s, a, true))
		open_files(s, a, false);
	else
		s->lib->map_delete_elem(s->files, &a->file);
	return 0;
}

static void make_next(struct served *s)
{
	struct queue *q = s->missed.nr ? &s->missed : &s->ahead;
	const struct waiting *next = &q->waiting[q->first % SERVE_WAITING];

	make(s, &next->file, next->fd);
	close(next->fd);
	q->first++;
	q->nr--;
	set_waiting(s, *s->nr_waiting - 1);
}

/*
 * Opens files at once, while their processes live, and makes one table at a time, which takes
 * longer.
 */
int serve_asked(struct served *s)
{
	struct pollfd p = { .fd = s->asked, .events = POLLIN };

	for (;;) {
		if (poll(&p, 1, *s->nr_waiting ? 0 : -1) < 0 && errno != EINTR)
			return -errno;
		ring_read(&s->ring, hear, s);
		if (*s->nr_waiting)
			make_next(s);
	}
}
#endif
