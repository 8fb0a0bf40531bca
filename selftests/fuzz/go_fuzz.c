// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * go_fuzz.c - Go's table of functions in files of every content: rules, names and lines of
 * all its functions are read, and end.
 *
 * The first byte is whether the bytes behind it are taken as a file, or as a table that is
 * put into a small program, so that most inputs get as far as the table.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gorule.h"

#define TEXT 0x401000ull
#define DATA 0x500000ull
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

/* A program of code that is not there and data that are @data. */
static uint8_t *program(const uint8_t *data, size_t size, size_t *ret)
{
	const size_t head = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
	Elf64_Ehdr eh = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr ph[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = TEXT,
		  .p_filesz = head,
		  .p_memsz = 0x10000 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_vaddr = DATA,
		  .p_offset = head,
		  .p_filesz = size,
		  .p_memsz = size },
	};
	uint8_t *file = malloc(head + size);

	if (!file)
		abort();
	memcpy(file, &eh, sizeof(eh));
	memcpy(file + sizeof(eh), ph, sizeof(ph));
	memcpy(file + head, data, size);
	*ret = head + size;
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
