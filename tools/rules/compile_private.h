/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile_private.h - the functions that the parts of compile.c call in each other: compile_rule.c
 * turns one row of unwind information into a rule, compile_go.c reads the function table of Go,
 * compile_known.c adds rules for known code without unwind information, compile_table.c lays out
 * the table.
 */
#ifndef TOOLS_RULES_COMPILE_PRIVATE_H
#define TOOLS_RULES_COMPILE_PRIVATE_H

#include "libshstk/cfi.h"
#include "tools/rules/compile.h"
#include "tools/rules/rule_rows.h"

/**
 * struct described - a row of unwind information, and where it comes from
 * @img: the file.
 * @sec: the section that contains the expressions of the row; NULL if the format has none.
 * @row: the row.
 */
struct described {
	const struct elf_image *img;
	const struct cfi_section *sec;
	const struct cfi_row *row;
};

/*
 * Returns the rule for a row that is valid from @vaddr on. If no kind can express it, that is
 * SHSTK_RULE_CUT, or LOST_RULE() if the frame has no record.
 */
uint64_t kernel_rule(const struct described *d, uint64_t vaddr);

/* The rule of a frame that no kind can express, and that has no frame record; see the format. */
#define LOST_RULE(machine)                                      \
	((uint64_t)SHSTK_RULE_CFA_MAX << SHSTK_RULE_CFA_SHIFT | \
	 ((machine)->arch == SHSTK_ARCH_X86 ? SHSTK_RULE_REG : SHSTK_RULE_RETURN))

/* Adds the rules of the functions of a Go program, if it is one. */
void read_go(struct rows *rows);

/* Adds rules for the functions of the compiler's start files, which have no unwind information. */
void add_start_files(struct rows *rows);

/*
 * Adds rules for other known code without unwind information. Takes sorted rows and leaves them
 * sorted.
 */
void add_known_code(struct rows *rows);

/* Adds rules for an image that describes nothing, to rows that are empty. */
void add_undescribed(struct rows *rows);

/* Makes the entry point the outermost frame, because nothing has called it. The rows are sorted. */
void add_entry(struct rows *rows);

/**
 * compile_table() - lay out rows by pages of the file
 * @rows: the rows, after rows_place().
 * @t: receives the header, the size, and how much of the code has rules.
 *
 * Return: 0; -ENOENT if the file has no code; -E2BIG; -ENOMEM.
 */
int compile_table(const struct rows *rows, struct compiled_table *t);

#endif
