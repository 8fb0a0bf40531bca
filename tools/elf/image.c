// SPDX-License-Identifier: GPL-2.0-or-later
/* image.c - ELF files that were mapped at another time or on another machine. See image.h. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "libshstk/symbol/build_id.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/elf/image.h"
#include "tools/shstk.h"

#define PAGE 4096ull

int images_init(struct images *images, const char *sysroot)
{
	struct rlimit limit;

	memset(images, 0, sizeof(*images));
	images->root = -1;
	elf_version(EV_CURRENT);
	/* Every file of the set stays open: allow as many descriptors as possible. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (!sysroot)
		return 0;
	images->root = open(sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return images->root < 0 ? -errno : 0;
}

static void destroy(struct image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	free(image->found);
	free(image->path);
	free(image);
}

void images_deinit(struct images *images)
{
	struct image *image, *next;

	HASH_ITER(hh, images->files, image, next)
	{
		HASH_DEL(images->files, image);
		destroy(image);
	}
	if (images->root >= 0)
		close(images->root);
}

static void take_build_id(Elf *elf, struct build_id *ret)
{
	const void *bytes;
	size_t size = elf ? shstk_build_id(elf, &bytes) : 0;

	ret->size = 0;
	if (size && size <= sizeof(ret->data)) {
		ret->size = size;
		memcpy(ret->data, bytes, size);
	}
	elf_end(elf);
}

void build_id_of(const void *bytes, size_t size, struct build_id *ret)
{
	/* elf_memory() does not write to the bytes, although its parameter is not const. */
	take_build_id(elf_memory((char *)bytes, size), ret);
}

void build_id_of_file(int fd, struct build_id *ret)
{
	elf_version(EV_CURRENT);
	take_build_id(shstk_elf_bounded(fd) ? elf_begin(fd, ELF_C_READ, NULL) : NULL, ret);
}

char *build_id_text(const struct build_id *id, char buf[129])
{
	strcpy(buf, "none");
	for (size_t i = 0; i < id->size; i++)
		sprintf(buf + 2 * i, "%02x", id->data[i]);
	return buf;
}

/* Returns the path of the open file @fd as the kernel names it, or a copy of @path. */
static char *name_of(int fd, const char *path)
{
	char link[64], name[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n <= 0)
		return strdup(path);
	name[n] = '\0';
	return strdup(name);
}

/* Opens a file and puts it into the set. Returns NULL if there is no memory. */
static struct image *add(struct images *images, const char *path)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->path = strdup(path);
	image->fd = regular_open_below(images->root, path, 0);
	if (image->fd < 0) {
		complain("cannot open %s: %s", path, strerror(-image->fd));
		image->complained = true;
	} else {
		image->found = name_of(image->fd, path);
		build_id_of_file(image->fd, &image->id);
	}
	if (image->path && (image->fd < 0 || image->found)) {
		HASH_ADD_KEYPTR(hh, images->files, image->path, strlen(image->path), image);
		if (image->hh.tbl)
			return image;
	}
	destroy(image);
	return NULL;
}

struct image *image_get(struct images *images, const char *path, const struct build_id *wanted)
{
	struct image *image;
	char is[129], was[129];

	HASH_FIND_STR(images->files, path, image);
	if (!image)
		image = add(images, path);
	if (!image)
		return NULL;
	if (image->fd < 0)
		return NULL;
	if (!wanted || !wanted->size ||
	    (wanted->size == image->id.size && !memcmp(wanted->data, image->id.data, wanted->size)))
		return image;
	if (!image->complained)
		complain(
			"%s is not used, as it is not the file that was mapped: its build id is %s, not %s",
			image->found, build_id_text(&image->id, is), build_id_text(wanted, was));
	image->complained = true;
	return NULL;
}

int image_add(struct shstk_space *space, const struct image *image, uint64_t start, uint64_t end,
	      uint64_t offset)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", image->fd);
	return shstk_space_add_file(space, path, start, end, offset);
}

bool image_is_code(const struct image *image, uint64_t offset)
{
	Elf *elf = shstk_elf_bounded(image->fd) ? elf_begin(image->fd, ELF_C_READ, NULL) : NULL;
	bool code = false;
	GElf_Phdr ph;
	size_t nr;

	if (!elf || elf_getphdrnum(elf, &nr))
		nr = 0;
	for (size_t i = 0; i < nr && !code && gelf_getphdr(elf, i, &ph); i++)
		code = ph.p_type == PT_LOAD && ph.p_flags & PF_X &&
		       offset >= (ph.p_offset & -PAGE) && offset < ph.p_offset + ph.p_filesz;
	elf_end(elf);
	return code;
}
