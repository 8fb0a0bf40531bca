/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * holes.h - recognises code that lies where a file was mapped but is no mapping of that file any
 * more.
 *
 * Some programs copy their code to anonymous memory in its place, to have it on huge pages: node
 * with --use-largepages, PHP's opcache.huge_code_pages, ClickHouse. It is the file's code all the
 * same.
 */
#ifndef TOOLS_CONVERT_HOLES_H
#define TOOLS_CONVERT_HOLES_H

#include "libshstk/address_space.h"
#include "tools/proc/maps.h"

/**
 * struct holes - a pass over the mappings of a process
 * @symbols: the store whose limits apply to what is read of the process.
 * @pid: process ID.
 * @path: the file that was mapped last; NULL: none so far.
 * @beside: a mapping of that file.
 * @code: where that file has code, filled when it is needed.
 * @nr_code: number of entries in @code; -1: not filled yet.
 */
struct holes {
	struct shstk_symbols *symbols;
	pid_t pid;
	char *path;
	struct mapping beside;
	struct shstk_file_code code[SHSTK_FILE_CODES];
	int nr_code;
};

/*
 * Begins to go through the mappings of process @pid; holes_end() must follow. The limits of @symbols
 * apply to what is read of it.
 */
void holes_begin(struct holes *holes, struct shstk_symbols *symbols, pid_t pid);

/* Returns whether a mapping may be such code, by what it is called. */
bool holes_may_be(const struct mapping *m);

/**
 * holes_look() - look at the next mapping, in the order of addresses
 * @holes: from holes_begin().
 * @m: the mapping. If it lies where the file that was mapped last has code, it becomes a mapping of
 *	that file. Its path is valid until the next call.
 *
 * Return: whether @m was changed.
 */
bool holes_look(struct holes *holes, struct mapping *m);

void holes_end(struct holes *holes);

#endif
