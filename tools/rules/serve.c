// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * serve.c - the daemon: tables for whatever runs.
 *
 * It begins with the files that run now and those that walks missed before, as far as
 * these are root's, and then waits for the kernel to hand out files that walks have no
 * table for. What strangers wrote is read by workers alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/rules/cache.h"
#include "tools/rules/device.h"
#include "tools/rules/notify.h"
#include "tools/rules/running.h"
#include "tools/rules/serve.h"
#include "tools/rules/source.h"
#include "tools/shstk.h"

/* Files that have no table and are not asked about again, until they change. */
#define NR_HOPELESS 1024

/* Of files that walks missed: names that are kept for the next start. */
#define MISSED "missed"
#define MAX_MISSED 4096

struct hopeless {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
};

/**
 * struct daemon - the daemon
 * @device: /dev/shstk_rules.
 * @cache: folder of tables, or -1.
 * @signals: says that it is to end.
 * @end: it is.
 * @missed: lines of file names; @nr_missed of them.
 * @nr_missed: see @missed.
 * @hopeless: by inode number.
 * @loaded: tables that were loaded, @cached of them from the cache.
 * @cached: see @loaded.
 */
struct daemon {
	int device, cache, signals;
	bool end;
	char *missed[MAX_MISSED];
	unsigned int nr_missed;
	struct hopeless hopeless[NR_HOPELESS];
	uint64_t loaded, cached;
};

/* --- files that were missed before --- */

static bool is_missed(const struct daemon *d, const char *path)
{
	for (unsigned int i = 0; i < d->nr_missed; i++)
		if (!strcmp(d->missed[i], path))
			return true;
	return false;
}

static bool remember(struct daemon *d, const char *path)
{
	if (*path != '/' || strchr(path, '\n') || d->nr_missed == MAX_MISSED || is_missed(d, path))
		return false;
	d->missed[d->nr_missed] = strdup(path);
	if (!d->missed[d->nr_missed])
		return false;
	d->nr_missed++;
	return true;
}

static void read_missed(struct daemon *d)
{
	int fd = openat(d->cache, MISSED, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;

	if (f && cache_trusts(fd)) {
		while (getline(&line, &room, f) > 0) {
			line[strcspn(line, "\n")] = '\0';
			remember(d, line);
		}
	}
	free(line);
	if (f)
		fclose(f);
}

/* Only of files that others cannot write: else anybody could fill the list. */
static void note_missed(struct daemon *d, int file, const char *path)
{
	int fd;

	if (d->cache < 0 || !cache_trusts(file) || access(path, F_OK) || !remember(d, path))
		return;
	fd = openat(d->cache, MISSED, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", path);
	close(fd);
}

/* --- one file --- */

static struct hopeless *hopeless_of(struct daemon *d, const struct stat *st)
{
	return &d->hopeless[(st->st_ino ^ st->st_dev) % NR_HOPELESS];
}

static bool is_hopeless(struct daemon *d, const struct stat *st)
{
	const struct hopeless *h = hopeless_of(d, st);

	return h->ino == st->st_ino && h->dev == st->st_dev &&
	       h->changed.tv_sec == st->st_ctim.tv_sec && h->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/* @file is taken over. Return: whether there is a table. */
static bool serve_file(struct daemon *d, int fd, const char *path)
{
	struct rules_file file;
	struct rules_table table;
	bool cached;
	int err = rules_file_begin(&file, fd);

	if (err)
		return false;
	if (is_hopeless(d, &file.before)) {
		rules_file_close(&file);
		return false;
	}
	err = source_table(d->cache, fd, &table, &cached);
	if (!err) {
		err = rules_upload(d->device, &file, path, &table);
		free(table.header);
		d->loaded += !err;
		d->cached += !err && cached;
	} else {
		/* What has no unwind information is nothing to complain of. */
		if (err != -ENOENT && err != -ENOEXEC && err != -EXDEV)
			complain("%s: %s", path, rules_compile_error(err));
		*hopeless_of(d, &file.before) = (struct hopeless){ file.before.st_dev,
								   file.before.st_ino,
								   file.before.st_ctim };
	}
	rules_file_close(&file);
	return !err;
}

/* --- what is there in the beginning --- */

static bool is_over(struct daemon *d)
{
	struct pollfd p = { .fd = d->signals, .events = POLLIN };

	d->end |= poll(&p, 1, 0) > 0;
	return d->end;
}

static void serve_running(void *arg, int fd, const char *path)
{
	struct daemon *d = arg;

	if (is_over(d))
		close(fd);
	else
		serve_file(d, fd, path);
}

static void serve_vdso(struct daemon *d)
{
	struct rules_file file;
	struct rules_table table;

	if (rules_file_vdso(&file) || rules_compile(file.data, file.size, NULL, &table))
		return;
	d->loaded += !rules_upload(d->device, &file, "[vdso]", &table);
	free(table.header);
}

/* Each is loaded once, and once more if it runs: its table is in the cache then. */
static void serve_missed(struct daemon *d)
{
	for (unsigned int i = 0; i < d->nr_missed && !is_over(d); i++) {
		int fd = open(d->missed[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

		if (fd < 0)
			continue;
		if (cache_trusts(fd))
			serve_file(d, fd, d->missed[i]);
		else
			close(fd);
	}
}

/* --- what comes --- */

static void tell(const struct daemon *d, const char *before)
{
	notify_state("%sSTATUS=%" PRIu64 " tables loaded, %" PRIu64 " of them from the cache",
		     before, d->loaded, d->cached);
}

/* Return: 0, or a negative errno: there is no sense in going on. */
static int serve_miss(struct daemon *d)
{
	struct shstk_rules_miss miss = { 0 };
	char link[64], path[PATH_MAX];
	ssize_t n;

	if (ioctl(d->device, SHSTK_RULES_MISS, &miss))
		return errno == EPERM || errno == ENOTTY || errno == EBADF ? -errno : 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", miss.fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	note_missed(d, miss.fd, path);
	if (serve_file(d, miss.fd, path))
		tell(d, "");
	return 0;
}

static int serve_loop(struct daemon *d)
{
	struct pollfd p[] = {
		{ .fd = d->device, .events = POLLIN },
		{ .fd = d->signals, .events = POLLIN },
	};
	int interval = notify_interval(), err = 0;

	while (!d->end && !err) {
		if (poll(p, 2, interval) < 0 && errno != EINTR)
			return -errno;
		d->end |= p[1].revents != 0;
		if (p[0].revents && !d->end)
			err = serve_miss(d);
		if (interval > 0)
			notify_state("WATCHDOG=1");
	}
	return err;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Misses are kept from the first time that somebody asks for one. */
static int listen_now(int device)
{
	struct shstk_rules_miss miss;
	int flags = fcntl(device, F_GETFL);

	if (flags < 0 || fcntl(device, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	if (!ioctl(device, SHSTK_RULES_MISS, &miss))
		close(miss.fd);
	else if (errno == EPERM)
		return -errno;
	return 0;
}

int rules_serve(int device, int cache, int ready)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int err = d ? listen_now(device) : -ENOMEM;

	if (!err) {
		d->device = device;
		d->cache = cache;
		d->signals = open_signals();
		if (cache >= 0)
			read_missed(d);
		serve_vdso(d);
		running_files(0, serve_running, d);
		serve_missed(d);
		tell(d, "READY=1\n");
		if (ready >= 0)
			close(ready);
		err = serve_loop(d);
		notify_state("STOPPING=1");
		close(d->signals);
	}
	if (err)
		complain("%s", strerror(-err));
	for (unsigned int i = 0; d && i < d->nr_missed; i++)
		free(d->missed[i]);
	free(d);
	return err ? EXIT_FAILED : EXIT_OK;
}
