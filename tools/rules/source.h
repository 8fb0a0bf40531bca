/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - gets the table of a file from the cache or from a worker.
 */
#ifndef TOOLS_RULES_SOURCE_H
#define TOOLS_RULES_SOURCE_H

#include <stdbool.h>

#include "tools/rules/compile.h"

/**
 * struct source - where tables come from
 * @cache: directory of the cache (cache_open()); -1 if no tables are kept.
 * @stop: as in &struct worker_terms.
 * @leaves_go: programs of Go get no table.
 */
struct source {
	int cache;
	int stop;
	bool leaves_go;
};

/**
 * source_table() - get the table of an open file
 * @s: where it comes from.
 * @fd: the file, from an untrusted source.
 * @ret: receives the table. If it is NULL, the function only makes sure that the cache has it. For
 *	a table from the cache only the header and the size are known, not what it describes.
 * @cached: receives whether the table was in the cache already; may be NULL.
 *
 * Return: 0, or an error of worker_start() or worker_compile().
 */
int source_table(const struct source *s, int fd, struct compiled_table *ret, bool *cached);

#endif
