// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * debugfile.c - finding separate debug files.
 *
 * A debug file is looked for by build id below the debug folders, else by .gnu_debuglink, which is
 * a file name and a checksum: beside the file, in .debug beside it, and in the debug folders' copy
 * of the file system tree. For names only, the servers that the user named are asked, too. No file
 * is taken without proof that it belongs to the program.
 *
 * A build id and a checksum are no proof against somebody who makes false ones. In a user namespace
 * anybody can mount anything over the debug folders, and map files that others have mapped, too. So
 * the debug folders of this process are looked at first, and a file found below another root is
 * taken only if its owner could have changed the program's file itself.
 */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "build_id.h"
#include "debugfile.h"
#include "debuginfod.h"
#include "elf_file.h"
#include "root.h"

#define BUILD_ID_MAX 64
#define LINK_BYTES 8192 /* more than a name and its checksum take */

/* Steps through a colon-separated list; returns false at its end. */
static bool next_dir(const char **dirs, const char **dir, int *len)
{
	const char *stop;

	while (**dirs == ':')
		(*dirs)++;
	if (!**dirs)
		return false;
	stop = strchrnul(*dirs, ':');
	*dir = *dirs;
	*len = stop - *dirs;
	*dirs = stop;
	return true;
}

static bool trusted(const struct shstk_debugplace *place, int fd)
{
	struct stat st;

	return place->root->fd < 0 ||
	       (!fstat(fd, &st) &&
		(!st.st_uid || st.st_uid == place->owner || st.st_uid == geteuid()));
}

int shstk_debugfile_named(const struct shstk_debugplace *place, const char *path)
{
	int fd = shstk_root_open(place->root, path, 0);

	if (fd < 0 || trusted(place, fd))
		return fd;
	close(fd);
	return -EPERM;
}

static int open_format(const struct shstk_debugplace *place, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int open_format(const struct shstk_debugplace *place, const char *format, ...)
{
	va_list args;
	char *path;
	int fd;

	va_start(args, format);
	fd = vasprintf(&path, format, args);
	va_end(args);
	if (fd < 0)
		return -ENOMEM;
	fd = shstk_debugfile_named(place, path);
	free(path);
	return fd;
}

static bool same_id(int fd, const void *build_id, size_t size)
{
	Elf *elf = shstk_elf_begin(fd);
	const void *id;
	bool same;

	same = elf && shstk_build_id(elf, &id) == size && !memcmp(id, build_id, size);
	elf_end(elf);
	return same;
}

static int open_by_id(const struct shstk_debugplace *place, const void *build_id, size_t size)
{
	const uint8_t *id = build_id;
	char hex[2 * BUILD_ID_MAX + 1];
	const char *dirs = place->dirs, *dir;
	size_t i;
	int fd, len;

	if (size < 2 || size > BUILD_ID_MAX)
		return -ENOENT;
	for (i = 0; i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	while (next_dir(&dirs, &dir, &len)) {
		fd = open_format(place, "%.*s/.build-id/%.2s/%s.debug", len, dir, hex, hex + 2);
		if (fd >= 0 && same_id(fd, build_id, size))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

int shstk_debugfile_by_id(const struct shstk_debugplace *place, const void *build_id, size_t size)
{
	const struct shstk_root ours = { .fd = -1 };
	const struct shstk_debugplace here = { .root = &ours, .dirs = place->dirs };
	int fd = open_by_id(&here, build_id, size);

	return fd < 0 && place->root->fd >= 0 ? open_by_id(place, build_id, size) : fd;
}

int shstk_debugfile_fetch(Elf *elf)
{
	const void *id;
	size_t size = shstk_build_id(elf, &id);
	int fd;

	if (size < 2 || size > BUILD_ID_MAX)
		return -ENOENT;
	fd = shstk_debuginfod_open(id, size);
	if (fd >= 0 && !same_id(fd, id, size)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

static bool same_crc(int fd, uint32_t wanted)
{
	uint8_t buf[64 * 1024];
	uLong crc = crc32(0, NULL, 0);
	off_t pos = 0;
	ssize_t n;

	if (!shstk_elf_dense(fd))
		return false;
	while ((n = pread(fd, buf, sizeof(buf), pos)) > 0) {
		crc = crc32(crc, buf, n);
		pos += n;
	}
	return n == 0 && crc == wanted;
}

static int checked(int fd, uint32_t crc)
{
	if (fd >= 0 && !same_crc(fd, crc)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

static int open_by_link(const struct shstk_debugplace *place, const char *path, const char *link,
			uint32_t crc)
{
	const char *slash = strrchr(path, '/'), *dirs = place->dirs, *dir;
	int base = slash ? slash - path : 0;
	int fd, len;

	if (!slash || strchr(link, '/'))
		return -ENOENT;
	/*
	 * A link to the file itself leads to no debug information, so that name is not tried here.
	 */
	if (strcmp(link, slash + 1)) {
		fd = checked(open_format(place, "%.*s/%s", base, path, link), crc);
		if (fd >= 0)
			return fd;
	}
	fd = checked(open_format(place, "%.*s/.debug/%s", base, path, link), crc);
	while (fd < 0 && next_dir(&dirs, &dir, &len))
		fd = checked(open_format(place, "%.*s%.*s/%s", len, dir, base, path, link), crc);
	return fd;
}

/*
 * Returns the name of the debug file in .gnu_debuglink, or NULL. libelf reads such a section whole, so none may be
 * larger than a name of a file.
 */
static const char *link_of(Elf *elf, GElf_Word *crc)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = shstk_elf_next_named(elf, scn, ".gnu_debuglink", &shdr)))
		if (shdr.sh_size > LINK_BYTES)
			return NULL;
	return dwelf_elf_gnu_debuglink(elf, crc);
}

const char *shstk_debugfile_promised(Elf *elf)
{
	GElf_Word crc;
	const char *link = link_of(elf, &crc);
	size_t digits = link ? strspn(link, "0123456789abcdef") : 0;

	return link && (digits < 32 || strcmp(link + digits, ".debug")) ? link : NULL;
}

int shstk_debugfile_open(const struct shstk_debugplace *place, const char *path, Elf *elf)
{
	const void *id;
	const char *link;
	GElf_Word crc;
	size_t size;
	int fd = -ENOENT;

	size = shstk_build_id(elf, &id);
	if (size)
		fd = shstk_debugfile_by_id(place, id, size);
	if (fd >= 0)
		return fd;
	link = link_of(elf, &crc);
	return link ? open_by_link(place, path, link, crc) : -ENOENT;
}
