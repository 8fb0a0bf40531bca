/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache.h - tables that were made before, on disk, by build id.
 *
 * A folder of root's with a file for each. What is read from there is checked like what
 * a stranger sends. Two files may claim one build id: tables are kept and used of such files
 * only that trust_file() likes.
 *
 * A link for each file that has a table here says which build id it has, so that a file that
 * is as it was then need not be read: only a worker may, and to start one takes longer than
 * all else.
 */
#ifndef TOOLS_RULES_CACHE_H
#define TOOLS_RULES_CACHE_H

#include <stdio.h>
#include <sys/stat.h>

#include "tools/elf/image.h"
#include "tools/rules/compile.h"

#define CACHE_FOLDER "/var/cache/shstk/rules"

/* All tables of a developer's machine with 2200 programs and libraries take an eighth. */
#define CACHE_BYTES ((uint64_t)1 << 30)

/**
 * cache_open() - open the folder, which is made if it is not there
 * @path: the folder.
 *
 * Return: a descriptor, or a negative errno; -EPERM: others may write to it.
 */
int cache_open(const char *path);

/**
 * cache_get() - look for a table
 * @folder: of cache_open().
 * @id: the build id.
 * @ret: receives the table; free its header. Only its header and size are set.
 *
 * Return: 0; -ENOENT: there is none; -EBADMSG: there was one, but damaged, and it was
 * deleted; other negative errnos.
 */
int cache_get(int folder, const struct build_id *id, struct rules_table *ret);

/**
 * cache_put() - keep a table
 * @folder: of cache_open().
 * @id: the build id, of size above 0.
 * @table: the table.
 *
 * Return: 0 or a negative errno.
 */
int cache_put(int folder, const struct build_id *id, const struct rules_table *table);

/**
 * cache_find_id() - the build id of a file, if that was noted and it did not change since
 * @folder: of cache_open().
 * @st: the file, which trust_file() likes.
 * @ret: receives it.
 *
 * Return: 0 or a negative errno.
 */
int cache_find_id(int folder, const struct stat *st, struct build_id *ret);

/**
 * cache_note_id() - note the build id of a file
 * @folder: of cache_open().
 * @st: the file, which trust_file() likes, before it was read.
 * @id: its build id, of size above 0.
 *
 * If it cannot be noted the file is read again.
 */
void cache_note_id(int folder, const struct stat *st, const struct build_id *id);

/**
 * cache_trim() - keep it from growing for ever
 * @folder: of cache_open().
 *
 * Above CACHE_BYTES those tables and links go that were not used for the longest time, by
 * days. Links whose table is gone go, and what somebody began to write an hour ago and did
 * not end.
 */
void cache_trim(int folder);

#endif
