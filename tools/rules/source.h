/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - where tables come from: the cache, or a worker.
 */
#ifndef TOOLS_RULES_SOURCE_H
#define TOOLS_RULES_SOURCE_H

#include <stdbool.h>

#include "tools/rules/compile.h"

/**
 * source_table() - the table of an open file
 * @cache: folder of tables (cache_open()), or -1: none are kept.
 * @fd: the file: foreign.
 * @ret: receives the table, or NULL: it is only seen to that the cache has it.
 * @cached: receives whether it was in the cache, if not NULL.
 *
 * Return: 0, or as worker_start() and worker_compile().
 */
int source_table(int cache, int fd, struct rules_table *ret, bool *cached);

#endif
