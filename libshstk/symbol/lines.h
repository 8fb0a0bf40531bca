/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lines.h - from addresses to lines, by .debug_line (DWARF 2 to 5).
 */
#ifndef SHSTK_SYMBOL_LINES_H
#define SHSTK_SYMBOL_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct Elf;
struct shstk_account;
struct shstk_lines;

/**
 * struct shstk_line - a place in a source file
 * @dir: folder of the file, or "". If it is relative, then to the folder of the compilation.
 * @file: the file, in @dir unless it begins with a slash.
 * @line: line in it, or 0.
 */
struct shstk_line {
	const char *dir;
	const char *file;
	unsigned int line;
};

/*
 * The tables of a file, whose sections are unpacked and stay. Memory and time are of @account:
 * a table that would take more than is to be had has no lines. NULL: memory runs out.
 */
struct shstk_lines *shstk_lines_create(struct Elf *elf, struct shstk_account *account);
void shstk_lines_destroy(struct shstk_lines *lines);

/* By the table at @offset: where the code at @addr comes from. False: it does not tell. */
bool shstk_lines_find(struct shstk_lines *lines, uint64_t offset, uint64_t addr,
		      struct shstk_line *ret);
/* The file with that number there; @ret->line is left alone. */
bool shstk_lines_file(struct shstk_lines *lines, uint64_t offset, uint64_t number,
		      struct shstk_line *ret);

#endif /* SHSTK_SYMBOL_LINES_H */
