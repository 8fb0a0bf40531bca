// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compile.c - compiles the unwind information of a file to a table for the kernel.
 *
 * The decoders of libshstk read each section row by row. The result is a list of addresses, each
 * with the rule that is valid from there on (compile_rule.c). Code that has no unwind information
 * but is known gets its rules, too (compile_known.c). The list is sorted, rows that change nothing
 * are removed (rule_rows.c), and it is laid out by pages of the file (compile_table.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "libshstk/sframe.h"
#include "libshstk/symbol/symbol.h"
#include "tools/rules/compile_private.h"

/**
 * struct section_reading - a section that is being read
 * @rows: receives the rules.
 * @sec: the section; NULL for .sframe.
 */
struct section_reading {
	struct rows *rows;
	const struct cfi_section *sec;
};

static int take_row(void *arg, uint64_t start, const struct cfi_row *row)
{
	const struct section_reading *r = arg;
	const struct described d = { r->rows->img, r->sec, row };

	rows_add(r->rows, start, kernel_rule(&d, start));
	return r->rows->err;
}

/*
 * Ends a function. From @bad on, if that is in front of its end, its rows could not be read: a rule there says
 * that the kernel has no means to describe it.
 */
static void end_function(struct rows *rows, uint64_t start, uint64_t end, uint64_t bad)
{
	if (bad < end)
		rows_add(rows, bad, SHSTK_RULE_CUT);
	rows_add(rows, end, SHSTK_RULE_NONE);
	rows_add_span(rows, start, end);
}

/* Reads a section of .eh_frame or .debug_frame format. */
static void read_cfi(struct rows *rows, const struct section *s, bool debug_frame)
{
	const struct cfi_section sec = { .s = *s, .debug_frame = debug_frame };
	struct section_reading reading = { rows, &sec };
	size_t off = 0, next;
	struct fde fde;
	uint64_t bad;
	struct cfi_run run = {
		.sec = &sec, .fde = &fde, .row = take_row, .arg = &reading, .bad = &bad
	};
	int kind;

	while (s->size && !rows->err && (kind = cfi_entry(&sec, off, &fde, &next)) >= 0) {
		off = next;
		if (kind != 1 || !rows_is_new(rows, fde.start, fde.end))
			continue;
		run.limit = fde.end;
		end_function(rows, fde.start, fde.end, cfi_run(&run) ? bad : fde.end);
	}
	rows_end_section(rows);
}

static void read_sframe(struct rows *rows)
{
	struct section_reading reading = { .rows = rows };
	struct sframe_func f;
	struct sframe sf;

	if (!rows->img->sframe.size || sframe_parse(&sf, &rows->img->sframe, rows->img->m))
		return;
	for (size_t i = 0; i < sf.nfunc && !rows->err; i++) {
		size_t first = rows->n;

		/* Blocks are stubs of the linker, which are in .eh_frame, too. */
		if (!sframe_func(&sf, i, &f) || f.block || !rows_is_new(rows, f.start, f.end))
			continue;
		if (sframe_run(&sf, &f, take_row, &reading)) {
			rows->n = first;
			end_function(rows, f.start, f.end, f.start);
		} else {
			end_function(rows, f.start, f.end, f.end);
		}
	}
	rows_end_section(rows);
}

static struct section section_of(const struct shstk_section *s)
{
	return (struct section){ s->data, s->data ? s->size : 0, s->vaddr };
}

/* Reads the sections of the debug information that belongs to the file. */
static void read_debug(struct rows *rows, const char *path)
{
	struct shstk_debug d = { .size = sizeof(d) };
	struct section s;

	if (!path || shstk_debug_find(NULL, path, rows->img->data, rows->img->size, &d))
		return;
	s = section_of(&d.eh_frame);
	read_cfi(rows, &s, false);
	s = section_of(&d.debug_frame);
	read_cfi(rows, &s, true);
	free(d.eh_frame.data);
	free(d.debug_frame.data);
}

static int compile(struct rows *rows, const char *path, struct compiled_table *ret)
{
	const struct elf_image *img = rows->img;

	read_cfi(rows, &img->eh_frame, false);
	read_go(rows);
	read_cfi(rows, &img->debug_frame, true);
	read_sframe(rows);
	read_debug(rows, path);
	if (rows->n)
		add_start_files(rows);
	rows_sort(rows);
	add_known_code(rows);
	if (!rows->n)
		add_undescribed(rows);
	add_entry(rows);
	if (rows->err)
		return rows->err;
	rows_place(rows);
	if (!rows->n)
		return -ENOENT;
	ret->functions = rows->nspan;
	for (unsigned int i = 0; i < img->nload; i++)
		if (img->load[i].exec)
			ret->code += img->load[i].filesz;
	return compile_table(rows, ret);
}

int rules_compile(const void *image, size_t size, const char *path, struct compiled_table *ret)
{
	struct elf_image img;
	struct rows rows = { .img = &img };
	int err;

	*ret = (struct compiled_table){ 0 };
	if (elf_image_parse(&img, image, size, false))
		return -ENOEXEC;
	err = compile(&rows, path, ret);
	rows_free(&rows);
	return err;
}
