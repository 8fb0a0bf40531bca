/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache.h - tables that were made before, on disk, by build id.
 *
 * A folder of root's with a file for each. What is read from there is checked like what
 * a stranger sends. Two files may claim one build id: only of files that root alone can
 * write are tables kept and used.
 */
#ifndef TOOLS_RULES_CACHE_H
#define TOOLS_RULES_CACHE_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/elf/image.h"
#include "tools/rules/compile.h"

#define CACHE_FOLDER "/var/cache/shstk/rules"

/**
 * cache_open() - open the folder, which is made if it is not there
 * @path: the folder.
 *
 * Return: a descriptor, or a negative errno; -EPERM: others may write to it.
 */
int cache_open(const char *path);

/* May the table of this file be kept? */
bool cache_trusts(int fd);

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

#endif
