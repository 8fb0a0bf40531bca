// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * daemon.c - the daemon: loads the tables of all programs that run.
 *
 * It begins with the files that run now, and with files of root that walks missed earlier. Then it
 * waits for the kernel to hand out files for which walks have no table. Only workers read what
 * strangers wrote.
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
#include "tools/rules/running_files.h"
#include "tools/rules/daemon.h"
#include "tools/rules/source.h"
#include "tools/rules/subordinate.h"
#include "tools/rules/chain_status.h"
#include "tools/rules/trust.h"
#include "tools/shstk.h"

/* Name of the file in the cache that lists the files that walks missed, for the next start. */
#define MISSED "missed"
#define MAX_MISSED 4096

/* Minimum time between two times when all tables are dropped to make room in the kernel. */
#define EMPTY_NS (1800ull * 1000 * 1000 * 1000)

/*
 * The cache is trimmed after this many files, because each of them may have left a table and a
 * link.
 */
#define TRIM_EVERY 256

/**
 * struct daemon - the state of the daemon
 * @device: /dev/shstk_rules.
 * @source: where tables come from; its @stop is a signalfd that becomes readable when the daemon is
 *	to end.
 * @end: the daemon is to end.
 * @missed: names of files that walks missed; @nr_missed of them.
 * @nr_missed: number of elements of @missed.
 * @hopeless: files that are left alone.
 * @subordinate: ids that count as other users.
 * @loaded: number of tables that were loaded.
 * @cached: number of loaded tables that came from the cache.
 * @got: number of tables that were made or found.
 * @emptied: time when all tables were dropped to make room, by CLOCK_BOOTTIME in ns; 0 if never.
 */
struct daemon {
	int device;
	struct source source;
	bool end;
	char *missed[MAX_MISSED];
	unsigned int nr_missed;
	struct hopeless hopeless;
	struct subordinate subordinate;
	uint64_t loaded, cached, got, emptied;
};

/* ---- Files that were missed in earlier runs ---- */

static bool is_missed(const struct daemon *d, const char *path)
{
	for (unsigned int i = 0; i < d->nr_missed; i++)
		if (!strcmp(d->missed[i], path))
			return true;
	return false;
}

/*
 * Adds a name to the list in memory, if there is room and it is not there. Returns whether it did.
 */
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

/* Reads the list that earlier runs left in the cache. */
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

/*
 * Notes a missed file in the list. Only files that others cannot write are noted; otherwise anybody
 * could fill the list.
 */
static void note_missed(struct daemon *d, int file, const char *path)
{
	int fd;

	/* trust_file() has checked that the file has this name here. */
	if (d->source.cache < 0 || is_missed(d, path) || !trust_file(file) || !remember(d, path))
		return;
	fd = openat(d->source.cache, MISSED, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		    0644);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", path);
	close(fd);
}

/* Tells the kernel which ids count as other users. */
static void tell_subordinate(struct daemon *d)
{
	int err = subordinate_tell(d->device, &d->subordinate);

	if (err)
		complain("/etc/subuid: %s: further ids of users count as before", strerror(-err));
}

/* ---- Running programs ---- */

static void serve_file(struct daemon *d, int fd, const char *path);

/* Returns whether the daemon is to end. */
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
	struct compiled_table table;
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
	struct running all = {
		.stop = d->source.stop,
		.use = serve_running,
		.arg = d,
		.subordinate = &d->subordinate,
	};

	serve_vdso(d);
	if (running_files(&all) == -ETIMEDOUT)
		complain(
			"some processes were not searched for files: reading what they have mapped took too long");
}

/*
 * Makes room in the kernel. The kernel does not tell which tables belong to files that nobody runs
 * any more, so all tables are dropped and those of running programs are loaded again. If that needs
 * too much room, too, it is not repeated all the time. Returns whether there is room.
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
	complain(
		"no room for more tables: all are dropped, and those of running programs are loaded again");
	serve_all(d);
	return true;
}

/* ---- One file ---- */

/*
 * Returns whether the error is usual, so that nobody needs to be told: many files have no unwind
 * information.
 */
static bool is_usual(int err)
{
	return err == -ENOENT || err == -ENOEXEC || err == -EXDEV || err == -ECANCELED;
}

static int put_table(struct daemon *d, const struct rules_file *file, const char *path,
		     const struct compiled_table *table)
{
	int err = rules_upload(d->device, file, path, table);

	if (err == -ENOSPC && make_room(d))
		err = rules_upload(d->device, file, path, table);
	if (err)
		complain("%s: %s", path, rules_upload_error(err));
	return err;
}

/* Makes the table of a file and loads it. Returns 0 or a negative errno. */
static int make_and_load(struct daemon *d, const struct rules_file *file, const char *path)
{
	struct compiled_table table;
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

/* Makes and loads the table of an open file. Returns whether there is a table. */
static bool serve_open(struct daemon *d, const struct rules_file *file, const char *path)
{
	int err;

	if (hopeless_has(&d->hopeless, &file->before))
		return false;
	err = make_and_load(d, file, path);
	/* The kernel asks again for a file that changes, in any case. */
	if (err && err != -ECANCELED && err != -ESTALE)
		hopeless_add(&d->hopeless, &file->before, err);
	return !err;
}

/* Makes and loads the table of a file. Takes over @fd. */
static void serve_file(struct daemon *d, int fd, const char *path)
{
	struct rules_file file;

	if (rules_file_begin(&file, fd))
		return;
	serve_open(d, &file, path);
	rules_file_close(&file);
}

/* ---- The start ---- */

/*
 * Serves the files that were missed in earlier runs. A file may be served twice, here and as one
 * that runs now. That does no harm: the second time its table comes from the cache.
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

/* ---- Misses ---- */

/* Tells systemd how many tables were loaded. @before is put in front of the status. */
static void tell(const struct daemon *d, const char *before)
{
	notify_state("%sSTATUS=%" PRIu64 " tables loaded, %" PRIu64 " of them from the cache",
		     before, d->loaded, d->cached);
}

/*
 * Serves one file for which a walk had no table. If it cannot be opened, only this file is
 * affected; the next one may be opened. Chains are cut until the table is there, so everything else
 * comes after that.
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
	/* The file may belong to a user who came since the last miss. */
	tell_subordinate(d);
	if (serve_open(d, &file, path)) {
		note_missed(d, file.fd, path);
		tell(d, "");
	}
	rules_file_close(&file);
}

/* Serves misses until the daemon is to end. Returns 0 or a negative errno. */
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

/* Blocks the signals that end the daemon. Returns a descriptor that reports them. */
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
 * Starts to listen by asking once without waiting. The kernel begins to keep misses when somebody
 * asks for one, and what is missed while the first tables are loaded must not be lost.
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

/*
 * Complains if trust_file() cannot work. A filter of system calls, such as that of
 * RestrictSUIDSGID= in a unit, may forbid the system call that it needs.
 */
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
		tell_subordinate(d);
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
	if (d)
		free(d->subordinate.ranges);
	free(d);
	return err ? EXIT_FAILED : EXIT_OK;
}
