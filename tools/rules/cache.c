// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cache.c - tables that were made before, on disk, by build id.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmod/rules_check.h"
#include "tools/elf/object.h"
#include "tools/rules/cache.h"

#define CACHE_MAGIC "shstkrul"
/* Another number when rules_compile() makes other tables of the same files. */
#define CACHE_VERSION 2
#define MAX_BYTES ((off_t)1 << 29)

/**
 * struct cached - the beginning of a file; the table follows
 * @magic: CACHE_MAGIC.
 * @version: CACHE_VERSION.
 * @id_size: bytes of @id.
 * @id: build id.
 * @size: bytes of the table.
 * @sum: of its bytes.
 */
struct cached {
	char magic[8];
	uint32_t version;
	uint32_t id_size;
	uint8_t id[64];
	uint64_t size;
	uint64_t sum;
};

/* Finds what a disk does to a file, not what an enemy does: FNV-1a by words. */
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

/* Root's, and nobody else may write to it. */
static bool is_ours(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

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
	if (!fstat(fd, &st) && is_ours(&st))
		return fd;
	close(fd);
	return -EPERM;
}

bool cache_trusts(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && is_ours(&st);
}

/* Its name in the folder: digits. */
static void name_of(const struct build_id *id, char name[140])
{
	build_id_text(id, name);
	strcat(name, ".rules");
}

static bool read_all(int fd, void *buf, size_t size)
{
	uint8_t *p = buf;

	while (size) {
		ssize_t n = read(fd, p, size);

		if (n <= 0)
			return false;
		p += n;
		size -= n;
	}
	return true;
}

static bool is_header(const struct cached *c, const struct build_id *id, off_t size)
{
	return !memcmp(c->magic, CACHE_MAGIC, sizeof(c->magic)) && c->version == CACHE_VERSION &&
	       c->id_size == id->size && !memcmp(c->id, id->data, id->size) &&
	       c->size == (uint64_t)size - sizeof(*c) &&
	       c->size >= sizeof(struct shstk_rules_header);
}

static int read_cached(int fd, const struct build_id *id, struct rules_table *ret)
{
	struct ushstk_rules_view view;
	struct cached c;
	struct stat st;
	int err = -EBADMSG;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_ours(&st) ||
	    st.st_size <= (off_t)sizeof(c) || st.st_size > MAX_BYTES)
		return -EBADMSG;
	if (!read_all(fd, &c, sizeof(c)) || !is_header(&c, id, st.st_size))
		return -EBADMSG;
	*ret = (struct rules_table){ .header = malloc(c.size), .size = c.size };
	if (!ret->header)
		return -ENOMEM;
	if (read_all(fd, ret->header, c.size) && checksum(ret->header, c.size) == c.sum &&
	    !ushstk_rules_check(ret->header, c.size, machine_own(), &view))
		err = 0;
	if (err)
		free(ret->header);
	return err;
}

int cache_get(int folder, const struct build_id *id, struct rules_table *ret)
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

static int write_cached(int fd, const struct build_id *id, const struct rules_table *table)
{
	struct cached c = {
		.magic = CACHE_MAGIC,
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
	memcpy(c.id, id->data, id->size);
	good = fwrite(&c, sizeof(c), 1, f) == 1 && fwrite(table->header, table->size, 1, f) == 1;
	return fclose(f) || !good ? -EIO : 0;
}

int cache_put(int folder, const struct build_id *id, const struct rules_table *table)
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
