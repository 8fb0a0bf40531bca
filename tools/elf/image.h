/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/elf/image.h - ELF files that another machine or another time had mapped:
 * found here, and checked to be the same by their build ids.
 */
#ifndef TOOLS_ELF_IMAGE_H
#define TOOLS_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshstk/shstk.h"

/**
 * struct build_id - a GNU build id
 * @size: its bytes, 0 if there is none.
 * @data: the bytes.
 */
struct build_id {
	size_t size;
	uint8_t data[64];
};

/**
 * struct image - a file
 * @path: as it was named.
 * @found: where it was found: other than @path through links, or below a root
 *	folder.
 * @fd: descriptor, or a negative errno: it cannot be used.
 * @id: its build id.
 * @complained: something was said about it already.
 * @next: next one of the set.
 */
struct image {
	char *path;
	char *found;
	int fd;
	struct build_id id;
	bool complained;
	struct image *next;
};

/**
 * struct images - all files that were asked for
 * @root: folder below which they are looked for, as a descriptor; or -1.
 * @buckets: by path.
 */
struct images {
	int root;
	struct image *buckets[256];
};

/**
 * images_init() - start with no files
 * @images: the set.
 * @sysroot: folder below which files are looked for, or NULL.
 *
 * Return: 0 or a negative errno: @sysroot cannot be opened.
 */
int images_init(struct images *images, const char *sysroot);

/**
 * images_deinit() - release all files
 * @images: the set.
 */
void images_deinit(struct images *images);

/**
 * image_get() - open a file
 * @images: the set.
 * @path: the file as it was named.
 * @wanted: the build id it must have, or NULL.
 *
 * A file that is not there, or not the same one, is complained of, once.
 *
 * Return: the file, usable; or NULL.
 */
struct image *image_get(struct images *images, const char *path, const struct build_id *wanted);

/**
 * image_add() - add a mapping of a file to a space
 * @space: the space.
 * @image: the file.
 * @start: first address.
 * @end: first address behind it.
 * @offset: offset of @start in the file.
 *
 * Return: as shstk_space_add_file().
 */
int image_add(struct shstk_space *space, const struct image *image, uint64_t start, uint64_t end,
	      uint64_t offset);

/**
 * image_is_code() - what a mapping of a file is for
 * @image: the file.
 * @offset: offset of the mapping in the file.
 *
 * Return: true if the file's program headers have code there.
 */
bool image_is_code(const struct image *image, uint64_t offset);

/**
 * build_id_of() - the build id of an ELF image in memory
 * @bytes: the image, or the beginning of it.
 * @size: bytes of it.
 * @ret: receives the build id.
 */
void build_id_of(const void *bytes, size_t size, struct build_id *ret);

/* As build_id_of(), of an open file; it is none if it is no ELF file. */
void build_id_of_file(int fd, struct build_id *ret);

/**
 * build_id_text() - a build id in hexadecimal digits
 * @id: the build id.
 * @buf: receives the text.
 *
 * Return: @buf.
 */
char *build_id_text(const struct build_id *id, char buf[129]);

#endif
