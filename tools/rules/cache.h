/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache.h - tables that were made before, on disk, by build id.
 *
 * A folder of root's with a file for each. What is read from there is checked like what
 * a stranger sends. Two files may claim one build id: tables are kept and used of such files
 * only that trust_file() likes.
 */
#ifndef TOOLS_RULES_CACHE_H
#define TOOLS_RULES_CACHE_H

#include <stdio.h>

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
 * cache_trim() - keep it from growing for ever
 * @folder: of cache_open().
 *
 * Above CACHE_BYTES those tables go that were not used for the longest time, by days. What
 * somebody began to write an hour ago and did not end goes, too.
 */
void cache_trim(int folder);

#endif
