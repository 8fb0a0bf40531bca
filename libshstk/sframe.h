/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sframe.h - SFrame stack trace information, versions 2 and 3.
 *
 * Decodes the section's functions and their rows to the rows of cfi.h. All input
 * is foreign; every loop is bounded by the bytes it reads. Async-signal-safe.
 * Source: "The SFrame Format", versions 2 and 3 (binutils' sframe-spec).
 */
#ifndef SHSTK_SFRAME_H
#define SHSTK_SFRAME_H

#include "cfi.h"

/* Most rows accepted for one function; version 3 cannot count further. */
#define SFRAME_MAX_ROWS 65535

/**
 * struct sframe - a section whose header has been checked
 * @s: its bytes.
 * @m: the machine that they are for.
 * @version: 2 or 3.
 * @sorted: functions lie in the order of their addresses.
 * @pcrel: a function's address counts from the field that holds it, else from
 *	the section.
 * @fixed_fp: where all functions save fp, in bytes from the CFA; 0: rows say.
 * @fixed_ra: the same of the return address.
 * @nfunc: number of functions.
 * @func: offset in the section of their descriptions.
 * @rows: offset in the section of all rows.
 * @end: of all rows.
 */
struct sframe {
	struct section s;
	const struct machine *m;
	uint8_t version;
	bool sorted, pcrel;
	int8_t fixed_fp, fixed_ra;
	uint32_t nfunc;
	size_t func;
	size_t rows, end;
};

/**
 * struct sframe_func - one function
 * @start: its virtual address.
 * @end: behind it.
 * @rows: offset in the section of its first row.
 * @nrows: their number.
 * @addr_size: bytes of a row's address.
 * @flexible: rows name registers.
 * @signal_frame: what it returns to was interrupted.
 * @block: its code is a repetition of blocks of this many bytes, which the rows
 *	describe; 0: it is not.
 */
struct sframe_func {
	uint64_t start, end;
	size_t rows;
	uint32_t nrows;
	uint8_t addr_size;
	bool flexible;
	bool signal_frame;
	uint8_t block;
};

/* 0, or -ENOEXEC for another byte order, version, machine, or nonsense. */
int sframe_parse(struct sframe *sf, const struct section *s, const struct machine *m);

/* Start address of function @i. */
uint64_t sframe_start(const struct sframe *sf, size_t i);

/* All of function @i. False if it is nonsense. */
bool sframe_func(const struct sframe *sf, size_t i, struct sframe_func *f);

/*
 * Give the rows of @f to @row as cfi_run() does. -1 if they are corrupt, do not
 * cover the function from its start, or repeat.
 */
int sframe_run(const struct sframe *sf, const struct sframe_func *f, cfi_row_fn row, void *arg);

/* The row at @vaddr, which lies in @f: 0, or -enum shstk_end. */
int sframe_row(const struct sframe *sf, const struct sframe_func *f, uint64_t vaddr,
	       struct cfi_row *row);

#endif
