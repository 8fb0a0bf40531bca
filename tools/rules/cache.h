/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache.h - the cache of finished tables on disk, by build id.
 *
 * The cache is a directory that belongs to root, with one file per table. A table that is read from
 * it is checked in the same way as data from a stranger. Two files may have the same build id by
 * fraud, so tables are kept and used only for files that trust_file() accepts.
 *
 * For each file that has a table here, a link tells its build id. So a file that has not changed
 * need not be read: only a worker may read it, and starting a worker takes longer than everything
 * else.
 */
#ifndef TOOLS_RULES_CACHE_H
#define TOOLS_RULES_CACHE_H

#include <stdio.h>
#include <sys/stat.h>

#include "tools/elf/image.h"
#include "tools/rules/compile.h"

#define CACHE_FOLDER "/var/cache/shstk/rules"

/* The tables of a developer's machine with 2200 programs and libraries take an eighth of this. */
#define CACHE_BYTES ((uint64_t)1 << 30)

/**
 * cache_open() - open the cache directory, and create it if necessary
 * @path: the directory.
 *
 * Return: a descriptor, or a negative errno; -EPERM if others may write to the directory.
 */
int cache_open(const char *path);

/**
 * cache_get() - look for a table
 * @folder: descriptor from cache_open().
 * @id: the build id.
 * @ret: receives the table; the caller frees its header. Only header and size are set.
 *
 * Return: 0; -ENOENT if there is none; -EBADMSG if it was damaged, then it is deleted; other
 * negative errnos.
 */
int cache_get(int folder, const struct build_id *id, struct compiled_table *ret);

/**
 * cache_put() - store a table
 * @folder: descriptor from cache_open().
 * @id: the build id; its size is not 0.
 * @table: the table.
 *
 * Return: 0 or a negative errno.
 */
int cache_put(int folder, const struct build_id *id, const struct compiled_table *table);

/**
 * cache_find_id() - find the build id of a file, if it was noted and the file has not changed since
 * @folder: descriptor from cache_open().
 * @st: the file, which trust_file() accepts.
 * @ret: receives the build id.
 *
 * Return: 0 or a negative errno.
 */
int cache_find_id(int folder, const struct stat *st, struct build_id *ret);

/**
 * cache_note_id() - note the build id of a file
 * @folder: descriptor from cache_open().
 * @st: status of the file from before it was read; trust_file() accepts the file.
 * @id: its build id; its size is not 0.
 *
 * If this fails, the file is read again the next time.
 */
void cache_note_id(int folder, const struct stat *st, const struct build_id *id);

/**
 * cache_trim() - limit the size of the cache
 * @folder: descriptor from cache_open().
 *
 * If the cache is larger than CACHE_BYTES, the tables and links that were not used for the longest
 * time, in days, are deleted. Links whose table is gone are deleted, and files that somebody began
 * to write more than an hour ago and did not finish.
 */
void cache_trim(int folder);

#endif
