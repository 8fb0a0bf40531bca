// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * go_fuzz.c - Go's table of functions in files of any content: rules, names and lines of all its
 * functions are read, and reading ends.
 *
 * The first byte says whether the bytes behind it are taken as a file, or as a table that is put
 * into a small program, so that most inputs get as far as the table.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "go/gorule.h"
#include "selftests/go/program.h"

#define LINES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_at(const struct gopclntab *g, uint64_t vaddr)
{
	struct goline lines[LINES];
	struct cfi_row row;
	unsigned int i, n;
	uint64_t rule;

	n = shstk_gopclntab_lines(g, vaddr, lines, LINES);
	if (n > LINES)
		abort();
	for (i = 0; i < n; i++)
		if (!lines[i].function || strlen(lines[i].function) > g->size ||
		    (lines[i].file && strlen(lines[i].file) > g->size))
			abort();
	rule = gorule_at(g, vaddr);
	if (!gorule_row(g, vaddr, &row) != (rule != RULE_NONE))
		abort();
}

static void read_all(const struct gopclntab *g)
{
	uint64_t at = g->text ? g->text : TEXT;
	struct gofunc f;
	unsigned int i;

	for (i = 0; i < 64; i++, at += 61) {
		read_at(g, at);
		if (shstk_gopclntab_find(g, at, &f)) {
			if (f.end <= f.entry)
				abort();
			read_at(g, f.end - 1);
			at = f.end - 61;
		}
	}
}

/* Makes a program without code, whose data is @data. */
static uint8_t *program(const uint8_t *data, size_t size, size_t *ret)
{
	uint8_t *file = malloc(PROGRAM_HEAD + size);

	if (!file)
		abort();
	program_head(file, size);
	memcpy(file + PROGRAM_HEAD, data, size);
	*ret = PROGRAM_HEAD + size;
	return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gofile f;
	uint8_t *file;
	size_t len;

	if (size < 2)
		return 0;
	if (*data & 1) {
		file = malloc(size - 1);
		if (!file)
			abort();
		memcpy(file, data + 1, len = size - 1);
	} else {
		file = program(data + 1, size - 1, &len);
	}
	if (!shstk_gofile_init(&f, file, len))
		read_all(&f.tab);
	shstk_gofile_deinit(&f);
	free(file);
	return 0;
}
