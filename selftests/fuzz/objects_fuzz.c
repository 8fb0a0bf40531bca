// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * objects_fuzz.c - what shstk check and shstk run read of programs: any bytes as the program (ELF
 * file or script), any bytes as /etc/ld.so.cache of a system whose program needs a library, and as
 * what dpkg-query says of files.
 *
 * The first byte says which: 2 is the last one, otherwise odd ones are the first.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/elf/objects.h"

static char dir[] = "/tmp/objects-fuzz-XXXXXX";

static void clean(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/etc/ld.so.cache", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/etc", dir);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/p", dir);
	unlink(path);
	rmdir(dir);
}

static void put_file(const char *name, const void *data, size_t size)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0755);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

/* Puts a program there that is linked dynamically. */
static void put_true(void)
{
	static char bytes[1 << 20];
	int fd = open("/bin/true", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (n <= 0)
		abort();
	close(fd);
	put_file("p", bytes, (size_t)n);
}

static void check(const struct objects *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->v[i].path[0] != '/' || set->v[i].parent > i)
			abort();
}

/* Takes what dpkg-query says of some files. A package is named by what is not empty, up to a comma. */
static void take_packages(const uint8_t *data, size_t size)
{
	char paths[][16] = { "/usr/bin/a", "/bin/a", "/usr/lib/b.so", "/c" };
	struct object objects[sizeof(paths) / sizeof(*paths)] = { 0 };
	struct objects set = { .v = objects, .n = sizeof(paths) / sizeof(*paths) };
	FILE *from = size ? fmemopen((void *)data, size, "r") : NULL;

	if (!from)
		return;
	for (size_t i = 0; i < set.n; i++)
		objects[i].path = paths[i];
	objects_take_packages(&set, from);
	fclose(from);
	for (size_t i = 0; i < set.n; i++) {
		const char *package = objects[i].package;

		if (package && (!*package || strlen(package) >= size || strpbrk(package, ",\n")))
			abort();
		free(objects[i].package);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int ready, turn, is_true;
	struct objects set;
	char root[64];

	if (!ready) {
		char etc[64];

		if (!mkdtemp(dir))
			abort();
		atexit(clean);
		snprintf(etc, sizeof(etc), "%s/etc", dir);
		mkdir(etc, 0755);
		ready = 1;
	}
	if (!size)
		return 0;
	if (data[0] == 2) {
		take_packages(data + 1, size - 1);
		return 0;
	}
	if (data[0] & 1) {
		put_file("p", data + 1, size - 1);
		is_true = 0;
	} else {
		if (!is_true++)
			put_true();
		put_file("etc/ld.so.cache", data + 1, size - 1);
	}
	/* The cache is read once per name of a root, so the name changes. */
	snprintf(root, sizeof(root), "%s%s", dir, turn++ & 1 ? "/." : "");
	if (!objects_load("/p", root, &set)) {
		check(&set);
		objects_deinit(&set);
	}
	return 0;
}
