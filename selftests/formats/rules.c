// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules.c - print what one section of an ELF file says of every address of its
 * code, in the library's eyes.
 *
 * usage: rules FILE eh_frame|debug_frame|sframe
 *
 * A line is "START END CFA FP RA", in readelf --sframe's words: sp+16, fp-8,
 * r10+0 (a register), (fp-16) (what lies there), c-16 (lies at CFA - 16), u
 * (unchanged), U (there is none); then "signal" if so. Every compiled rule is
 * compared with the row it was made from.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftests/map_file.h"
#include "table.h"

enum { OP_DEREF = 0x06, OP_BREG0 = 0x70, OP_BREG31 = 0x8f };

#define TEXT 32

static const struct machine *m;

static void put_base(char *to, unsigned int reg, int64_t off, bool load)
{
	char name[8];

	if (reg == m->sp)
		strcpy(name, "sp");
	else if (reg == m->fp)
		strcpy(name, "fp");
	else
		snprintf(name, sizeof(name), "r%u", reg);
	snprintf(to, TEXT, load ? "(%s%+" PRId64 ")" : "%s%+" PRId64, name, off);
}

/* Prints expressions that SFrame can express too: register + offset, maybe loaded. */
static void put_expr(char *to, const struct table *t, size_t at, bool load)
{
	const uint8_t *p = t->sec.s.data + at, *end;
	unsigned int reg, shift = 0;
	int64_t off = 0;
	uint8_t byte;

	strcpy(to, "expr");
	end = p + 1 + p[0];
	if (p[0] < 2 || p[0] > 16 || p[1] < OP_BREG0 || p[1] > OP_BREG31)
		return;
	reg = p[1] - OP_BREG0;
	p += 2;
	do {
		byte = *p++;
		off |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && p < end);
	if (byte & 0x40)
		off |= -(1ull << shift);
	if (p < end && *p == OP_DEREF && !load) {
		load = true;
		p++;
	}
	if (p == end)
		put_base(to, reg, off, load);
}

static void put_reg(char *to, const struct table *t, const struct cfi_row *row, unsigned int n)
{
	int32_t val = row->val[n];

	switch (row->type[n]) {
	case REG_SAME:
		strcpy(to, "u");
		break;
	case REG_UNDEFINED:
		strcpy(to, "U");
		break;
	case REG_AT_CFA:
		snprintf(to, TEXT, "c%+d", val);
		break;
	case REG_IS_CFA:
		snprintf(to, TEXT, "=c%+d", val);
		break;
	case REG_IN:
		put_base(to, val, 0, false);
		break;
	case REG_AT_EXPR:
		put_expr(to, t, val, true);
		break;
	case REG_IS_EXPR:
		put_expr(to, t, val, false);
		break;
	case REG_AT_REG:
	case REG_IS_REG:
		put_base(to, reg_number(val), reg_offset(val), row->type[n] == REG_AT_REG);
		break;
	}
}

static int no_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	(void)addr;
	(void)buf;
	(void)len;
	return -1;
}

/* Prints the CFA of the linker's entries (PLT), which is computed from sp and pc alone. */
static void put_cfa_expr(char *to, const struct table *t, size_t expr, uint64_t at)
{
	const struct memory mem = { no_memory, NULL };
	struct regs regs = { .known = 1ull << m->sp | 1ull << m->ra };
	uint64_t cfa;

	regs.r[m->ra] = at;
	if (cfi_eval(&t->sec, expr, &regs, &mem, NULL, &cfa))
		put_expr(to, t, expr, false);
	else
		put_base(to, m->sp, cfa, false);
}

static void put_row(char *to, size_t size, const struct table *t, const struct cfi_row *row,
		    uint64_t at)
{
	char cfa[TEXT], fp[TEXT], ra[TEXT];

	if (row->type[row->ra] == REG_UNDEFINED) {
		snprintf(to, size, "- - U");
		return;
	}
	if (row->cfa_expr)
		put_cfa_expr(cfa, t, row->cfa_off, at);
	else
		put_base(cfa, row->cfa_reg, row->cfa_off, row->cfa_load);
	put_reg(fp, t, row, m->fp);
	put_reg(ra, t, row, row->ra);
	snprintf(to, size, "%s %s %s%s", cfa, fp, ra, row->signal_frame ? " signal" : "");
}

/*
 * Compares a compiled rule with its row. A row whose offsets no stack has is compiled to no more
 * than RULE_FULL.
 */
static bool same_rule(uint64_t compiled, uint64_t made)
{
	if (compiled == made)
		return true;
	return compiled == RULE_FULL && (rule_fp_off(made) > 0 || rule_ra_off(made) > 0);
}

static void print_code(struct table *t, const struct load *l)
{
	char last[4 * TEXT] = "", now[4 * TEXT];
	uint64_t start = l->vaddr, at;
	struct cfi_row row;

	for (at = l->vaddr; at <= l->vaddr + l->filesz; at += m->insn_align) {
		uint64_t compiled = table_rule(t, at), made;

		if (at < l->vaddr + l->filesz && !table_row(t, at, &row)) {
			put_row(now, sizeof(now), t, &row, at);
			made = rule_from_row(m, &row);
		} else {
			now[0] = '\0';
			made = RULE_NONE;
		}
		if (at < l->vaddr + l->filesz && !same_rule(compiled, made))
			errx(1, "%#" PRIx64 ": compiled %#" PRIx64 ", made %#" PRIx64 " (%s)", at,
			     compiled, made, now);
		if (!strcmp(now, last))
			continue;
		if (last[0])
			printf("%" PRIx64 " %" PRIx64 " %s\n", start, at, last);
		strcpy(last, now);
		start = at;
	}
}

int main(int argc, char **argv)
{
	struct elf_image img;
	struct table t;
	size_t size;
	void *data;
	int ret;

	if (argc != 3)
		errx(2, "usage: rules FILE eh_frame|debug_frame|sframe");
	data = map_file(argv[1], &size);
	if (!data)
		err(1, "%s", argv[1]);
	if (elf_image_parse(&img, data, size, false))
		errx(1, "%s: no ELF file that can be unwound", argv[1]);
	m = img.m;
	if (!strcmp(argv[2], "sframe"))
		ret = table_init_sframe(&t, &img);
	else if (!strcmp(argv[2], "debug_frame"))
		ret = table_init_debug_frame(&t, &img);
	else
		ret = table_init_eh_frame(&t, &img);
	if (ret)
		errx(1, "%s: no %s that can be used", argv[1], argv[2]);
	for (unsigned int i = 0; i < img.nload; i++) {
		if (img.load[i].exec)
			print_code(&t, &img.load[i]);
	}
	table_deinit(&t);
	return 0;
}
