/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image.h - ELF files that were mapped at another time or on another machine. They are looked for
 * here, and their build ids prove that they are the same files.
 */
#ifndef TOOLS_ELF_IMAGE_H
#define TOOLS_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/shstk.h"

/**
 * struct build_id - a GNU build id
 * @size: number of bytes, 0 if there is no build id.
 * @data: the bytes.
 */
struct build_id {
	size_t size;
	uint8_t data[64];
};

/**
 * struct image - a file of struct images
 * @path: the path by which the file was asked for.
 * @found: the path at which it was found. It differs from @path through symbolic links, or if the
 *	file lies below a root folder.
 * @fd: descriptor of the open file, or a negative errno if it cannot be used.
 * @id: its build id.
 * @complained: the user has already been told of a problem with this file.
 * @hh: makes it a member of the hash table, by @path.
 */
struct image {
	char *path;
	char *found;
	int fd;
	struct build_id id;
	bool complained;
	UT_hash_handle hh;
};

/**
 * struct images - all files that were asked for so far
 * @root: descriptor of the folder below which files are looked for; or -1.
 * @files: hash table by path.
 */
struct images {
	int root;
	struct image *files;
};

/**
 * images_init() - begin with an empty set
 * @images: the set.
 * @sysroot: folder below which files are looked for, or NULL.
 *
 * Return: 0, or a negative errno if @sysroot cannot be opened.
 */
int images_init(struct images *images, const char *sysroot);

/**
 * images_deinit() - close and release all files
 * @images: the set.
 */
void images_deinit(struct images *images);

/**
 * image_get() - find a file and open it
 * @images: the set.
 * @path: the path by which it was mapped.
 * @wanted: the build id that the file must have, or NULL for any.
 *
 * Prints a message, once per file, if the file is missing or has another build id.
 *
 * Return: the file, ready for use; or NULL.
 */
struct image *image_get(struct images *images, const char *path, const struct build_id *wanted);

/**
 * image_add() - add a mapping of a file to a space
 * @space: the space.
 * @image: the file.
 * @start: first address.
 * @end: first address after it.
 * @offset: offset of @start in the file.
 *
 * Return: what shstk_space_add_file() returns.
 */
int image_add(struct shstk_space *space, const struct image *image, uint64_t start, uint64_t end,
	      uint64_t offset);

/**
 * image_is_code() - is a mapping of a file meant to be executed?
 * @image: the file.
 * @offset: offset of the mapping in the file.
 *
 * Return: true if the file's program headers have code at @offset.
 */
bool image_is_code(const struct image *image, uint64_t offset);

/**
 * build_id_of() - get the build id of an ELF image in memory
 * @bytes: the image, or the beginning of it.
 * @size: number of bytes.
 * @ret: receives the build id; its size is 0 if there is none.
 */
void build_id_of(const void *bytes, size_t size, struct build_id *ret);

/* Does what build_id_of() does, for an open file. Without an ELF file, the size is 0. */
void build_id_of_file(int fd, struct build_id *ret);

/**
 * build_id_text() - write a build id as hexadecimal digits
 * @id: the build id.
 * @buf: receives the text.
 *
 * Return: @buf.
 */
char *build_id_text(const struct build_id *id, char buf[129]);

#endif
