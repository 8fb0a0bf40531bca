// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * generated.c - names of code made at run time: from a process's own perf-map file, from perf-map
 * files that the caller gives, and one by one.
 *
 * Compilers append lines while the program runs, use addresses again for other code, and some
 * remove the file at their end. So the file is read as it grows, while samples come: an address
 * gets the name that was there at the time of its sample. The file is looked at again each 10 ms of
 * the samples' time, and is kept open, so that it can still be read after it was removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store.h"

#define PERFMAP_SHARE 6 /* part of the budget's memory for names of processes' own perf-map files */
#define GIVEN_MAX (1u << 30) /* bytes that names of the caller's perf-map files may take */
#define CLOCK_SLACK 60 /* seconds by which the clock may have been set */
#define LOOK_AGAIN 10000000 /* ns of samples' time until a file is looked at again */
#define FIND_AGAIN 100000000 /* ns of samples' time until a missing file is looked for again */
#define FILES_MAX 64 /* files that are kept open */
#define PARENTS_MAX 16 /* ancestors whose code a process is taken to run, at each sample */

/**
 * struct shstk_former_perfmap - names of generated code that samples of a former program have
 * @next: next element of the store's list.
 * @map: the names.
 */
struct shstk_former_perfmap {
	struct shstk_former_perfmap *next;
	struct shstk_perfmap *map;
};

/* ---- The process's own file ---- */

/*
 * Returns whether a perf-map file may be read: it must not be another user's, nor be left by a
 * former process with the same process ID.
 */
static bool trusted(const struct shstk_symproc *proc, int fd)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_mtime + CLOCK_SLACK < proc->started)
		return false;
	return st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == proc->uid;
}

static int open_own(const struct shstk_symproc *proc)
{
	struct shstk_root ours = { .fd = -1 };
	char path[64];
	int fd;

	if (proc->pid <= 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", proc->ns_pid);
	fd = shstk_root_open(proc->root, path, O_NOFOLLOW);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", proc->pid);
		fd = shstk_root_open(&ours, path, O_NOFOLLOW);
	}
	if (fd < 0 || trusted(proc, fd))
		return fd;
	close(fd);
	return -EPERM;
}

/* Returns the account of the process's own file; NULL when memory runs out. */
static struct shstk_account *perfmap_account(struct shstk_symproc *proc)
{
	struct shstk_account *account = &proc->perfmap_account;
	const char *name;
	char path[64];

	if (account->budget)
		return account;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", proc->ns_pid);
	name = shstk_pool_text(&proc->symbols->pool, path, strlen(path));
	if (!name)
		return NULL;
	shstk_account_open(account, &proc->symbols->budget, name);
	return account;
}

/*
 * Returns how many bytes names of processes' own files may still take. The last line of a file may
 * take a little more than there is.
 */
static size_t perfmap_bytes_left(const struct shstk_symbols *symbols)
{
	uint64_t most = symbols->budget.whole / PERFMAP_SHARE;

	return symbols->perfmap_bytes < most ? most - symbols->perfmap_bytes : 0;
}

/* Returns whether the last bytes that were read still stand before those that were not. */
static bool has_tail(const struct shstk_perfmap_file *file, int fd)
{
	char tail[SHSTK_PERFMAP_TAIL];

	return pread(fd, tail, file->nr_tail, file->done - file->nr_tail) ==
		       (ssize_t)file->nr_tail &&
	       !memcmp(tail, file->tail, file->nr_tail);
}

static void keep_tail(struct shstk_perfmap_file *file, int fd)
{
	size_t nr = file->done < SHSTK_PERFMAP_TAIL ? file->done : SHSTK_PERFMAP_TAIL;

	file->nr_tail = pread(fd, file->tail, nr, file->done - nr) == (ssize_t)nr ? nr : 0;
}

static uint64_t ns_of(const struct timespec *t)
{
	return t->tv_sec * 1000000000ull + t->tv_nsec;
}

/*
 * Starts from the beginning if the file is another one, or was written anew. Returns whether it
 * does.
 */
static bool begin_file(struct shstk_perfmap_file *file, int fd, const struct stat *st)
{
	uint64_t size = st->st_size, written = ns_of(&st->st_mtim);
	bool same = file->dev == st->st_dev && file->ino == st->st_ino && size >= file->done &&
		    (size > file->done || written == file->written) && has_tail(file, fd);

	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->written = written;
	if (!same)
		file->done = file->nr_tail = 0;
	return !same;
}

/*
 * Reads what was appended. A process takes no more than half of what is left, so that there is some
 * for others: any number of processes may have the same large file. Returns 0 or a negative errno.
 */
static int read_own(struct shstk_symproc *proc, int fd, bool anew)
{
	struct shstk_symbols *symbols = proc->symbols;
	struct shstk_account *account = perfmap_account(proc);
	size_t before, cost;
	int err = 0;

	if (!proc->perfmap)
		proc->perfmap = shstk_perfmap_create();
	if (!proc->perfmap || !account)
		return -ENOMEM;
	before = shstk_perfmap_cost(proc->perfmap);
	proc->perfmap_file.full = !shstk_account_begin(account);
	if (!proc->perfmap_file.full) {
		shstk_perfmap_anew(proc->perfmap, anew && before);
		err = shstk_perfmap_read(proc->perfmap, fd, perfmap_bytes_left(symbols) / 2,
					 &proc->perfmap_file.done);
		shstk_perfmap_anew(proc->perfmap, false);
	}
	shstk_account_end(account);
	cost = shstk_perfmap_cost(proc->perfmap) - before;
	symbols->perfmap_bytes += cost;
	if (shstk_perfmap_cut(proc->perfmap))
		shstk_account_exceed(account, SHSTK_EXCESS_MEMORY);
	proc->perfmap_file.full |= shstk_perfmap_cut(proc->perfmap) ||
				   !shstk_account_take(account, cost);
	keep_tail(&proc->perfmap_file, fd);
	return err;
}

static void close_own(struct shstk_symproc *proc)
{
	if (!proc->perfmap_file.open)
		return;
	close(proc->perfmap_file.fd);
	proc->perfmap_file.open = false;
	proc->symbols->perfmap_files--;
}

/*
 * Keeps the file open, or closes it. A removed file grows as long as its writer has it open; once
 * it is read to its end it is closed, as there may be another file with its name.
 */
static void keep_open(struct shstk_symproc *proc, int fd, const struct stat *st)
{
	struct shstk_perfmap_file *file = &proc->perfmap_file;

	if (file->open && !st->st_nlink && file->done == (uint64_t)st->st_size) {
		close_own(proc);
	} else if (!file->open && proc->symbols->perfmap_files < FILES_MAX) {
		file->open = true;
		file->fd = fd;
		proc->symbols->perfmap_files++;
	} else if (!file->open) {
		close(fd);
	}
}

/*
 * Checks whether there is more in the file, and reads that. @st receives the state of the file.
 * Returns 0 or a negative errno.
 */
static int refresh(struct shstk_symproc *proc, struct stat *st)
{
	struct shstk_perfmap_file *file = &proc->perfmap_file;
	int fd = file->open ? file->fd : open_own(proc), err = 0;
	size_t before = proc->perfmap ? shstk_perfmap_size(proc->perfmap) : 0;
	bool anew;

	file->tried = true;
	if (fd < 0)
		return fd;
	if (fstat(fd, st)) {
		err = -errno;
		*st = (struct stat){ .st_size = 0 };
	} else if (!file->full) {
		anew = begin_file(file, fd, st);
		if ((uint64_t)st->st_size > file->done || !proc->perfmap)
			err = read_own(proc, fd, anew);
	}
	keep_open(proc, fd, st);
	if (proc->perfmap && shstk_perfmap_size(proc->perfmap) != before)
		proc->edition++;
	return err;
}

/* Does what refresh() does, and lets all names count from now on. */
static int refresh_now(struct shstk_symproc *proc)
{
	struct stat st = { .st_size = 0 };
	int err = refresh(proc, &st);

	/* A search for any address makes the new names count. */
	if (proc->perfmap)
		shstk_perfmap_find(proc->perfmap, 0);
	return err;
}

/* Returns when the file was written last, by the samples' clock. */
static uint64_t written_at(const struct stat *st)
{
	struct timespec real, now;
	uint64_t ago;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &now);
	ago = ns_of(&real) > ns_of(&st->st_mtim) ? ns_of(&real) - ns_of(&st->st_mtim) : 0;
	return ns_of(&now) > ago ? ns_of(&now) - ago : 0;
}

static bool refresh_at(struct shstk_symproc *proc, uint64_t time)
{
	struct shstk_perfmap_file *file = &proc->perfmap_file;
	bool first = !proc->perfmap;
	uint64_t edition = proc->edition;
	struct stat st;

	if (time < file->next)
		return false;
	if (first) {
		refresh_now(proc);
	} else {
		refresh(proc, &st);
		if (proc->edition != edition)
			shstk_perfmap_stamp(proc->perfmap, written_at(&st));
	}
	file->next = time + (proc->perfmap ? LOOK_AGAIN : FIND_AGAIN);
	return first && proc->perfmap;
}

void shstk_generated_follow(struct shstk_symproc *proc, uint64_t time)
{
	struct shstk_symproc *p = proc;
	bool changed = false;

	/*
	 * The file of a parent is read only for a child with an address that was looked for there.
	 */
	for (int i = 0; p && p->perfmap_file.wanted && i < PARENTS_MAX; i++, p = p->parent) {
		changed |= refresh_at(p, time);
		changed |= p->perfmap && shstk_perfmap_advance(p->perfmap, time);
	}
	/* The same address may be another function now. */
	proc->changes += changed;
}

const struct shstk_perfmap_entry *shstk_symproc_generated_now(struct shstk_symproc *proc,
							      uint64_t addr)
{
	const struct shstk_perfmap_entry *entry = NULL;

	for (int i = 0; proc && !entry && !proc->functions && i < PARENTS_MAX; i++) {
		if (!proc->perfmap_file.wanted && !proc->perfmap_file.tried)
			refresh_now(proc);
		proc->perfmap_file.wanted = true;
		if (proc->perfmap)
			entry = shstk_perfmap_find_now(proc->perfmap, addr);
		if (!entry && proc->extra)
			entry = shstk_perfmap_find(proc->extra, addr);
		proc = proc->parent;
	}
	return entry;
}

void shstk_generated_end(struct shstk_symproc *proc)
{
	if (proc->perfmap_file.wanted)
		refresh_now(proc);
	close_own(proc);
}

static void give_back(struct shstk_symproc *proc)
{
	proc->symbols->perfmap_bytes -= shstk_perfmap_cost(proc->perfmap);
	if (proc->perfmap_account.budget)
		shstk_account_give(&proc->perfmap_account, proc->perfmap_account.memory);
	shstk_perfmap_destroy(proc->perfmap);
}

/* Keeps the names of a former program, which samples refer to. Their memory stays taken. */
static void keep_former(struct shstk_symproc *proc)
{
	struct shstk_symbols *symbols = proc->symbols;
	struct shstk_former_perfmap *former = shstk_pool_alloc(&symbols->pool, sizeof(*former));

	if (!former)
		return; /* the names stay, and nobody frees them */
	*former = (struct shstk_former_perfmap){ symbols->former_perfmaps, proc->perfmap };
	symbols->former_perfmaps = former;
}

void shstk_generated_forget(struct shstk_symproc *proc)
{
	if (proc->perfmap && proc->perfmap_file.wanted)
		keep_former(proc);
	else if (proc->perfmap)
		give_back(proc);
	proc->perfmap = NULL;
	close_own(proc);
	proc->perfmap_file = (struct shstk_perfmap_file){ .tried = false };
	proc->edition++;
}

void shstk_generated_deinit(struct shstk_symproc *proc)
{
	close_own(proc);
	shstk_perfmap_destroy(proc->perfmap);
	shstk_perfmap_destroy(proc->extra);
}

void shstk_former_perfmaps_destroy(struct shstk_symbols *symbols)
{
	/* The list elements themselves belong to the pool. */
	for (struct shstk_former_perfmap *f = symbols->former_perfmaps; f; f = f->next)
		shstk_perfmap_destroy(f->map);
}

/* ---- Names that the caller gives ---- */

static int read_given(struct shstk_symproc *proc, const char *path)
{
	struct shstk_root ours = { .fd = -1 };
	int fd = shstk_root_open(&ours, path, 0), err = -ENOMEM;
	uint64_t from = 0;

	if (fd < 0)
		return fd;
	if (!proc->extra)
		proc->extra = shstk_perfmap_create();
	if (proc->extra)
		err = shstk_perfmap_read(proc->extra, fd, GIVEN_MAX, &from);
	close(fd);
	proc->edition++;
	return err;
}

int shstk_symproc_add_perf_map(struct shstk_symproc *proc, const char *path)
{
	int err = path ? read_given(proc, path) : refresh_now(proc);

	return err ? err : (int)shstk_perfmap_size(path ? proc->extra : proc->perfmap);
}

int shstk_symproc_add_generated(struct shstk_symproc *proc, uint64_t start, uint64_t end,
				const char *name)
{
	if (start >= end)
		return -EINVAL;
	if (!proc->extra)
		proc->extra = shstk_perfmap_create();
	proc->edition++;
	return proc->extra ? shstk_perfmap_add(proc->extra, start, end, name) : -ENOMEM;
}

/* ---- Searches ---- */

const struct shstk_perfmap_entry *shstk_symproc_generated(struct shstk_symproc *proc, uint64_t addr)
{
	const struct shstk_perfmap_entry *entry = NULL;

	if (proc->functions)
		return shstk_kernel_find(proc->functions, addr);
	for (; proc && !entry; proc = proc->parent) {
		if (!proc->perfmap_file.tried || proc->perfmap_file.open)
			refresh_now(proc);
		if (proc->perfmap)
			entry = shstk_perfmap_find(proc->perfmap, addr);
		if (!entry && proc->extra)
			entry = shstk_perfmap_find(proc->extra, addr);
	}
	return entry;
}
