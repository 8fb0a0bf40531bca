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
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bpf/serve_tables.h"
#include "tools/elf/jit_library.h"
#include "tools/rules/device.h"
#include "tools/rules/hopeless.h"
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
 * Returns whether the file system shows files with another device than its own. Only root can mount such
 * ones: running_files() opens no file of an overlay that an ordinary user mounted.
 */
static bool hides_device(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	return (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC ||
	       (unsigned long)fs.f_type == BTRFS_SUPER_MAGIC;
}

/*
 * Returns true if @st, of the open file @fd, is the file @file. Anybody can have a file system, such as
 * a tmpfs, whose files have any inode number, and mount and unmount it at will. No such one has the
 * device of a file system that somebody else has mounted.
 */
static bool is_that(const struct stat *st, int fd, const struct walk_file *file)
{
	struct walk_file told;

	identify(st, &told);
	return !((told.ino ^ file->ino) & OWN_BITS) && told.sec == file->sec &&
	       told.nsec == file->nsec && (told.dev == file->dev || hides_device(fd));
}

static struct served_user *user_of(const struct turn *t)
{
	return (void *)((char *)t->user - offsetof(struct served_user, turns));
}

/* Makes the table of a file. Returns 0 or a negative errno: -EDQUOT if the user has too many. */
static int make(struct served *s, const struct turn *of)
{
	const struct walk_file *file = &of->asked.file;
	const int fd = of->fd;
	const struct source from = { .cache = s->cache,
				     .stop = s->stop,
				     .leaves_go = s->leaves_go };
	struct compiled_table table;
	struct stat before, after;
	int err;

	if (fstat(fd, &before) || !is_that(&before, fd, file))
		err = -ESTALE;
	else
		err = source_table(&from, fd, &table, NULL);
	if (err)
		return err;
	if (fstat(fd, &after) || !is_that(&after, fd, file))
		err = -ESTALE;
	else if (!serve_has_bytes(s, user_of(of), table.size))
		err = -EDQUOT;
	else
		err = put(s, file, &table);
	free(table.header);
	return err;
}

/*
 * Sets the number of pieces of work that wait, with @more. This comes before the ring buffer says that a
 * request was read, so that each request is always counted in one of the two.
 */
static void set_waiting(const struct served *s, unsigned int more)
{
	__atomic_store_n(s->nr_waiting, s->turns.nr + more, __ATOMIC_RELEASE);
}

/* Forgets a file, so that the next walk that meets it asks for it. */
static void forget(struct served *s, const struct walk_file *file)
{
	s->lib->map_delete_elem(s->files, file);
}

/*
 * Has a table made of an open file, and takes @fd over. Returns false if there is no room: the file will
 * be asked for again.
 */
static bool enqueue(struct served *s, const struct turn *of)
{
	if (turns_add(&s->turns, of)) {
		set_waiting(s, 1);
		return true;
	}
	forget(s, &of->asked.file);
	close(of->fd);
	return false;
}

/* ---- Users ---- */

struct served_user *serve_user(struct served *s, uid_t id)
{
	const uid_t uid = subordinate_user(&s->subordinate, id);

	for (unsigned int i = 0; i < s->nr_users; i++)
		if (s->users[i].uid == uid)
			return &s->users[i];
	if (s->nr_users == SERVE_USERS)
		return &s->users[SERVE_USERS - 1];
	s->users[s->nr_users].uid = uid;
	s->users[s->nr_users].id = id;
	return &s->users[s->nr_users++];
}

/*
 * Sums up what counts as this user's by now. There are several places of a user if an id counted as another one
 * before /etc/subuid was changed.
 */
static void sum_up(const struct served *s, const struct served_user *user, unsigned int *files,
		   uint64_t *bytes)
{
	const uid_t uid = subordinate_user(&s->subordinate, user->id);

	*files = 0;
	*bytes = 0;
	for (unsigned int i = 0; i < s->nr_users; i++) {
		const struct served_user *u = &s->users[i];

		if (subordinate_user(&s->subordinate, u->id) != uid)
			continue;
		*files += u->files;
		*bytes += u->bytes;
	}
}

bool serve_has_room(const struct served *s, const struct served_user *user)
{
	unsigned int files;
	uint64_t bytes;

	sum_up(s, user, &files, &bytes);
	return s->known < WALK_FILES && files < (WALK_FILES - s->known + 1) / 2;
}

bool serve_has_bytes(struct served *s, struct served_user *user, uint64_t bytes)
{
	const uint64_t blocks = (bytes + WALK_BLOCK - 1) / WALK_BLOCK * WALK_BLOCK;
	unsigned int files;
	uint64_t own;

	if (!s->most_bytes)
		return true;
	sum_up(s, user, &files, &own);
	if (own + blocks > (s->most_bytes - s->bytes) / 2)
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

void serve_discharge(struct served *s, struct served_user *user)
{
	s->known--;
	user->files--;
}

/* ---- Requests ---- */

/**
 * struct request - a request that is being served
 * @s: the maps.
 * @asked: what was asked for.
 * @user: the user of the process.
 * @taken: the file was found, and waits for its table.
 * @left: the file was found, and gets no table.
 * @dropped: the file was found, but there was no room for it.
 */
struct request {
	struct served *s;
	const struct walk_asked *asked;
	struct served_user *user;
	bool taken;
	bool left;
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
	struct turn of = { .kind = TURNS_AHEAD, .fd = fd, .user = &r->user->turns };

	identify(st, &of.asked.file);
	if (!serve_has_room(s, r->user) ||
	    s->lib->map_update_elem(s->files, &of.asked.file, &none, BPF_NOEXIST)) {
		close(fd);
		return;
	}
	if (enqueue(s, &of))
		serve_charge(s, r->user);
}

/*
 * Returns whether the file is a library that makes code at run time, by its own name. What the process
 * calls it is not asked: in a namespace of the own anybody can mount any file under any name. So a file
 * that is mounted itself, and not only a folder above it, has no name that counts.
 */
static bool is_jit(int fd)
{
	const unsigned int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	char link[48], path[PATH_MAX];
	struct statx st;
	ssize_t n;

	if (statx(fd, "", flags, 0, &st) || st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return jit_is_known(path);
}

/*
 * Takes a file that the process executes. A library that makes code at run time gets no table: only
 * the process's memory has what describes that code, and all its threads begin in the library.
 */
static void take_file(void *arg, int fd, const char *path)
{
	struct request *r = arg;
	const struct turn of = {
		.kind = TURNS_MISSED, .asked = *r->asked, .fd = fd, .user = &r->user->turns
	};
	const bool jit = is_jit(fd);
	struct stat st;
	bool that;

	(void)path;
	if (fstat(fd, &st)) {
		close(fd);
		return;
	}
	that = is_that(&st, fd, &r->asked->file);
	if (jit) {
		r->left |= that;
		close(fd);
	} else if (!that) {
		take_ahead(r, &st, fd);
	} else if (enqueue(r->s, &of)) {
		r->taken = true;
	} else {
		r->dropped = true;
	}
}

/* ns for which a user is not served who made us wait, or whose tables are too many */
#define PENALTY 60000000000

static void punish(struct served_user *user)
{
	user->again = now_ns(CLOCK_MONOTONIC) + PENALTY;
}

/* Notes that the user has asked for a file that is not where it was said to be. */
static void refuse(struct served_user *user, const struct walk_file *file)
{
	const unsigned int at = user->next_refused++ % SERVE_REFUSED;

	user->refused[at] = *file;
	user->refused_until[at] = now_ns(CLOCK_MONOTONIC) + PENALTY;
}

static bool was_refused(const struct served_user *user, const struct walk_file *file)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < SERVE_REFUSED; i++)
		if (now < user->refused_until[i] && !memcmp(&user->refused[i], file, sizeof(*file)))
			return true;
	return false;
}

/* Returns whether a child still waits because of the user, who is not served meanwhile. */
static bool is_stuck(struct served_user *user)
{
	if (user->stuck && waitpid(user->stuck, NULL, WNOHANG))
		user->stuck = 0;
	return user->stuck;
}

/*
 * Opens the files of a process. It may keep its mappings locked for as long as it likes, so another
 * process looks at them (running_files()). Returns its error.
 */
static int open_files(struct request *r)
{
	const struct running files = {
		.pid = (pid_t)r->asked->pid,
		.addr = r->asked->addr,
		.stop = r->s->stop,
		.use = take_file,
		.arg = r,
		.stuck = &r->user->stuck,
	};
	int err = running_files(&files);

	if (err == -ETIMEDOUT)
		punish(r->user);
	return err;
}

/*
 * Serves a request. The process that asked may have ended, or execute another program: then the request
 * is forgotten, and the next process that runs the file asks again. A file that cannot have a table is
 * not asked for again. If another file is in its place, or one that nobody may look at, that says
 * nothing about the file: only this user's requests for it are dropped for a while.
 */
static void serve(struct served *s, const struct turn *of)
{
	struct request r = { .s = s, .asked = &of->asked, .user = user_of(of) };
	int err;

	if (now_ns(CLOCK_MONOTONIC) < r.user->again || is_stuck(r.user) ||
	    !serve_has_room(s, r.user)) {
		forget(s, &of->asked.file);
		return;
	}
	err = open_files(&r);
	if (r.taken || r.left) {
		serve_charge(s, r.user);
	} else if (!r.dropped) {
		if (!err)
			refuse(r.user, &of->asked.file);
		forget(s, &of->asked.file);
	}
}

/* Takes a request, unless nothing is done for its user now. */
static int hear(void *arg, const void *record, size_t size)
{
	struct turn of = { .kind = TURNS_OPEN, .fd = -1 };
	struct served *s = arg;
	struct served_user *user;

	if (size < sizeof(of.asked))
		return 0;
	memcpy(&of.asked, record, sizeof(of.asked));
	/* Ids of a user who came meanwhile. If they cannot be read, those that are known hold. */
	subordinate_renew(&s->subordinate);
	user = serve_user(s, of.asked.uid);
	of.user = &user->turns;
	if (now_ns(CLOCK_MONOTONIC) < user->again || was_refused(user, &of.asked.file) ||
	    is_stuck(user) || !turns_add(&s->turns, &of))
		forget(s, &of.asked.file);
	else
		set_waiting(s, 0);
	return 0;
}

/*
 * Makes the table of a file. Where it fails for a reason that may pass, walks go on ending in the file, and
 * ask again later. If the user has too many tables, whoever else has this file mapped asks for it again,
 * and this user much later.
 */
static void make_one(struct served *s, const struct turn *of)
{
	const struct walk_file *file = &of->asked.file;
	const int err = make(s, of);

	if (err == -EDQUOT) {
		forget(s, file);
		serve_discharge(s, user_of(of));
		punish(user_of(of));
	} else if (!err || hopeless_lasts(err)) {
		tries_done(&s->tries, file);
	} else {
		tries_failed(&s->tries, file, user_of(of), now_ns(CLOCK_MONOTONIC));
	}
	close(of->fd);
}

/* Forgets the files that may be tried again now. Returns how long to wait for the next one, in ms, or -1. */
static int try_again(struct served *s)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	const struct tried *tried;

	while ((tried = tries_take(&s->tries, now))) {
		forget(s, &tried->file);
		serve_discharge(s, tried->user);
	}
	return tries_wait(&s->tries, now);
}

static void do_next(struct served *s)
{
	const uint64_t begin = now_ns(CLOCK_MONOTONIC);
	struct turn next;

	if (!turns_take(&s->turns, &next))
		return;
	if (next.kind == TURNS_OPEN)
		serve(s, &next);
	else
		make_one(s, &next);
	turns_spend(next.user, now_ns(CLOCK_MONOTONIC) - begin);
	set_waiting(s, 0);
}

/* Opens files of a process, or makes a table, and hears meanwhile for whom more is to be done. */
int serve_asked(struct served *s)
{
	struct pollfd p[] = {
		{ .fd = s->asked, .events = POLLIN },
		{ .fd = s->stop, .events = POLLIN },
	};

	for (;;) {
		const int wait = try_again(s);

		if (poll(p, 2, s->turns.nr ? 0 : wait) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			return -ECANCELED;
		ring_read(&s->ring, hear, s);
		do_next(s);
	}
}
#endif
