/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rule_rows.h - the list of rules that compile.c collects from a file, and the functions of the
 * file that are described so far.
 */
#ifndef TOOLS_RULES_RULE_ROWS_H
#define TOOLS_RULES_RULE_ROWS_H

#include "libshstk/elf_image.h"

/**
 * struct row - a rule, and the address from which it is valid
 * @vaddr: virtual address, until rows_place() replaces it by @offset.
 * @offset: offset in the file.
 * @rule: SHSTK_RULE_*.
 */
struct row {
	union {
		uint64_t vaddr;
		uint64_t offset;
	};
	uint64_t rule;
};

/* The range of addresses of a function. */
struct span {
	uint64_t start, end;
};

/**
 * struct rows - what is known so far
 * @img: the file.
 * @v: rows, unsorted until rows_sort().
 * @n: number of rows.
 * @room: number of rows for which there is room.
 * @span: functions that the rows belong to, sorted up to @sorted.
 * @nspan: number of spans.
 * @span_room: number of spans for which there is room.
 * @sorted: number of spans from the sections that were read before the current one.
 * @err: 0; -ENOMEM or -E2BIG if something could not be stored.
 */
struct rows {
	const struct elf_image *img;
	struct row *v;
	size_t n, room;
	struct span *span;
	size_t nspan, span_room, sorted;
	int err;
};

/* Add an element to the list; a failure is stored in @err. */
void rows_add(struct rows *rows, uint64_t vaddr, uint64_t rule);
void rows_add_span(struct rows *rows, uint64_t start, uint64_t end);

/* Ends a section. From now on rows_described() counts what it described. */
void rows_end_section(struct rows *rows);

/* Returns whether a section that was read before described part of the range. */
bool rows_described(const struct rows *rows, uint64_t start, uint64_t end);

/*
 * Returns whether the range is a function of this image that no section that was read before
 * described.
 */
bool rows_is_new(const struct rows *rows, uint64_t start, uint64_t end);

/*
 * Sorts the rows by address. Keeps one row of several at the same address, and one of neighbours
 * with the same rule.
 */
void rows_sort(struct rows *rows);

/*
 * Converts virtual addresses to offsets in the file and sorts the rows. Rows that lie in no
 * executable segment are dropped. A segment ends with its last byte, whatever row is valid there.
 */
void rows_place(struct rows *rows);

/* Frees the lists. */
void rows_free(struct rows *rows);

#endif
