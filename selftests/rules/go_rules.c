// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * go_rules.c - compares the kernel's rules for a Go program with those of libshstk, at each
 * instruction
 *
 *	go_rules PROGRAM TABLE
 *
 * TABLE is what `shstk rules compile -o` made of PROGRAM. Prints how many instructions of which
 * kind were compared, and the first ones that differ.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kmod/rules_check.h"
#include "libshstk/go/gorule.h"

#define SHOWN 10

struct file {
	void *data;
	size_t size;
};

static struct file read_file(const char *path)
{
	struct file f = { 0 };
	FILE *in = fopen(path, "rb");

	if (!in || fseek(in, 0, SEEK_END) || (f.size = ftell(in)) == 0)
		exit(2);
	rewind(in);
	f.data = malloc(f.size);
	if (!f.data || fread(f.data, f.size, 1, in) != 1)
		exit(2);
	fclose(in);
	return f;
}

/* Returns the rule that the kernel finds, but by looking at row after row. */
static uint64_t kernel_rule_at(const struct ushstk_rules_view *v, uint64_t offset)
{
	uint64_t page = (offset - v->base) >> 12, rule = 0;

	if (offset < v->base || page >= v->nr_pages)
		return SHSTK_RULE_NONE;
	for (uint32_t i = v->page[page]; i < v->page[page + 1]; i++)
		if (v->row[i] >> 16 <= (offset & 4095))
			rule = v->rule[v->row[i] & 0xffff];
	return rule;
}

/* Returns how many words below the CFA a register is saved; 0 if it is not saved. */
static uint64_t saved_at(const struct cfi_row *row, unsigned int reg)
{
	return row->type[reg] == REG_AT_CFA ? (uint64_t)(-row->val[reg] / 8) : 0;
}

/* Returns libshstk's row as a rule of the kernel. */
static uint64_t wanted_at(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr)
{
	const struct machine *m = g->img->m;
	struct cfi_row row;
	uint64_t link;

	if (gorule_row(g, vaddr, &row))
		return SHSTK_RULE_NONE;
	if (gorule_role(g, f) != GO_ORDINARY)
		return gorule_role(g, f) == GO_OUTERMOST ? SHSTK_RULE_END : SHSTK_RULE_CUT;
	/* On x86 the return address is right below the CFA in each frame. */
	link = m == &machine_arm64 ? saved_at(&row, m->ra) : 0;
	if (row.cfa_off / 8 > SHSTK_RULE_CFA_MAX || link > SHSTK_RULE_OFF_MASK)
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_SP | (uint64_t)(row.cfa_off / 8) << SHSTK_RULE_CFA_SHIFT |
	       saved_at(&row, m->fp) << SHSTK_RULE_FP_SHIFT | link << SHSTK_RULE_SAVED_SHIFT;
}

/* Returns the offset in the file of a virtual address. */
static uint64_t offset_of(const struct elf_image *img, uint64_t vaddr)
{
	size_t avail;
	const uint8_t *p = elf_image_at(img, vaddr, &avail);

	return p ? (uint64_t)(p - (const uint8_t *)img->data) : 0;
}

struct sums {
	uint64_t kinds[SHSTK_RULE_KIND_MASK + 1];
	unsigned int bad;
};

static void compare(const struct gopclntab *g, const struct ushstk_rules_view *v,
		    const struct gofunc *f, struct sums *sums)
{
	for (uint64_t at = f->entry; at < f->end; at += g->quantum) {
		uint64_t wanted = wanted_at(g, f, at);
		uint64_t got = kernel_rule_at(v, offset_of(g->img, at));

		sums->kinds[got & SHSTK_RULE_KIND_MASK]++;
		if (got != wanted && sums->bad++ < SHOWN)
			printf("%s+%#" PRIx64 ": %#" PRIx64 ", not %#" PRIx64 "\n",
			       shstk_gopclntab_name(g, f), at - f->entry, got, wanted);
	}
}

int main(int argc, char **argv)
{
	struct ushstk_rules_view view;
	struct file program, table;
	struct sums sums = { 0 };
	struct gofunc f;
	struct gofile go;

	if (argc != 3)
		return 2;
	program = read_file(argv[1]);
	table = read_file(argv[2]);
	if (shstk_gofile_init(&go, program.data, program.size) ||
	    ushstk_rules_check(table.data, table.size,
			       ((struct shstk_rules_header *)table.data)->machine, &view)) {
		puts("no Go program, or no table");
		return 1;
	}
	for (uint32_t i = 0; i < go.tab.nfunc; i++)
		if (shstk_gopclntab_get(&go.tab, i, &f))
			compare(&go.tab, &view, &f, &sums);
	printf("by sp %" PRIu64 ", outermost %" PRIu64 ", cut %" PRIu64 ", none %" PRIu64
	       "; %u differ\n",
	       sums.kinds[SHSTK_RULE_SP], sums.kinds[SHSTK_RULE_END], sums.kinds[SHSTK_RULE_CUT],
	       sums.kinds[SHSTK_RULE_NONE], sums.bad);
	shstk_gofile_deinit(&go);
	free(program.data);
	free(table.data);
	return sums.bad || !sums.kinds[SHSTK_RULE_SP] || !sums.kinds[SHSTK_RULE_END];
}
