/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rows.h - the list of rules that compile.c collects from a file, and which of the file's
 * functions have been described so far.
 */
#ifndef TOOLS_RULES_ROWS_H
#define TOOLS_RULES_ROWS_H

#include "libshstk/elf_image.h"

/**
 * struct row - the rule that holds from an address on
 * @vaddr: virtual address, until rows_place() replaces it by
 * @offset: the offset in the file.
 * @rule: SHSTK_RULE_*.
 */
struct row {
	union {
		uint64_t vaddr;
		uint64_t offset;
	};
	uint64_t rule;
};

/* The addresses of a function. */
struct span {
	uint64_t start, end;
};

/**
 * struct rows - what is known so far
 * @img: the file.
 * @v: rows, in no order until rows_sort().
 * @n: their number.
 * @room: for as many.
 * @span: the functions that they are of, in order up to @sorted.
 * @nspan: their number.
 * @span_room: for as many.
 * @sorted: spans of the sections that were read before this one.
 * @err: 0; -ENOMEM, or -E2BIG: something could not be stored.
 */
struct rows {
	const struct elf_image *img;
	struct row *v;
	size_t n, room;
	struct span *span;
	size_t nspan, span_room, sorted;
	int err;
};

/* Add to the list; if that cannot be, it is said in @err. */
void rows_add(struct rows *rows, uint64_t vaddr, uint64_t rule);
void rows_add_span(struct rows *rows, uint64_t start, uint64_t end);

/* A section has been read: what it described counts from now on. */
void rows_end_section(struct rows *rows);

/* Did a section that was read before describe part of it? */
bool rows_described(const struct rows *rows, uint64_t start, uint64_t end);

/* Is it a function of this image, and not described by a section that was read before? */
bool rows_is_new(const struct rows *rows, uint64_t start, uint64_t end);

/* By address; of two at the same address, and of neighbours with the same rule, one stays. */
void rows_sort(struct rows *rows);

/*
 * From virtual addresses to offsets in the file, sorted: what lies in no executable
 * segment is dropped. A segment ends with its last byte, whatever row holds there.
 */
void rows_place(struct rows *rows);

void rows_free(struct rows *rows);

#endif
