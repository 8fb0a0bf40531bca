// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sframe.c - decodes SFrame sections; see sframe.h.
 *
 * Versions 2 and 3 share their header. In version 2 a function is one record;
 * version 3 has a shorter record with a wider address, and keeps the rest in
 * front of the function's rows. A row is an address, a byte of flags, and words
 * of 1, 2 or 4 bytes. In ordinary functions the words are the offsets of CFA,
 * return address and fp; in flexible functions (version 3) they are pairs of a
 * base and an offset.
 */
#include <errno.h>

#include "sframe.h"

#define MAGIC 0xdee2

/* Flags of the header. */
#define F_SORTED 0x01
#define F_FP 0x02 /* all functions keep frame pointers; version 2 */
#define F_PCREL 0x04

enum { ABI_ARM64_LITTLE = 2, ABI_AMD64_LITTLE = 3 };

/* The structs of the format are packed and little-endian; on a big-endian machine MAGIC differs. */
struct header {
	uint16_t magic;
	uint8_t version;
	uint8_t flags;
	uint8_t abi;
	int8_t fixed_fp;
	int8_t fixed_ra;
	uint8_t aux_len;
	uint32_t nfunc;
	uint32_t nrows;
	uint32_t rows_len;
	uint32_t func_off; /* from the end of the header */
	uint32_t rows_off; /* from the end of the header */
} __attribute__((packed));

struct func_v2 {
	int32_t start;
	uint32_t size;
	uint32_t rows;
	uint32_t nrows;
	uint8_t info;
	uint8_t block;
	uint16_t padding;
} __attribute__((packed));

struct func_v3 {
	int64_t start;
	uint32_t size;
	uint32_t rows;
} __attribute__((packed));

struct attr_v3 {
	uint16_t nrows;
	uint8_t info;
	uint8_t info2;
	uint8_t block;
} __attribute__((packed));

/* Returns the format's number of machine @m, or 0 if the format does not have it. */
static uint8_t abi_of(const struct machine *m)
{
	return m == &machine_arm64 ? ABI_ARM64_LITTLE : m == &machine_x86 ? ABI_AMD64_LITTLE : 0;
}

static size_t func_size(const struct sframe *sf)
{
	return sf->version == 2 ? sizeof(struct func_v2) : sizeof(struct func_v3);
}

int sframe_parse(struct sframe *sf, const struct section *s, const struct machine *m)
{
	uint64_t base, func, rows, end;
	struct header h;
	uint8_t flags;

	if (s->size < sizeof(h))
		return -ENOEXEC;
	memcpy(&h, s->data, sizeof(h));
	flags = F_SORTED | F_PCREL | (h.version == 2 ? F_FP : 0);
	if (h.magic != MAGIC || (h.version != 2 && h.version != 3) || h.flags & ~flags || !h.abi ||
	    h.abi != abi_of(m))
		return -ENOEXEC;
	base = sizeof(h) + h.aux_len;
	*sf = (struct sframe){
		.s = *s,
		.m = m,
		.version = h.version,
		.sorted = h.flags & F_SORTED,
		.pcrel = h.flags & F_PCREL,
		.fixed_fp = h.fixed_fp,
		.fixed_ra = h.fixed_ra,
		.nfunc = h.nfunc,
	};
	func = base + h.func_off;
	rows = base + h.rows_off;
	end = rows + h.rows_len;
	if (func + (uint64_t)h.nfunc * func_size(sf) > s->size || end > s->size)
		return -ENOEXEC;
	sf->func = func;
	sf->rows = rows;
	sf->end = end;
	return 0;
}

uint64_t sframe_start(const struct sframe *sf, size_t i)
{
	size_t off = sf->func + i * func_size(sf);
	uint64_t base = sf->s.vaddr + (sf->pcrel ? off : 0);
	int64_t start64;
	int32_t start;

	if (sf->version == 2) {
		memcpy(&start, sf->s.data + off, sizeof(start));
		return base + start;
	}
	memcpy(&start64, sf->s.data + off, sizeof(start64));
	return base + start64;
}

/* Decodes the two info bytes of a function into @f. Returns false if they are not valid. */
static bool set_info(struct sframe_func *f, uint8_t info, uint8_t info2, uint8_t block)
{
	unsigned int addr_type = info & 15;
	unsigned int type = info2 & 31;

	if (addr_type > 2 || type > 1)
		return false;
	f->addr_size = 1 << addr_type;
	f->block = info & 0x10 ? block : 0;
	f->flexible = type;
	return !(info & 0x10) || block;
}

static bool read_v2(const struct sframe *sf, const uint8_t *p, struct sframe_func *f)
{
	struct func_v2 v;

	memcpy(&v, p, sizeof(v));
	f->end = f->start + v.size;
	if (v.rows > sf->end - sf->rows)
		return false;
	f->rows = sf->rows + v.rows;
	f->nrows = v.nrows;
	f->signal_frame = false;
	return set_info(f, v.info, 0, v.block);
}

static bool read_v3(const struct sframe *sf, const uint8_t *p, struct sframe_func *f)
{
	struct func_v3 v;
	struct attr_v3 a;

	memcpy(&v, p, sizeof(v));
	f->end = f->start + v.size;
	if (v.rows > sf->end - sf->rows || sf->end - sf->rows - v.rows < sizeof(a))
		return false;
	f->rows = sf->rows + v.rows + sizeof(a);
	memcpy(&a, sf->s.data + f->rows - sizeof(a), sizeof(a));
	f->nrows = a.nrows;
	f->signal_frame = a.info & 0x80;
	return set_info(f, a.info, a.info2, a.block);
}

bool sframe_func(const struct sframe *sf, size_t i, struct sframe_func *f)
{
	const uint8_t *p = sf->s.data + sf->func + i * func_size(sf);

	f->start = sframe_start(sf, i);
	return (sf->version == 2 ? read_v2 : read_v3)(sf, p, f) && f->end > f->start &&
	       f->nrows <= SFRAME_MAX_ROWS;
}

/* The words of a row that are not read yet: @n words of @size bytes each, from @p on. */
struct row_words {
	const uint8_t *p;
	unsigned int n, size;
};

static uint32_t next_unsigned(struct row_words *w)
{
	uint32_t v = 0;

	memcpy(&v, w->p, w->size);
	w->p += w->size;
	w->n--;
	return v;
}

static int32_t next_signed(struct row_words *w)
{
	unsigned int shift = 32 - 8 * w->size;

	return (int32_t)(next_unsigned(w) << shift) >> shift;
}

static void at_cfa(struct cfi_row *row, unsigned int reg, int32_t off)
{
	row->type[reg] = REG_AT_CFA;
	row->val[reg] = off;
}

static void ordinary(const struct sframe *sf, struct row_words *w, bool from_sp,
		     struct cfi_row *row)
{
	row->cfa_reg = from_sp ? sf->m->sp : sf->m->fp;
	row->cfa_off = next_signed(w);
	if (!sf->fixed_ra && w->n)
		at_cfa(row, sf->m->ra, next_signed(w));
	if (!sf->fixed_fp && w->n)
		at_cfa(row, sf->m->fp, next_signed(w));
}

/*
 * The bits of the base in a flexible row: it is a register or else the CFA, and the value is in
 * memory at base and offset, or else it is their sum.
 */
#define FROM_REG 1
#define LOADS 2
#define RESERVED 4

static bool flexible_reg(struct row_words *w, struct cfi_row *row, unsigned int reg)
{
	uint32_t how;
	int32_t off;

	if (!w->n)
		return true;
	how = next_unsigned(w);
	if (!how) /* a filler: the register has no rule */
		return true;
	if (!w->n || how & RESERVED || how >> 3 >= REG_PC)
		return false;
	off = next_signed(w);
	if (!(how & FROM_REG)) {
		row->type[reg] = how & LOADS ? REG_AT_CFA : REG_IS_CFA;
		row->val[reg] = off;
		return true;
	}
	row->type[reg] = how & LOADS ? REG_AT_REG : REG_IS_REG;
	row->val[reg] = reg_and_offset(how >> 3, off);
	return reg_offset(row->val[reg]) == off;
}

static bool flexible(const struct sframe *sf, struct row_words *w, struct cfi_row *row)
{
	uint32_t how;

	if (w->n < 2)
		return false;
	how = next_unsigned(w);
	if (!(how & FROM_REG) || how & RESERVED || how >> 3 >= REG_PC)
		return false;
	row->cfa_reg = how >> 3;
	row->cfa_off = next_signed(w);
	row->cfa_load = how & LOADS;
	return flexible_reg(w, row, sf->m->ra) && flexible_reg(w, row, sf->m->fp);
}

/* Begins a row. The format follows only fp of the registers that a function must preserve. */
static void start_row(const struct sframe *sf, const struct sframe_func *f, struct cfi_row *row)
{
	const struct machine *m = sf->m;
	unsigned int i;

	memset(row, 0, sizeof(*row));
	for (i = 0; i < REG_PC; i++)
		row->type[i] = REG_UNDEFINED;
	row->ra = m->ra;
	row->signal_frame = f->signal_frame;
	row->type[m->sp] = REG_SAME;
	row->type[m->fp] = REG_SAME;
	row->type[m->ra] = REG_SAME;
	if (sf->fixed_fp)
		at_cfa(row, m->fp, sf->fixed_fp);
	if (sf->fixed_ra)
		at_cfa(row, m->ra, sf->fixed_ra);
}

/*
 * Decodes the row at offset *@off of the section and moves *@off behind it. *@rel receives the
 * row's address in the function. @row may be NULL if only the address is wanted. Returns false if
 * the row is corrupt.
 */
static bool read_row(const struct sframe *sf, const struct sframe_func *f, size_t *off,
		     uint32_t *rel, struct cfi_row *row)
{
	const uint8_t *p = sf->s.data + *off;
	size_t left = sf->end - *off;
	struct row_words w;
	uint8_t info;

	if (left < f->addr_size + 1u)
		return false;
	*rel = 0;
	memcpy(rel, p, f->addr_size);
	info = p[f->addr_size];
	if (info >> 5 & 2 && info >> 5 & 1)
		return false;
	w.p = p + f->addr_size + 1;
	w.n = info >> 1 & 15;
	w.size = 1 << (info >> 5 & 3);
	left -= f->addr_size + 1;
	if (w.n * w.size > left)
		return false;
	*off += f->addr_size + 1 + w.n * w.size;
	if (!row)
		return true;
	start_row(sf, f, row);
	if (!w.n) { /* the outermost frame */
		row->type[row->ra] = REG_UNDEFINED;
		return true;
	}
	if (!f->flexible)
		ordinary(sf, &w, info & 1, row);
	else if (!flexible(sf, &w, row))
		return false;
	return !w.n;
}

int sframe_run(const struct sframe *sf, const struct sframe_func *f, cfi_row_fn row, void *arg)
{
	uint32_t i, rel, last = 0;
	size_t off = f->rows;
	struct cfi_row r;

	if (f->block || !f->nrows)
		return -1;
	for (i = 0; i < f->nrows; i++, last = rel) {
		if (!read_row(sf, f, &off, &rel, &r) || rel < last || (!i && rel))
			return -1;
		if (row(arg, f->start + rel, &r))
			return 0;
	}
	return 0;
}

int sframe_row(const struct sframe *sf, const struct sframe_func *f, uint64_t vaddr,
	       struct cfi_row *row)
{
	uint64_t at = vaddr - f->start;
	size_t off = f->rows, found = 0;
	uint32_t i, rel;

	if (f->block)
		at %= f->block;
	for (i = 0; i < f->nrows; i++) {
		size_t this = off;

		if (!read_row(sf, f, &off, &rel, NULL))
			return -SHSTK_END_BAD_RULE;
		if (rel > at)
			break;
		found = this;
	}
	if (!found)
		return -SHSTK_END_NO_RULE;
	return read_row(sf, f, &found, &rel, row) ? 0 : -SHSTK_END_BAD_RULE;
}
