/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lines.h - source lines of addresses, by .debug_line (DWARF 2 to 5). */
#ifndef SHSTK_SYMBOL_LINES_H
#define SHSTK_SYMBOL_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct Elf;
struct shstk_account;
struct shstk_lines;

/**
 * struct shstk_line - a place in a source file
 * @dir: folder of the file, or "". A relative one is relative to the folder of the compilation.
 * @file: the file, in @dir unless it begins with a slash.
 * @line: line in the file, or 0.
 */
struct shstk_line {
	const char *dir;
	const char *file;
	unsigned int line;
};

/*
 * Makes the line tables of a file whose sections are unpacked and stay. Memory and time are drawn
 * from @account: a table that needs more than the account gets has no lines. Returns NULL when
 * memory runs out.
 */
struct shstk_lines *shstk_lines_create(struct Elf *elf, struct shstk_account *account);
void shstk_lines_destroy(struct shstk_lines *lines);

/*
 * Finds the source line of the code at @addr by the table at @offset. Returns false if the table
 * does not tell.
 */
bool shstk_lines_find(struct shstk_lines *lines, uint64_t offset, uint64_t addr,
		      struct shstk_line *ret);
/* Finds the file with the number @number in the table at @offset; @ret->line is left alone. */
bool shstk_lines_file(struct shstk_lines *lines, uint64_t offset, uint64_t number,
		      struct shstk_line *ret);

#endif /* SHSTK_SYMBOL_LINES_H */
