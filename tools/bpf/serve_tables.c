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

#include "tools/bpf/serve_tables.h"
#include "tools/elf/golang.h"
#include "tools/java/jit_code.h"
#include "tools/proc/tasks.h"
#include "tools/rules/device.h"
#include "tools/rules/running_files.h"
#include "tools/rules/source.h"
#include "tools/shstk.h"

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

/* Makes the table of a file. Returns 0 or a negative errno: -EDQUOT if the user has too many. */
static int make(struct served *s, const struct waiting *of)
{
	const struct walk_file *file = &of->file;
	const int fd = of->fd;
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
	else if (!serve_has_bytes(s, of->user, table.size))
		err = -EDQUOT;
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
 * Puts a file into a queue, and takes @fd over. Returns false if there is no room: the file will be
 * asked for again.
 */
static bool enqueue(struct served *s, struct queue *q, const struct walk_file *file, int fd,
		    struct served_user *user)
{
	if (q->nr == SERVE_WAITING) {
		s->lib->map_delete_elem(s->files, file);
		close(fd);
		return false;
	}
	q->waiting[(q->first + q->nr++) % SERVE_WAITING] =
		(struct waiting){ .file = *file, .fd = fd, .user = user };
	set_waiting(s, *s->nr_waiting + 1);
	return true;
}

/* ---- Users ---- */

struct served_user *serve_user(struct served *s, uid_t uid)
{
	for (unsigned int i = 0; i < s->nr_users; i++)
		if (s->users[i].uid == uid)
			return &s->users[i];
	if (s->nr_users == SERVE_USERS)
		return &s->users[SERVE_USERS - 1];
	s->users[s->nr_users].uid = uid;
	return &s->users[s->nr_users++];
}

bool serve_has_room(const struct served *s, const struct served_user *user)
{
	return s->known < WALK_FILES && user->files < (WALK_FILES - s->known + 1) / 2;
}

bool serve_has_bytes(struct served *s, struct served_user *user, uint64_t bytes)
{
	const uint64_t blocks = (bytes + WALK_BLOCK - 1) / WALK_BLOCK * WALK_BLOCK;

	if (!s->most_bytes)
		return true;
	if (user->bytes + blocks > (s->most_bytes - s->bytes) / 2)
		return false;
	user->bytes += blocks;
	s->bytes += blocks;
	return true;
}

void serve_charge(struct served *s, struct served_user *user)
{
	s->known++;
	user->files++;
}

/* Returns the user of a process; 0 if it has ended. */
static uid_t user_of(pid_t pid)
{
	char value[32];

	return task_field(pid, pid, "Uid", value, sizeof(value)) ? strtoul(value, NULL, 10) : 0;
}

/* ---- Requests ---- */

/**
 * struct request - a request that is being served
 * @s: the maps.
 * @asked: what was asked for.
 * @user: the user of the process.
 * @taken: the file was found, and waits for its table.
 * @dropped: the file was found, but there was no room for it.
 */
struct request {
	struct served *s;
	const struct walk_asked *asked;
	struct served_user *user;
	bool taken;
	bool dropped;
};

/*
 * Takes another file of the same process, since walks will soon meet it. Nobody tells how the walks
 * will know the file; on most file systems it is what stat(2) says.
 */
static void take_ahead(const struct request *r, const struct stat *st, int fd)
{
	struct served *s = r->s;
	const __u32 none = 0;
	struct walk_file file;

	identify(st, &file);
	if (!serve_has_room(s, r->user) ||
	    s->lib->map_update_elem(s->files, &file, &none, BPF_NOEXIST)) {
		close(fd);
		return;
	}
	if (enqueue(s, &s->ahead, &file, fd, r->user))
		serve_charge(s, r->user);
}

/*
 * Takes a file that the process executes. A library that makes code at run time gets no table: only
 * the process's memory has what describes that code, and all its threads begin in the library.
 */
static void take_file(void *arg, int fd, const char *path)
{
	struct request *r = arg;
	struct stat st;

	if (jit_is_known(path) || fstat(fd, &st))
		close(fd);
	else if (!is_that(&st, &r->asked->file))
		take_ahead(r, &st, fd);
	else if (enqueue(r->s, &r->s->missed, &r->asked->file, fd, r->user))
		r->taken = true;
	else
		r->dropped = true;
}

/* ns for which a user is not served who made us wait, or whose tables are too many */
#define PENALTY 60000000000

/*
 * Opens the files of a process. It may keep its mappings locked for as long as it likes, so another
 * process looks at them (running_files()). Returns whether the file that was asked for is among them,
 * or some other one is in its place.
 */
static bool open_files(struct request *r)
{
	const struct running files = {
		.pid = (pid_t)r->asked->pid,
		.addr = r->asked->addr,
		.stop = -1,
		.use = take_file,
		.arg = r,
	};
	int err = running_files(&files);

	if (err == -ETIMEDOUT)
		r->user->again = now_ns(CLOCK_MONOTONIC) + PENALTY;
	return !err || r->taken;
}

/*
 * Takes a request. The process that asked may have ended, or execute another program: then the
 * request is forgotten, and the next process that runs the file asks again. So it is if nothing is done for its user. A file that
 * gets no table for another reason is not asked for again.
 */
static int hear(void *arg, const void *record, size_t size)
{
	struct request r = { .s = arg, .asked = record };

	if (size < sizeof(*r.asked))
		return 0;
	r.user = serve_user(r.s, user_of((pid_t)r.asked->pid));
	if (now_ns(CLOCK_MONOTONIC) < r.user->again || !serve_has_room(r.s, r.user) ||
	    !open_files(&r))
		r.s->lib->map_delete_elem(r.s->files, &r.asked->file);
	else if (!r.dropped)
		serve_charge(r.s, r.user);
	return 0;
}

static void make_next(struct served *s)
{
	struct queue *q = s->missed.nr ? &s->missed : &s->ahead;
	const struct waiting *next = &q->waiting[q->first % SERVE_WAITING];

	/* Whoever else has this file mapped asks for it again, and this user much later. */
	if (make(s, next) == -EDQUOT) {
		s->lib->map_delete_elem(s->files, &next->file);
		next->user->again = now_ns(CLOCK_MONOTONIC) + PENALTY;
	}
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
