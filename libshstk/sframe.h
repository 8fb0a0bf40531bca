/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sframe.h - decodes SFrame stack trace information, versions 2 and 3.
 *
 * The functions of an .sframe section and their rows become the rows of cfi.h. The
 * input is not trusted; every loop is bounded by the bytes it reads. All functions are
 * async-signal-safe. Source: "The SFrame Format", versions 2 and 3 (binutils'
 * sframe-spec).
 */
#ifndef SHSTK_SFRAME_H
#define SHSTK_SFRAME_H

#include "cfi.h"

/* Most rows that are accepted for one function; version 3 can't count further. */
#define SFRAME_MAX_ROWS 65535

/**
 * struct sframe - a section whose header has been checked
 * @s: the bytes of the section.
 * @m: the machine whose code the section describes.
 * @version: version of the format, 2 or 3.
 * @sorted: functions lie in the order of their addresses.
 * @pcrel: a function's address is relative to the field that holds it; otherwise it is
 *	relative to the start of the section.
 * @fixed_fp: where all functions save fp, in bytes from the CFA; 0 if each row tells it.
 * @fixed_ra: where all functions save the return address, in bytes from the CFA; 0 if each
 *	row tells it.
 * @nfunc: number of functions.
 * @func: offset in the section of the function descriptions.
 * @rows: offset in the section of the rows of all functions.
 * @end: offset in the section of the end of all rows.
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
 * @start: virtual address of the function.
 * @end: first virtual address behind the function.
 * @rows: offset in the section of the first row.
 * @nrows: number of rows.
 * @addr_size: size of the address in a row, in bytes.
 * @flexible: the rows name the registers that they use.
 * @signal_frame: the function is a signal return trampoline: its caller was interrupted.
 * @block: the code repeats blocks of this many bytes, and the rows describe one block; 0 if the
 *	rows describe the whole function.
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

/*
 * Checks the header of section @s for machine @m and fills @sf. Returns 0, or -ENOEXEC if the
 * byte order, the version or the machine is another one, or the header is corrupt.
 */
int sframe_parse(struct sframe *sf, const struct section *s, const struct machine *m);

/* Returns the start address of function @i. */
uint64_t sframe_start(const struct sframe *sf, size_t i);

/* Reads the description of function @i. Returns false if it is corrupt. */
bool sframe_func(const struct sframe *sf, size_t i, struct sframe_func *f);

/*
 * Calls @row for each row of @f, until it returns something other than 0, as cfi_run() does.
 * Returns 0, or -1 if the rows are corrupt, do not cover the function from its start, or
 * describe repeated blocks.
 */
int sframe_run(const struct sframe *sf, const struct sframe_func *f, cfi_row_fn row, void *arg);

/* Reads the row at @vaddr, which lies in @f. Returns 0, or a negative enum shstk_end. */
int sframe_row(const struct sframe *sf, const struct sframe_func *f, uint64_t vaddr,
	       struct cfi_row *row);

#endif
