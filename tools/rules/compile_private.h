/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile_private.h - the parts of compile.c: compile_rule.c turns one row of unwind
 * information into a rule, compile_go.c reads Go's table, compile_known.c adds rules for code
 * that is not described, compile_table.c lays the list out.
 */
#ifndef TOOLS_RULES_COMPILE_PRIVATE_H
#define TOOLS_RULES_COMPILE_PRIVATE_H

#include "libshstk/cfi.h"
#include "tools/rules/compile.h"
#include "tools/rules/rows.h"

/**
 * struct described - a row of unwind information, and what it is from
 * @img: the file.
 * @sec: the section whose expressions the row names; NULL: of a format without such.
 * @row: the row.
 */
struct described {
	const struct elf_image *img;
	const struct cfi_section *sec;
	const struct cfi_row *row;
};

/* The rule for a row that holds from @vaddr on; SHSTK_RULE_CUT if the kernel has none. */
uint64_t kernel_rule(const struct described *d, uint64_t vaddr);

/* Go's functions, if it is a Go program. */
void read_go(struct rows *rows);

/* Functions of the compiler's start files, which have no description. */
void add_start_files(struct rows *rows);

/* To sorted rows: other code that has no description. Leaves them sorted. */
void add_known_code(struct rows *rows);

/* To no rows: an image that describes nothing. */
void add_bare(struct rows *rows);

/* To sorted rows: the entry point is the outermost frame, as nothing has called it. */
void add_entry(struct rows *rows);

/**
 * compile_table() - lay out rows by pages of the file
 * @rows: placed.
 * @t: receives header, size, and how much of the code has rules.
 *
 * Return: 0; -ENOENT: the file has no code; -E2BIG; -ENOMEM.
 */
int compile_table(const struct rows *rows, struct rules_table *t);

#endif
