/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * forms.h - small programs whose only content is a table of Go's, in each form that Go ever
 * had; for forms_test and to start fuzzing from.
 */
#ifndef SELFTESTS_GO_FORMS_H
#define SELFTESTS_GO_FORMS_H

#include <string.h>

#include "go/gorule.h"
#include "selftests/go/program.h"

#define FUNCS 3
#define FILE_MAX 8192

/* A file that is being put together: a program header, and data that the table is part of. */
struct file {
	uint8_t bytes[FILE_MAX];
	size_t head, size; /* bytes of the headers, and of the whole file */
};

static void put(struct file *f, size_t at, const void *data, size_t n)
{
	memcpy(f->bytes + f->head + at, data, n);
	if (f->size < f->head + at + n)
		f->size = f->head + at + n;
}

static void put32(struct file *f, size_t at, uint32_t v)
{
	put(f, at, &v, 4);
}

static void put64(struct file *f, size_t at, uint64_t v)
{
	put(f, at, &v, 8);
}

static void put_text(struct file *f, size_t at, const char *text)
{
	put(f, at, text, strlen(text) + 1);
}

static void start(struct file *f)
{
	memset(f, 0, sizeof(*f));
	f->head = PROGRAM_HEAD;
}

static void finish(struct file *f)
{
	program_head(f->bytes, f->size - f->head);
}

/*
 * Where things lie, from the start of the table; the same in all forms. The table has three
 * functions of 64 bytes: "main.plain"; "main.outer", with "main.inner[go.shape.int]" inlined at 16
 * to 31; and "runtime.goexit".
 */
enum {
	NAMES = 0x100,
	NAME_PLAIN = 1,
	NAME_OUTER = 0x20,
	NAME_INNER = 0x40,
	NAME_GOEXIT = 0x60,
	CUTAB = 0x200,
	FILES = 0x240,
	FILE_A = 1,
	FILE_B = 0x10,
	PCTAB = 0x300,
	SP = 1,
	FILE_OF = 0x10,
	LINE = 0x20,
	INLINE = 0x30,
	FUNC_DATA = 0x400,
	FUNC_BYTES = 0x80,
	TREE = 0x700,
	MODULE = 0x800,
};

/* A form of the table: how its description of a function is laid out. */
struct form {
	const char *name;
	uint32_t magic;
	bool old; /* offsets count from the table, not from the heaps */
	bool wide; /* start addresses are stored as 64 bits */
	bool cu; /* files are found through lists of compilation units */
	bool start_line;
	unsigned int tree_index, gofunc;
};

static const struct form go_1_2 = { "1.2", 0xfffffffb, .old = true, .wide = true, .tree_index = 4 };
static const struct form go_1_16 = { "1.16", 0xfffffffa, .wide = true, .cu = true,
				     .tree_index = 3 };
static const struct form go_1_18 = { "1.18", 0xfffffff0, .cu = true, .tree_index = 3,
				     .gofunc = 38 };
static const struct form go_1_20 = { "1.20",	      0xfffffff1,  .cu = true, .start_line = true,
				     .tree_index = 3, .gofunc = 40 };

static uint32_t in(const struct form *form, uint32_t heap, uint32_t at)
{
	return form->old ? heap + at : at;
}

/* Writes pairs of values: sp moves by 8 at offset 4, by 32 at offset 8, and back at offset 60. */
static void put_values(struct file *f)
{
	static const uint8_t sp[] = { 2, 4, 16, 4, 64, 52, 79, 4, 0 };
	static const uint8_t file[] = { 4, 16, 2, 16, 1, 32, 0 };
	static const uint8_t line[] = { 22, 16, 20, 16, 19, 32, 0 };
	static const uint8_t inlined[] = { 0, 16, 2, 16, 1, 32, 0 };

	put(f, PCTAB + SP, sp, sizeof(sp));
	put(f, PCTAB + FILE_OF, file, sizeof(file));
	put(f, PCTAB + LINE, line, sizeof(line));
	put(f, PCTAB + INLINE, inlined, sizeof(inlined));
}

static void put_func(struct file *f, const struct form *form, unsigned int i, uint32_t name)
{
	size_t at = FUNC_DATA + i * FUNC_BYTES;
	uint64_t tree = DATA + TREE;
	uint8_t special[4] = { i == 2, i == 2, 0, i == 1 ? form->tree_index + 1 : 0 };

	if (form->wide)
		put64(f, at, TEXT + 64 * i);
	else
		put32(f, at, 64 * i);
	at += form->wide ? 8 : 4;
	put32(f, at, in(form, NAMES, name));
	put32(f, at + 12, in(form, PCTAB, SP));
	put32(f, at + 16, in(form, PCTAB, FILE_OF));
	put32(f, at + 20, in(form, PCTAB, LINE));
	put32(f, at + 24, 3);
	at += 28;
	at += form->cu ? 4 : 0;
	if (form->start_line) {
		put32(f, at, 7);
		at += 4;
	}
	put(f, at, special, 4);
	put32(f, at + 4 + 4 * 2, i == 1 ? in(form, PCTAB, INLINE) : 0);
	at += 4 + 3 * 4;
	if (form->wide)
		put64(f, ALIGN_UP(at, 8) + 8 * form->tree_index, tree);
	else
		put32(f, at + 4 * form->tree_index, TREE);
}

static void put_tree(struct file *f, const struct form *form)
{
	if (form->start_line) {
		put32(f, TREE + 4, NAME_INNER);
		put32(f, TREE + 8, 8);
		put32(f, TREE + 12, 3);
	} else {
		put32(f, TREE + 12, in(form, NAMES, NAME_INNER));
		put32(f, TREE + 16, 8);
	}
}

static void put_starts(struct file *f, const struct form *form)
{
	size_t at = form->old ? 16 : FUNC_DATA - 0x40;
	unsigned int i;

	for (i = 0; i <= FUNCS; i++) {
		uint32_t place = FUNC_DATA + i * FUNC_BYTES - (form->old ? 0 : FUNC_DATA - 0x40);

		if (form->wide) {
			put64(f, at + 16 * i, TEXT + 64 * i);
			put64(f, at + 16 * i + 8, place);
		} else {
			put32(f, at + 8 * i, 64 * i);
			put32(f, at + 8 * i + 4, place);
		}
	}
	if (form->old) { /* the place of the list of files follows the last start address */
		put32(f, at + 16 * FUNCS + 8, CUTAB);
		put32(f, CUTAB, 0);
		put32(f, CUTAB + 4, FILES + FILE_A);
		put32(f, CUTAB + 8, FILES + FILE_B);
	} else {
		put32(f, CUTAB, UINT32_MAX);
		put32(f, CUTAB + 4, FILE_A);
		put32(f, CUTAB + 8, FILE_B);
	}
}

static void put_header(struct file *f, const struct form *form, uint64_t text)
{
	static const uint32_t heaps[] = { NAMES, CUTAB, FILES, PCTAB, FUNC_DATA - 0x40 };
	size_t at = 24, i;

	put32(f, 0, form->magic);
	put32(f, 4, 0x08010000);
	put64(f, 8, FUNCS);
	if (form->old)
		return;
	put64(f, 16, 2);
	if (!form->wide) {
		put64(f, 24, text);
		at += 8;
	}
	for (i = 0; i < ARRAY_SIZE(heaps); i++)
		put64(f, at + 8 * i, heaps[i]);
}

/* Writes the part of moduledata that the library reads. */
static void put_module(struct file *f, const struct form *form, unsigned int gofunc)
{
	put64(f, MODULE, DATA);
	if (form->old) {
		put64(f, MODULE + 8 * 4, FUNCS + 1);
		put64(f, MODULE + 8 * 12, TEXT);
	} else {
		put64(f, MODULE + 8, DATA + NAMES);
		put64(f, MODULE + 8 * 22, TEXT);
	}
	if (gofunc) {
		put64(f, MODULE + 8 * gofunc, DATA);
		put64(f, MODULE + 8 * (gofunc + 1), DATA + TREE);
	}
	put64(f, MODULE + 8 * 50, 0);
}

static void make(struct file *f, const struct form *form, uint64_t text, unsigned int gofunc)
{
	start(f);
	put_header(f, form, text);
	put_text(f, NAMES + NAME_PLAIN, "main.plain");
	put_text(f, NAMES + NAME_OUTER, "main.outer");
	put_text(f, NAMES + NAME_INNER, "main.inner[go.shape.int]");
	put_text(f, NAMES + NAME_GOEXIT, "runtime.goexit");
	put_text(f, FILES + FILE_A, "/a.go");
	put_text(f, FILES + FILE_B, "/b.go");
	put_values(f);
	put_func(f, form, 0, NAME_PLAIN);
	put_func(f, form, 1, NAME_OUTER);
	put_func(f, form, 2, NAME_GOEXIT);
	put_tree(f, form);
	put_starts(f, form);
	put_module(f, form, gofunc);
	finish(f);
}

#endif
