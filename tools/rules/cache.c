// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cache.c - the cache of finished tables on disk, by build id.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kmod/rules_check.h"
#include "tools/elf/object.h"
#include "tools/rules/cache.h"
#include "tools/rules/trust.h"
#include "tools/whole_io.h"

#define CACHE_MAGIC "shstkrul"
/* Must be increased when rules_compile() makes other tables for the same files. */
#define CACHE_VERSION 8
#define MAX_BYTES ((off_t)1 << 29)

/* Size that is counted for a link: that of an ordinary table. So there are at most 32768 links. */
#define LINK_BYTES ((uint64_t)1 << 15)

#define HOUR 3600
#define DAY (24 * HOUR)

/**
 * struct cached - the header of a cache file; the table follows it
 * @magic: CACHE_MAGIC.
 * @version: CACHE_VERSION.
 * @id_size: size of @id in bytes.
 * @id: build id.
 * @size: size of the table in bytes.
 * @sum: checksum of the table.
 */
struct cached {
	char magic[8];
	uint32_t version;
	uint32_t id_size;
	uint8_t id[64];
	uint64_t size;
	uint64_t sum;
};

/*
 * Returns the FNV-1a checksum of @data, by words. It detects damage, not forgery: only root can
 * write to the cache directory (trust_owner()).
 */
static uint64_t checksum(const void *data, size_t size)
{
	const uint8_t *p = data;
	uint64_t sum = 0xcbf29ce484222325, word;

	for (; size >= 8; size -= 8, p += 8) {
		memcpy(&word, p, 8);
		sum = (sum ^ word) * 0x100000001b3;
	}
	for (; size; size--, p++)
		sum = (sum ^ *p) * 0x100000001b3;
	return sum;
}

/* Creates the directory and those above it. Returns 0 or a negative errno. */
static int make_folders(const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	strcpy(part, path);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(part, 0755) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(part, 0755) && errno != EEXIST ? -errno : 0;
}

int cache_open(const char *path)
{
	int err = make_folders(path), fd;
	struct stat st;

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && trust_owner(&st))
		return fd;
	close(fd);
	return -EPERM;
}

/* Makes the name of a table in the cache: the build id in hexadecimal digits. */
static void name_of(const struct build_id *id, char name[140])
{
	build_id_text(id, name);
	strcat(name, ".rules");
}

/* Returns whether @c is the header of a file of @size bytes with the table for @id. */
static bool is_header(const struct cached *c, const struct build_id *id, off_t size)
{
	return !memcmp(c->magic, CACHE_MAGIC, sizeof(c->magic)) && c->version == CACHE_VERSION &&
	       c->id_size == id->size && !memcmp(c->id, id->data, id->size) &&
	       c->size == (uint64_t)size - sizeof(*c) &&
	       c->size >= sizeof(struct shstk_rules_header);
}

/*
 * Returns whether the last use was long ago. The time of a cache file is that of its last use; it
 * is written at most once a day.
 */
static bool is_old_use(const struct stat *st)
{
	return st->st_mtime < time(NULL) - DAY;
}

/* Reads and checks a cache file. Returns 0, -EBADMSG if it is not valid, or -ENOMEM. */
static int read_cached(int fd, const struct build_id *id, struct compiled_table *ret)
{
	struct ushstk_rules_view view;
	struct cached c;
	struct stat st;
	int err = -EBADMSG;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !trust_owner(&st) ||
	    st.st_size <= (off_t)sizeof(c) || st.st_size > MAX_BYTES)
		return -EBADMSG;
	if (read_whole(fd, &c, sizeof(c)) != sizeof(c) || !is_header(&c, id, st.st_size))
		return -EBADMSG;
	*ret = (struct compiled_table){ .header = malloc(c.size), .size = c.size };
	if (!ret->header)
		return -ENOMEM;
	if (is_old_use(&st))
		futimens(fd, NULL);
	if (read_whole(fd, ret->header, c.size) == (ssize_t)c.size &&
	    checksum(ret->header, c.size) == c.sum &&
	    !ushstk_rules_check(ret->header, c.size, machine_own(), &view))
		err = 0;
	if (err)
		free(ret->header);
	return err;
}

int cache_get(int folder, const struct build_id *id, struct compiled_table *ret)
{
	char name[140];
	int fd, err;

	if (!id->size || id->size > sizeof(id->data))
		return -ENOENT;
	name_of(id, name);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = read_cached(fd, id, ret);
	close(fd);
	if (err == -EBADMSG)
		unlinkat(folder, name, 0);
	return err;
}

/* Writes a cache file. Closes @fd. Returns 0 or a negative errno. */
static int write_cached(int fd, const struct build_id *id, const struct compiled_table *table)
{
	struct cached c = {
		.version = CACHE_VERSION,
		.id_size = id->size,
		.size = table->size,
		.sum = checksum(table->header, table->size),
	};
	FILE *f = fdopen(fd, "w");
	bool good;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	memcpy(c.magic, CACHE_MAGIC, sizeof(c.magic));
	memcpy(c.id, id->data, id->size);
	good = fwrite(&c, sizeof(c), 1, f) == 1 && fwrite(table->header, table->size, 1, f) == 1;
	return fclose(f) || !good ? -EIO : 0;
}

int cache_put(int folder, const struct build_id *id, const struct compiled_table *table)
{
	char name[140], new[160];
	int fd, err;

	if (!id->size || id->size > sizeof(id->data))
		return -EINVAL;
	name_of(id, name);
	snprintf(new, sizeof(new), "%s.%d", name, (int)getpid());
	unlinkat(folder, new, 0);
	fd = openat(folder, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	err = write_cached(fd, id, table);
	if (!err && renameat(folder, new, folder, name))
		err = -errno;
	if (err)
		unlinkat(folder, new, 0);
	return err;
}

/* ---- Build ids of files ---- */

/*
 * Makes the name of the link for a file. The name contains what identifies the file, and what shows
 * that it did not change.
 */
static void link_name_of(const struct stat *st, char name[100])
{
	snprintf(name, 100, "%jx-%jx-%jx-%jx.%lx.file", (uintmax_t)st->st_dev,
		 (uintmax_t)st->st_ino, (uintmax_t)st->st_size, (uintmax_t)st->st_ctim.tv_sec,
		 (unsigned long)st->st_ctim.tv_nsec);
}

static int digit_of(char c)
{
	const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Reads the build id from a name that name_of() made. Returns 0 or -EBADMSG. */
static int parse_name(const char *name, struct build_id *ret)
{
	size_t n = strspn(name, "0123456789abcdef") / 2;

	if (!n || n > sizeof(ret->data) || strcmp(name + 2 * n, ".rules"))
		return -EBADMSG;
	ret->size = n;
	for (size_t i = 0; i < n; i++)
		ret->data[i] = digit_of(name[2 * i]) << 4 | digit_of(name[2 * i + 1]);
	return 0;
}

int cache_find_id(int folder, const struct stat *st, struct build_id *ret)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	char link[100], name[140];
	struct stat made;
	ssize_t n;

	link_name_of(st, link);
	n = readlinkat(folder, link, name, sizeof(name) - 1);
	if (n < 0)
		return -errno;
	name[n] = '\0';
	if (!fstatat(folder, link, &made, AT_SYMLINK_NOFOLLOW) && is_old_use(&made))
		utimensat(folder, link, now, AT_SYMLINK_NOFOLLOW);
	return parse_name(name, ret);
}

void cache_note_id(int folder, const struct stat *st, const struct build_id *id)
{
	char link[100], name[140];

	link_name_of(st, link);
	name_of(id, name);
	/*
	 * An old link for the same, unchanged file with another build id means that the link was
	 * damaged.
	 */
	unlinkat(folder, link, 0);
	/*
	 * Without the link the build id is read from the file each time, which is slower but not
	 * wrong.
	 */
	if (symlinkat(name, folder, link))
		return;
}

/* ---- The size of the cache ---- */

struct cache_file {
	char name[160];
	time_t used;
	uint64_t size;
};

struct cache_files {
	struct cache_file *v;
	size_t n;
	uint64_t bytes;
};

static bool ends_with(const char *text, size_t len, const char *end)
{
	return len >= strlen(end) && !memcmp(text + len - strlen(end), end, strlen(end));
}

/* Returns whether the name is "ID.rules.PID", a file that cache_put() has begun to write. */
static bool is_begun(const char *name)
{
	size_t len = strlen(name), digits = 0;

	while (digits < len && name[len - digits - 1] >= '0' && name[len - digits - 1] <= '9')
		digits++;
	return digits && ends_with(name, len - digits, ".rules.");
}

/* Notes a file. One whose name is longer than the cache's names is not the cache's. */
static void note_entry(struct cache_files *e, const char *name, const struct stat *st)
{
	const size_t size = strlen(name) + 1;
	struct cache_file *v;

	if (size > sizeof(v->name))
		return;
	v = reallocarray(e->v, e->n + 1, sizeof(*v));
	if (!v)
		return;
	e->v = v;
	v += e->n++;
	memcpy(v->name, name, size);
	v->used = st->st_mtime;
	v->size = S_ISLNK(st->st_mode) ? LINK_BYTES : (uint64_t)st->st_size;
	e->bytes += v->size;
}

static bool is_link_to_nothing(int folder, const char *name, const struct stat *st)
{
	return ends_with(name, strlen(name), ".file") && S_ISLNK(st->st_mode) &&
	       faccessat(folder, name, F_OK, 0);
}

/* Lists the tables and links of the cache in @e, and deletes what is left over. */
static void list_files(int folder, DIR *dir, struct cache_files *e)
{
	struct dirent *d;
	struct stat st;

	while ((d = readdir(dir))) {
		if (fstatat(folder, d->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (is_begun(d->d_name) && st.st_mtime < time(NULL) - HOUR)
			unlinkat(folder, d->d_name, 0);
		else if (is_link_to_nothing(folder, d->d_name, &st))
			unlinkat(folder, d->d_name, 0);
		else if (ends_with(d->d_name, strlen(d->d_name), ".rules") ||
			 ends_with(d->d_name, strlen(d->d_name), ".file"))
			note_entry(e, d->d_name, &st);
	}
}

static int by_use(const void *a, const void *b)
{
	const struct cache_file *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

void cache_trim(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct cache_files e = { 0 };

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	list_files(folder, dir, &e);
	closedir(dir);
	if (e.n)
		qsort(e.v, e.n, sizeof(*e.v), by_use);
	for (size_t i = 0; i < e.n && e.bytes > CACHE_BYTES; i++)
		if (!unlinkat(folder, e.v[i].name, 0))
			e.bytes -= e.v[i].size;
	free(e.v);
}
