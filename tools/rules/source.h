/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - where tables come from: the cache, or a worker.
 */
#ifndef TOOLS_RULES_SOURCE_H
#define TOOLS_RULES_SOURCE_H

#include <stdbool.h>

#include "tools/rules/compile.h"

/**
 * struct source - where tables come from
 * @cache: folder of tables (cache_open()), or -1: none are kept.
 * @stop: as in &struct worker_terms.
 */
struct source {
	int cache;
	int stop;
};

/**
 * source_table() - the table of an open file
 * @s: where it comes from.
 * @fd: the file: foreign.
 * @ret: receives the table, or NULL: it is only seen to that the cache has it. Of one from
 *	the cache only the size is known, and not what it describes.
 * @cached: receives whether it was in the cache, if not NULL.
 *
 * Return: 0, or as worker_start() and worker_compile().
 */
int source_table(const struct source *s, int fd, struct rules_table *ret, bool *cached);

#endif
