/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * holes.h - code that lies where a file is mapped, but is no mapping of it any more.
 *
 * Programs copy their code to anonymous memory in its place, to have it on huge pages: node
 * with --use-largepages, PHP's opcache.huge_code_pages, ClickHouse. It is the file's code all
 * the same.
 */
#ifndef TOOLS_CONVERT_HOLES_H
#define TOOLS_CONVERT_HOLES_H

#include "libshstk/address_space.h"
#include "tools/proc/maps.h"

/**
 * struct holes - the mappings of a process are gone through
 * @pid: the process.
 * @path: the file that was mapped last; NULL: none was.
 * @beside: a mapping of it.
 * @code: where it has code; filled when it is asked for.
 * @nr_code: entries of @code; -1: nobody asked yet.
 */
struct holes {
	pid_t pid;
	char *path;
	struct mapping beside;
	struct shstk_file_code code[SHSTK_FILE_CODES];
	int nr_code;
};

void holes_begin(struct holes *holes, pid_t pid);

/**
 * holes_look() - the next mapping, in the order of their addresses
 * @holes: from holes_begin().
 * @m: the mapping; if it lies where the file that was mapped last has code, it becomes a
 *	mapping of that file. Its path is valid until the next call.
 *
 * Return: was it made one?
 */
bool holes_look(struct holes *holes, struct mapping *m);

void holes_end(struct holes *holes);

#endif
