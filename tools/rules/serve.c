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
#include "tools/rules/hopeless.h"
#include "tools/rules/notify.h"
#include "tools/rules/running.h"
#include "tools/rules/serve.h"
#include "tools/rules/source.h"
#include "tools/rules/status.h"
#include "tools/rules/trust.h"
#include "tools/shstk.h"

/* File in the cache with the names of files that walks missed, for the next start. */
#define MISSED "missed"
#define MAX_MISSED 4096

/* Room is made in the kernel no more often than that. */
#define EMPTY_NS (1800ull * 1000 * 1000 * 1000)

/* The cache is looked through after so many files: each may have left a table and a link. */
#define TRIM_EVERY 256

/**
 * struct daemon - the daemon
 * @device: /dev/shstk_rules.
 * @source: where tables come from; its @stop is a signalfd that says that it is to end.
 * @end: it is.
 * @missed: lines of file names; @nr_missed of them.
 * @nr_missed: see @missed.
 * @hopeless: files that are left alone.
 * @loaded: tables that were loaded, @cached of them from the cache.
 * @cached: see @loaded.
 * @got: tables that were made or found.
 * @emptied: when all tables were dropped to make room, by CLOCK_BOOTTIME in ns; 0: never.
 */
struct daemon {
	int device;
	struct source source;
	bool end;
	char *missed[MAX_MISSED];
	unsigned int nr_missed;
	struct hopeless hopeless;
	uint64_t loaded, cached, got, emptied;
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
	int fd = openat(d->source.cache, MISSED, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;

	if (f && trust_file(fd)) {
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

	/* What is trusted has that name, here. */
	if (d->source.cache < 0 || is_missed(d, path) || !trust_file(file) || !remember(d, path))
		return;
	fd = openat(d->source.cache, MISSED, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		    0644);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", path);
	close(fd);
}

/* --- all that runs --- */

static void serve_file(struct daemon *d, int fd, const char *path);

static bool is_over(struct daemon *d)
{
	struct pollfd p = { .fd = d->source.stop, .events = POLLIN };

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
	int err;

	if (rules_file_vdso(&file) || rules_compile(file.data, file.size, NULL, &table))
		return;
	err = rules_upload(d->device, &file, "[vdso]", &table);
	if (err)
		complain("[vdso]: %s", rules_upload_error(err));
	d->loaded += !err;
	free(table.header);
}

static void serve_all(struct daemon *d)
{
	struct running all = { .stop = d->source.stop, .use = serve_running, .arg = d };

	serve_vdso(d);
	if (running_files(&all) == -ETIMEDOUT)
		complain(
			"not all processes were searched for files: of those of many users the kernel tells nothing");
}

/*
 * Which tables are of files that nobody runs any more the kernel does not say: all go, and
 * those of what runs come again. If that is too much, too, it is not done all the time.
 */
static bool make_room(struct daemon *d)
{
	struct shstk_rules_drop all = { .fd = -1, .flags = SHSTK_RULES_DROP_ALL };
	uint64_t now = now_ns(CLOCK_BOOTTIME);

	if (d->emptied && now - d->emptied < EMPTY_NS)
		return false;
	if (ioctl(d->device, SHSTK_RULES_DROP, &all))
		return false;
	d->emptied = now;
	complain("no room for more tables: those of what runs are loaded anew, all others go");
	serve_all(d);
	return true;
}

/* --- one file --- */

/* What has no unwind information is nothing to complain of. */
static bool is_usual(int err)
{
	return err == -ENOENT || err == -ENOEXEC || err == -EXDEV || err == -ECANCELED;
}

static int put_table(struct daemon *d, const struct rules_file *file, const char *path,
		     const struct rules_table *table)
{
	int err = rules_upload(d->device, file, path, table);

	if (err == -ENOSPC && make_room(d))
		err = rules_upload(d->device, file, path, table);
	if (err)
		complain("%s: %s", path, rules_upload_error(err));
	return err;
}

/* Make its table and load it. */
static int make_and_load(struct daemon *d, const struct rules_file *file, const char *path)
{
	struct rules_table table;
	bool cached;
	int err = source_table(&d->source, file->fd, &table, &cached);

	if (err) {
		if (!is_usual(err))
			complain("%s: %s", path, rules_compile_error(err));
		return err;
	}
	err = put_table(d, file, path, &table);
	free(table.header);
	d->loaded += !err;
	d->cached += !err && cached;
	if (d->source.cache >= 0 && ++d->got % TRIM_EVERY == 0)
		cache_trim(d->source.cache);
	return err;
}

/* Return: whether there is a table. */
static bool serve_open(struct daemon *d, const struct rules_file *file, const char *path)
{
	int err;

	if (hopeless_has(&d->hopeless, &file->before))
		return false;
	err = make_and_load(d, file, path);
	/* A file that changes is asked about anew in any case. */
	if (err && err != -ECANCELED && err != -ESTALE)
		hopeless_add(&d->hopeless, &file->before, err);
	return !err;
}

/* @fd is taken over. */
static void serve_file(struct daemon *d, int fd, const char *path)
{
	struct rules_file file;

	if (rules_file_begin(&file, fd))
		return;
	serve_open(d, &file, path);
	rules_file_close(&file);
}

/* --- what is there in the beginning --- */

/*
 * A file may be served twice, here and as one that runs now. That does no harm: the second
 * time its table comes from the cache.
 */
static void serve_missed(struct daemon *d)
{
	for (unsigned int i = 0; i < d->nr_missed && !is_over(d); i++) {
		int fd = open(d->missed[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

		if (fd < 0)
			continue;
		if (trust_file(fd))
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

/*
 * What cannot be opened, for whatever reason, is that file's matter: the next one may be.
 * Chains are cut until the table is there: all else comes after that.
 */
static void serve_miss(struct daemon *d)
{
	struct shstk_rules_miss miss = { 0 };
	char link[64], path[PATH_MAX];
	struct rules_file file;
	ssize_t n;

	if (ioctl(d->device, SHSTK_RULES_MISS, &miss) || rules_file_begin(&file, miss.fd))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", miss.fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	if (serve_open(d, &file, path)) {
		note_missed(d, file.fd, path);
		tell(d, "");
	}
	rules_file_close(&file);
}

static int serve_loop(struct daemon *d)
{
	struct pollfd p[] = {
		{ .fd = d->device, .events = POLLIN },
		{ .fd = d->source.stop, .events = POLLIN },
	};
	int interval = notify_interval();

	while (!d->end) {
		if (poll(p, 2, interval) < 0 && errno != EINTR)
			return -errno;
		d->end |= p[1].revents != 0;
		if (p[0].revents & (POLLERR | POLLHUP | POLLNVAL))
			return -ENODEV;
		if (p[0].revents && !d->end)
			serve_miss(d);
		if (interval > 0)
			notify_state("WATCHDOG=1");
	}
	return 0;
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

/*
 * Asks once without waiting: the kernel begins to keep misses when somebody asks for one,
 * and what is missed while the first tables are loaded must not be lost.
 */
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

/* A filter of system calls, as of RestrictSUIDSGID= in a unit, may forbid what is asked. */
static void check_trust(void)
{
	if (!trust_works())
		complain(
			"no table is kept in the cache or taken from it: openat2(2) does not work here: %s",
			strerror(errno));
}

int rules_serve(int device, int cache, int ready)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int err = d ? listen_now(device) : -ENOMEM;

	if (!err) {
		d->device = device;
		d->source.cache = cache;
		d->source.stop = open_signals();
		if (cache >= 0) {
			check_trust();
			read_missed(d);
		}
		if (rules_hooks_off())
			complain("%s", RULES_HOOKS_OFF);
		serve_all(d);
		serve_missed(d);
		if (cache >= 0)
			cache_trim(cache);
		tell(d, "READY=1\n");
		if (ready >= 0)
			close(ready);
		err = serve_loop(d);
		notify_state("STOPPING=1");
		close(d->source.stop);
	}
	if (err)
		complain("%s", strerror(-err));
	for (unsigned int i = 0; d && i < d->nr_missed; i++)
		free(d->missed[i]);
	free(d);
	return err ? EXIT_FAILED : EXIT_OK;
}
