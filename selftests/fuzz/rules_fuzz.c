// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_fuzz.c - sections of unwind information: .eh_frame with and without a search table,
 * .debug_frame, .sframe. Compiled rules must be the same as those made from their rows, and steps
 * by any row must end.
 *
 * Input: a byte, bits 0-1 the kind of section, bit 2 the machine; the size of the search table in
 * two bytes; the search table; the section.
 */
#include <stdint.h>
#include <stdlib.h>

#include "table.h"

#define HDR 0x20000
#define SECTION 0x30000
#define PROBES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads memory in which every word is its own address. */
static int read_address(void *arg, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	memcpy(buf, &addr, len < 8 ? len : 8);
	return 0;
}

/* Evaluates what a row refers to; the evaluation must end. */
static void use_row(const struct table *t, const struct cfi_row *row)
{
	const struct memory mem = { read_address, NULL };
	struct regs regs = { .known = UINT64_MAX };
	uint64_t cfa = 0x1000, v;
	unsigned int i;

	if (row->ra >= REG_PC || row->cfa_reg >= REG_PC)
		abort();
	if (row->cfa_expr)
		cfi_eval(&t->sec, row->cfa_off, &regs, &mem, NULL, &v);
	for (i = 0; i < REG_PC; i++) {
		if (row->type[i] == REG_AT_EXPR || row->type[i] == REG_IS_EXPR)
			cfi_eval(&t->sec, row->val[i], &regs, &mem, &cfa, &v);
		else if (row->type[i] == REG_IN && (row->val[i] < 0 || row->val[i] >= REG_PC))
			abort();
	}
}

static void probe(struct table *t, uint64_t vaddr)
{
	uint64_t rule = table_rule(t, vaddr);
	struct cfi_row row;
	uint64_t made;
	int err;

	err = table_row(t, vaddr, &row);
	if (err)
		return; /* a compiled function may be good up to its bad part */
	made = rule_from_row(t->img->m, &row);
	if (rule != made && rule != RULE_FULL)
		abort();
	use_row(t, &row);
}

static int init(struct table *t, struct elf_image *img, unsigned int kind, const uint8_t *data,
		size_t size)
{
	size_t hdr = data[0] | data[1] << 8;
	struct section s;

	data += 2;
	size -= 2;
	if (hdr > size)
		hdr = size;
	img->eh_frame_hdr = (struct section){ data, hdr, HDR };
	s = (struct section){ data + hdr, size - hdr, SECTION };
	switch (kind) {
	case 0:
		img->eh_frame_hdr.size = 0;
		img->eh_frame = s;
		return table_init_eh_frame(t, img);
	case 1:
		img->eh_frame = s;
		return table_init_eh_frame(t, img);
	case 2:
		img->debug_frame = s;
		return table_init_debug_frame(t, img);
	default:
		img->sframe = s;
		return table_init_sframe(t, img);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image img = { .lo = 0, .hi = UINT32_MAX };
	struct table t;
	size_t i;

	if (size < 3 || data[0] > 7)
		return 0;
	img.m = data[0] & 4 ? &machine_arm64 : &machine_x86;
	if (init(&t, &img, data[0] & 3, data + 1, size - 1))
		return 0;
	for (i = 0; i < PROBES; i++)
		probe(&t, 0x1000 + i * i * img.m->insn_align);
	for (i = 0; i < t.nfde && i < PROBES; i++) {
		uint64_t start = t.index ? img.lo + t.index[i].start :
				 t.hdr	 ? 0 :
					   sframe_start(&t.sf, i);

		probe(&t, start);
		probe(&t, start + 3 * img.m->insn_align);
		probe(&t, start - 1);
	}
	table_deinit(&t);
	return 0;
}
