// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compile.c - a file's unwind information as a table for the kernel.
 *
 * Each source is read through libshstk's decoders, row by row, to a list of addresses
 * with the rule that holds from there. The list is sorted, thinned of what changes
 * nothing, and laid out by pages of the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/cfi.h"
#include "libshstk/sframe.h"
#include "libshstk/symbol/symbol.h"
#include "tools/rules/bare.h"
#include "tools/rules/compile.h"
#include "tools/rules/crt.h"
#include "tools/rules/stub.h"

#define X86_RBX 3

/* A function whose frame is the outermost, and that nothing describes, is no longer. */
#define ENTRY_BYTES 128

/* More than any file has: LLVM has two millions. Bounds the memory that a hostile one takes. */
#define MAX_ROWS (1u << 24)

/* Bytes of code that the widest instruction in front of a signal's return takes. */
#define SIGTRAMP_SLACK 8

/* Bytes of code around clone()'s system call. */
#define CLONE_BYTES 10

struct row {
	uint64_t at; /* virtual address, later offset in the file */
	uint64_t rule;
};

struct span {
	uint64_t start, end;
};

/**
 * struct rows - what is known so far
 * @img: the file.
 * @v: rows, in no order until sort_rows().
 * @n: their number.
 * @room: for as many.
 * @span: the functions that they are of, in order up to @sorted.
 * @nspan: their number.
 * @span_room: for as many.
 * @sorted: spans of the sources that were read before this one.
 * @sec: section that is being read.
 * @err: 0; -ENOMEM, or -E2BIG: something could not be stored.
 */
struct rows {
	const struct elf_image *img;
	struct row *v;
	size_t n, room;
	struct span *span;
	size_t nspan, span_room, sorted;
	const struct cfi_section *sec;
	int err;
};

static void *grow(void *v, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 1024;

	if (n < *room)
		return v;
	v = reallocarray(v, more, size);
	if (v)
		*room = more;
	return v;
}

static void add_row(struct rows *rows, uint64_t at, uint64_t rule)
{
	struct row *v;

	if (rows->n == MAX_ROWS) {
		rows->err = -E2BIG;
		return;
	}
	v = grow(rows->v, rows->n, &rows->room, sizeof(*v));
	if (!v) {
		rows->err = -ENOMEM;
		return;
	}
	rows->v = v;
	v[rows->n++] = (struct row){ at, rule };
}

static void add_span(struct rows *rows, uint64_t start, uint64_t end)
{
	struct span *v = grow(rows->span, rows->nspan, &rows->span_room, sizeof(*v));

	if (!v) {
		rows->err = -ENOMEM;
		return;
	}
	rows->span = v;
	v[rows->nspan++] = (struct span){ start, end };
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void end_source(struct rows *rows)
{
	if (rows->nspan)
		qsort(rows->span, rows->nspan, sizeof(*rows->span), compare_spans);
	rows->sorted = rows->nspan;
}

/* Does an earlier source describe part of it? */
static bool described(const struct rows *rows, uint64_t start, uint64_t end)
{
	size_t lo = 0, n = rows->sorted;

	while (n) {
		size_t half = n / 2;

		if (rows->span[lo + half].end <= start) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo < rows->sorted && rows->span[lo].start < end;
}

/* --- rules --- */

/* Memory in which every word is the same, and what was asked for. */
struct probe {
	uint64_t word;
	uint64_t addr;
	unsigned int reads;
};

static int probe_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct probe *p = arg;

	p->addr = addr;
	p->reads++;
	if (len != sizeof(p->word))
		return -1;
	memcpy(buf, &p->word, len);
	return 0;
}

static bool evaluate(const struct rows *rows, size_t expr, const struct regs *regs,
		     const uint64_t *cfa, struct probe *probe, uint64_t *ret)
{
	const struct memory mem = { .read = probe_read, .arg = probe };

	return rows->sec && !cfi_eval(rows->sec, expr, regs, &mem, cfa, ret);
}

/*
 * The linker's description of its stubs is an expression of pc and sp: sp + 8, and from
 * some byte of each 16 on sp + 16. Anything that comes to that is one.
 */
static uint64_t plt_rule(const struct rows *rows, const struct cfi_row *row)
{
	const struct machine *m = rows->img->m;
	struct regs regs = { .known = 1ull << m->sp | 1ull << m->ra | 1ull << REG_PC };
	const uint64_t sp = 0x10000;
	struct probe probe = { 0 };
	unsigned int first = 16;
	uint64_t cfa;

	if (m->arch != SHSTK_ARCH_X86 || row->type[m->ra] != REG_AT_CFA || row->val[m->ra] != -8)
		return SHSTK_RULE_CUT;
	regs.r[m->sp] = sp;
	for (unsigned int i = 0; i < 16; i++) {
		regs.r[m->ra] = 0x20000 + i;
		regs.r[REG_PC] = 0x20000 + i;
		if (!evaluate(rows, row->cfa_off, &regs, NULL, &probe, &cfa) || probe.reads)
			return SHSTK_RULE_CUT;
		if (cfa == sp + 16 && first == 16)
			first = i;
		if (cfa != (i < first ? sp + 8 : sp + 16))
			return SHSTK_RULE_CUT;
	}
	if (first == 16)
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_PLT | (uint64_t)first << SHSTK_RULE_REG_SHIFT;
}

/* Is the caller's frame pointer at the one of this frame? */
static bool fp_at_fp(const struct rows *rows, const struct cfi_row *row)
{
	const struct machine *m = rows->img->m;
	struct regs regs = { .known = 1ull << m->fp };
	const uint64_t cfa = 0x40000;
	struct probe probe = { 0 };
	uint64_t at;

	regs.r[m->fp] = 0x30000;
	if (row->type[m->fp] == REG_AT_REG)
		return reg_number(row->val[m->fp]) == m->fp && !reg_offset(row->val[m->fp]);
	return row->type[m->fp] == REG_AT_EXPR &&
	       evaluate(rows, row->val[m->fp], &regs, &cfa, &probe, &at) && at == regs.r[m->fp] &&
	       !probe.reads;
}

/* Realigned: CFA = load(fp + offset), and fp points to the caller's. */
static uint64_t load_rule(const struct rows *rows, const struct cfi_row *row, unsigned int reg,
			  int64_t off)
{
	const struct machine *m = rows->img->m;

	if (m->arch != SHSTK_ARCH_X86 || reg != m->fp || off & 7 || off < -(1 << 17) ||
	    off >= 1 << 17 || row->type[m->ra] != REG_AT_CFA || row->val[m->ra] != -8 ||
	    !fp_at_fp(rows, row))
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_LOAD | (uint64_t)(off / 8) << SHSTK_RULE_CFA_SHIFT;
}

/*
 * CFA = load(register + @off) + @more, as an expression: one read, from whose word the CFA
 * is made. No other register is known, so none is used.
 */
static bool loads_cfa(const struct rows *rows, const struct cfi_row *row, unsigned int reg,
		      int64_t *off, uint64_t *more)
{
	struct regs regs = { .known = 1ull << reg };
	struct probe probe = { .word = 0x50000 };
	uint64_t cfa;

	regs.r[reg] = 1ull << 32;
	if (!evaluate(rows, row->cfa_off, &regs, NULL, &probe, &cfa) || probe.reads != 1)
		return false;
	*off = (int64_t)(probe.addr - regs.r[reg]);
	*more = cfa - probe.word;
	return true;
}

static uint64_t load_expression(const struct rows *rows, const struct cfi_row *row)
{
	const struct machine *m = rows->img->m;
	uint64_t more;
	int64_t off;

	if (!loads_cfa(rows, row, m->fp, &off, &more) || more)
		return SHSTK_RULE_CUT;
	return load_rule(rows, row, m->fp, off);
}

/* The place of a saved register, in words below the CFA; -1: none that fits. */
static int64_t words_below(const struct cfi_row *row, unsigned int reg)
{
	int64_t off = row->val[reg];

	if (row->type[reg] == REG_SAME)
		return 0;
	if (row->type[reg] != REG_AT_CFA || off >= 0 || off & 7 ||
	    -off / 8 > (int64_t)SHSTK_RULE_OFF_MASK)
		return -1;
	return -off / 8;
}

/* Where what the kernel calls "saved" is; -1: the return address is not where it can be. */
static int64_t saved_words(const struct machine *m, const struct cfi_row *row)
{
	int64_t words;

	if (m->ra_in_reg)
		return words_below(row, m->ra);
	if (row->type[m->ra] != REG_AT_CFA || row->val[m->ra] != -8)
		return -1;
	/* rbx is needed in few frames only: that it is lost is no reason to end. */
	words = words_below(row, X86_RBX);
	return words > 0 ? words : 0;
}

/* The former stack pointer is in the frame: libcrypto. */
static uint64_t stack_expression(const struct rows *rows, const struct cfi_row *row)
{
	const struct machine *m = rows->img->m;
	int64_t fp = words_below(row, m->fp), saved = saved_words(m, row), off;
	uint64_t more;

	if (m->arch != SHSTK_ARCH_X86 || fp < 0 || saved < 0 ||
	    !loads_cfa(rows, row, m->sp, &off, &more) || off & 7 || off < -(1 << 17) ||
	    off >= 1 << 17 || more & 7 || more / 8 > SHSTK_RULE_REG_MASK)
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_STACK | more / 8 << SHSTK_RULE_REG_SHIFT |
	       (uint64_t)saved << SHSTK_RULE_SAVED_SHIFT | (uint64_t)fp << SHSTK_RULE_FP_SHIFT |
	       (uint64_t)(off / 8) << SHSTK_RULE_CFA_SHIFT;
}

/*
 * CFA = load(sp + something with register @reg) + 8: where that reads if the register is
 * @value.
 */
static bool index_at(const struct rows *rows, const struct cfi_row *row, unsigned int reg,
		     uint64_t value, uint64_t *off)
{
	const struct machine *m = rows->img->m;
	struct regs regs = { .known = 1ull << m->sp | 1ull << reg };
	struct probe probe = { .word = 0x50000 };
	const uint64_t sp = 1ull << 32;
	uint64_t cfa;

	regs.r[m->sp] = sp;
	regs.r[reg] = value;
	if (!evaluate(rows, row->cfa_off, &regs, NULL, &probe, &cfa) || probe.reads != 1 ||
	    cfa != probe.word + 8)
		return false;
	*off = probe.addr - sp;
	return true;
}

/* The same, in a frame as large as the words that a register counts: libcrypto's RSA. */
static uint64_t index_expression(const struct rows *rows, const struct cfi_row *row)
{
	const struct machine *m = rows->img->m;
	int64_t fp = words_below(row, m->fp), saved = saved_words(m, row);

	if (m->arch != SHSTK_ARCH_X86 || fp < 0 || saved < 0)
		return SHSTK_RULE_CUT;
	for (unsigned int reg = 0; reg < 16; reg++) {
		uint64_t none, one, many;

		if (reg == m->sp || !index_at(rows, row, reg, 0, &none) ||
		    !index_at(rows, row, reg, 1, &one) || !index_at(rows, row, reg, 1000, &many))
			continue;
		if (one - none != 8 || many - none != 8000 || none & 7 || none >= 1 << 17)
			break;
		return SHSTK_RULE_INDEX | (uint64_t)reg << SHSTK_RULE_REG_SHIFT |
		       (uint64_t)saved << SHSTK_RULE_SAVED_SHIFT |
		       (uint64_t)fp << SHSTK_RULE_FP_SHIFT | none / 8 << SHSTK_RULE_CFA_SHIFT;
	}
	return SHSTK_RULE_CUT;
}

/* CFA = sp + offset, and the return address is in another register than usual. */
static uint64_t return_rule(const struct machine *m, const struct cfi_row *row)
{
	int64_t fp = words_below(row, m->fp), words = row->cfa_off / 8;

	if (m->arch != SHSTK_ARCH_ARM64 || row->cfa_reg != m->sp || row->cfa_off & 7 || words < 0 ||
	    words > INT16_MAX || fp < 0 || row->type[m->sp] != REG_SAME)
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_RETURN | (uint64_t)row->val[m->ra] << SHSTK_RULE_REG_SHIFT |
	       (uint64_t)fp << SHSTK_RULE_FP_SHIFT | (uint64_t)words << SHSTK_RULE_CFA_SHIFT;
}

/* CFA = register + offset. */
static uint64_t plain_rule(const struct machine *m, const struct cfi_row *row)
{
	int64_t fp = words_below(row, m->fp), saved = saved_words(m, row);
	uint64_t rule;

	if (row->type[m->ra] == REG_IN && row->val[m->ra] >= 0 && row->val[m->ra] < m->ra)
		return return_rule(m, row);
	if (row->cfa_reg == m->sp)
		rule = SHSTK_RULE_SP;
	else if (row->cfa_reg == m->fp)
		rule = SHSTK_RULE_FP;
	else if (m->arch == SHSTK_ARCH_X86 && row->cfa_reg < 16)
		rule = SHSTK_RULE_REG | (uint64_t)row->cfa_reg << SHSTK_RULE_REG_SHIFT;
	else
		return SHSTK_RULE_CUT;
	if (fp < 0 || saved < 0 || row->cfa_off & 7 || row->cfa_off < 0 ||
	    row->cfa_off / 8 > SHSTK_RULE_CFA_MAX ||
	    (row->type[m->sp] != REG_SAME && !(row->type[m->sp] == REG_IS_CFA && !row->val[m->sp])))
		return SHSTK_RULE_CUT;
	return rule | (uint64_t)saved << SHSTK_RULE_SAVED_SHIFT |
	       (uint64_t)fp << SHSTK_RULE_FP_SHIFT |
	       (uint64_t)(row->cfa_off / 8) << SHSTK_RULE_CFA_SHIFT;
}

/* A signal's return by its code: other code may be marked as that too. */
static uint64_t signal_rule(const struct rows *rows, uint64_t at)
{
	const struct machine *m = rows->img->m;
	const uint8_t *code;
	size_t avail;

	for (unsigned int i = 0; i <= SIGTRAMP_SLACK; i++) {
		code = elf_image_at(rows->img, at + i, &avail);
		if (code && m->is_sigtramp(code, avail))
			return SHSTK_RULE_SIGNAL;
	}
	return SHSTK_RULE_CUT;
}

static uint64_t kernel_rule(const struct rows *rows, uint64_t at, const struct cfi_row *row)
{
	const struct machine *m = rows->img->m;
	uint64_t rule;

	if (row->type[row->ra] == REG_UNDEFINED)
		return SHSTK_RULE_END;
	if (row->signal_frame)
		return signal_rule(rows, at);
	if (row->ra != m->ra)
		return SHSTK_RULE_CUT;
	if (row->cfa_load)
		return load_rule(rows, row, row->cfa_reg, row->cfa_off);
	if (!row->cfa_expr)
		return plain_rule(m, row);
	rule = plt_rule(rows, row);
	if (rule == SHSTK_RULE_CUT)
		rule = load_expression(rows, row);
	if (rule == SHSTK_RULE_CUT)
		rule = stack_expression(rows, row);
	return rule == SHSTK_RULE_CUT ? index_expression(rows, row) : rule;
}

/* --- sources --- */

static int take_row(void *arg, uint64_t start, const struct cfi_row *row)
{
	struct rows *rows = arg;

	add_row(rows, start, kernel_rule(rows, start, row));
	return rows->err;
}

/* A function whose rows could not all be read is described, but not for the kernel. */
static void end_function(struct rows *rows, uint64_t start, uint64_t end, size_t first, bool bad)
{
	if (bad) {
		rows->n = first;
		add_row(rows, start, SHSTK_RULE_CUT);
	}
	add_row(rows, end, SHSTK_RULE_NONE);
	add_span(rows, start, end);
}

static bool in_image(const struct rows *rows, uint64_t start, uint64_t end)
{
	return start < end && start >= rows->img->lo && end <= rows->img->hi &&
	       !described(rows, start, end);
}

static void read_cfi(struct rows *rows, const struct section *s, bool debug_frame)
{
	const struct cfi_section sec = { .s = *s, .debug_frame = debug_frame };
	size_t off = 0, next;
	struct cfi_row row;
	struct fde fde;
	int kind;

	rows->sec = &sec;
	while (s->size && !rows->err && (kind = cfi_entry(&sec, off, &fde, &next)) >= 0) {
		size_t first = rows->n;

		off = next;
		if (kind != 1 || !in_image(rows, fde.start, fde.end))
			continue;
		end_function(rows, fde.start, fde.end, first,
			     cfi_run(&sec, &fde, fde.end, &row, take_row, rows));
	}
	rows->sec = NULL;
	end_source(rows);
}

static void read_sframe(struct rows *rows)
{
	struct sframe_func f;
	struct sframe sf;

	if (!rows->img->sframe.size || sframe_parse(&sf, &rows->img->sframe, rows->img->m))
		return;
	for (size_t i = 0; i < sf.nfunc && !rows->err; i++) {
		size_t first = rows->n;

		/* Stubs of the linker, in blocks, are in .eh_frame too. */
		if (!sframe_func(&sf, i, &f) || f.block || !in_image(rows, f.start, f.end))
			continue;
		end_function(rows, f.start, f.end, first, sframe_run(&sf, &f, take_row, rows));
	}
	end_source(rows);
}

static struct section section_of(const struct shstk_section *s)
{
	return (struct section){ s->data, s->data ? s->size : 0, s->vaddr };
}

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

/* --- the list --- */

/* The end of one function before the beginning of the next at the same address. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->rule != SHSTK_RULE_NONE) - (y->rule != SHSTK_RULE_NONE);
}

static void sort_rows(struct rows *rows)
{
	size_t n = 0;

	if (!rows->n)
		return;
	qsort(rows->v, rows->n, sizeof(*rows->v), compare_rows);
	for (size_t i = 0; i < rows->n; i++) {
		if (i + 1 < rows->n && rows->v[i + 1].at == rows->v[i].at)
			continue;
		if (n && rows->v[n - 1].rule == rows->v[i].rule)
			continue;
		rows->v[n++] = rows->v[i];
	}
	rows->n = n;
}

static bool crt_described(void *arg, uint64_t start, uint64_t end)
{
	return described(arg, start, end);
}

static void crt_add(void *arg, uint64_t at, uint64_t rule)
{
	add_row(arg, at, rule);
}

/* Functions without description, but of known code. */
static void add_start_files(struct rows *rows)
{
	const struct crt crt = { rows->img, crt_described, crt_add, rows };

	crt_rules(&crt);
}

/* Is row @i an outermost frame's, one instruction behind the row before? */
static bool ends_behind(const struct rows *rows, size_t i)
{
	return i < rows->n && rows->v[i].rule == SHSTK_RULE_END &&
	       rows->v[i].at - rows->v[i - 1].at <= IMAGE_ENTRY_INSN;
}

/*
 * Nothing has called the entry point: ld.so's may be described by nothing, and glibc's
 * descriptions for arm64 say so behind its first instruction only.
 */
static void add_entry(struct rows *rows)
{
	uint64_t entry = rows->img->entry, end = entry + ENTRY_BYTES;
	size_t i = 0;

	if (!entry || entry < rows->img->lo || end > rows->img->hi)
		return;
	while (i < rows->n && rows->v[i].at <= entry)
		i++;
	if (i && rows->v[i - 1].at == entry && ends_behind(rows, i)) {
		rows->v[i - 1].rule = SHSTK_RULE_END;
		sort_rows(rows);
		return;
	}
	if (i && rows->v[i - 1].rule != SHSTK_RULE_NONE)
		return;
	if (i == rows->n || rows->v[i].at > end)
		add_row(rows, end, SHSTK_RULE_NONE);
	add_row(rows, entry, SHSTK_RULE_END);
	sort_rows(rows);
}

static void bare_add(void *arg, uint64_t at, uint64_t rule)
{
	add_row(arg, at, rule);
}

/* An image that describes nothing. */
static void add_bare(struct rows *rows)
{
	const struct bare bare = { rows->img, bare_add, rows };

	bare_rules(&bare);
	sort_rows(rows);
}

/*
 * What the C library for x86-64 leaves undescribed around the system call of clone():
 * "syscall; test %rax, %rax; jl; je; ret".
 */
static bool is_clone(const uint8_t *code, size_t avail)
{
	static const uint8_t bytes[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0, 0x74, 0, 0xc3 };

	if (!code || avail < CLONE_BYTES)
		return false;
	/* Where the jumps go is their second byte. */
	for (unsigned int i = 0; i < CLONE_BYTES; i++)
		if (code[i] != bytes[i] && i != 6 && i != 8)
			return false;
	return true;
}

/* Row @i says that nothing is known from there on: is it that? */
static void find_clone(struct rows *rows, size_t i)
{
	uint64_t at = rows->v[i].at, end = at + CLONE_BYTES;
	uint64_t next = i + 1 < rows->n ? rows->v[i + 1].at : UINT64_MAX;
	const uint8_t *code;
	size_t avail;

	if (rows->v[i].rule != SHSTK_RULE_NONE || next < end)
		return;
	code = elf_image_at(rows->img, at, &avail);
	if (!is_clone(code, avail))
		return;
	rows->v[i].rule = SHSTK_RULE_CLONE;
	if (next > end)
		add_row(rows, end, SHSTK_RULE_NONE);
}

/*
 * A signal's return is a system call: while the kernel makes it, the program counter is
 * behind it, where the description may have ended.
 */
static void extend_signal_return(struct rows *rows, size_t i)
{
	if (i && rows->v[i].rule == SHSTK_RULE_NONE && rows->v[i - 1].rule == SHSTK_RULE_SIGNAL &&
	    (i + 1 == rows->n || rows->v[i + 1].at > rows->v[i].at + 1))
		rows->v[i].at++;
}

/**
 * struct gap - code that nothing describes
 * @rows: receives what is found.
 * @start: its address.
 */
struct gap {
	struct rows *rows;
	uint64_t start;
};

static void add_stub(void *arg, size_t offset, uint64_t rule)
{
	struct gap *g = arg;

	add_row(g->rows, g->start + offset, rule);
}

static void find_stubs(struct rows *rows, uint64_t start, uint64_t end)
{
	struct gap gap = { rows, start };
	struct stubs stubs = { .add = add_stub, .arg = &gap };

	start = (start + 3) & ~3ull;
	gap.start = start;
	stubs.code = start < end ? elf_image_at(rows->img, start, &stubs.size) : NULL;
	if (!stubs.code)
		return;
	if (stubs.size > end - start)
		stubs.size = end - start;
	stub_rules_arm64(&stubs);
}

/* Stubs lie between other code, or in front of all that is described. */
static void add_stubs(struct rows *rows)
{
	const struct elf_image *img = rows->img;
	uint64_t first = rows->n ? rows->v[0].at : 0;
	size_t n = rows->n;

	for (unsigned int i = 0; i < img->nload; i++)
		if (img->load[i].exec && img->load[i].vaddr < first)
			find_stubs(rows, img->load[i].vaddr, first);
	for (size_t i = 0; i < n; i++)
		if (rows->v[i].rule == SHSTK_RULE_NONE)
			find_stubs(rows, rows->v[i].at, i + 1 < n ? rows->v[i + 1].at : img->hi);
}

/* What is known without a description, in code that has none. */
static void add_known_code(struct rows *rows)
{
	unsigned int arch = rows->img->m->arch;
	size_t n = rows->n;

	for (size_t i = 0; i < n && arch == SHSTK_ARCH_X86; i++) {
		extend_signal_return(rows, i);
		find_clone(rows, i);
	}
	if (arch == SHSTK_ARCH_ARM64)
		add_stubs(rows);
	sort_rows(rows);
}

static const struct load *load_of(const struct elf_image *img, uint64_t vaddr)
{
	for (unsigned int i = 0; i < img->nload; i++)
		if (img->load[i].exec && vaddr - img->load[i].vaddr < img->load[i].filesz)
			return &img->load[i];
	return NULL;
}

static int compare_places(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * From virtual addresses to offsets in the file: what lies in no executable segment is
 * dropped. A segment ends with its last byte, whatever row holds there.
 */
static void place_rows(struct rows *rows)
{
	const struct elf_image *img = rows->img;
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct load *l = load_of(img, rows->v[i].at);

		if (!l)
			continue;
		rows->v[n].rule = rows->v[i].rule;
		rows->v[n++].at = rows->v[i].at - l->vaddr + l->offset;
	}
	rows->n = n;
	if (n)
		qsort(rows->v, n, sizeof(*rows->v), compare_places);
}

/* --- the table --- */

static int compare_rules(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The distinct rules, SHSTK_RULE_NONE first. Return: their number, 0 for no memory. */
static size_t distinct_rules(const struct rows *rows, uint64_t **ret)
{
	uint64_t *v = malloc((rows->n + 1) * sizeof(*v));
	size_t n = 0;

	if (!v)
		return 0;
	v[0] = SHSTK_RULE_NONE;
	for (size_t i = 0; i < rows->n; i++)
		v[i + 1] = rows->v[i].rule;
	qsort(v, rows->n + 1, sizeof(*v), compare_rules);
	for (size_t i = 0; i <= rows->n; i++)
		if (!n || v[n - 1] != v[i])
			v[n++] = v[i];
	*ret = v;
	return n;
}

static uint32_t rule_number(const uint64_t *rules, size_t n, uint64_t rule)
{
	const uint64_t *p = bsearch(&rule, rules, n, sizeof(*rules), compare_rules);

	return (uint32_t)(p - rules);
}

/* Executable bytes of the file, in whole pages. False: there are none, or too many. */
static bool text_range(const struct elf_image *img, uint64_t *base, uint64_t *pages)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	const uint64_t mask = (1 << SHSTK_RULES_PAGE_SHIFT) - 1;

	for (unsigned int i = 0; i < img->nload; i++) {
		const struct load *l = &img->load[i];

		if (!l->exec || !l->filesz)
			continue;
		lo = l->offset < lo ? l->offset : lo;
		hi = l->offset + l->filesz > hi ? l->offset + l->filesz : hi;
	}
	if (hi <= lo || hi >> 62)
		return false;
	*base = lo & ~mask;
	*pages = (hi - *base + mask) >> SHSTK_RULES_PAGE_SHIFT;
	return *pages <= SHSTK_RULES_MAX_PAGES;
}

/* Count what @row, which holds up to @end or the end of its segment, stands for. */
static void account(struct rules_table *t, const struct elf_image *img, const struct row *row,
		    uint64_t end)
{
	if (row->rule == SHSTK_RULE_NONE)
		return;
	for (unsigned int i = 0; i < img->nload; i++) {
		const struct load *l = &img->load[i];

		if (l->exec && row->at - l->offset < l->filesz && end > l->offset + l->filesz)
			end = l->offset + l->filesz;
	}
	t->described += end - row->at;
	if (row->rule == SHSTK_RULE_CUT)
		t->cut += end - row->at;
}

/* Each page begins with a row: the one that holds there. */
static uint32_t fill_pages(const struct rows *rows, struct shstk_rules_header *h,
			   struct rules_table *t)
{
	uint64_t *rule = (uint64_t *)(h + 1);
	uint32_t *page = (uint32_t *)(rule + h->nr_rules), *row = page + h->nr_pages + 1;
	uint32_t now = rule_number(rule, h->nr_rules, SHSTK_RULE_NONE), n = 0;
	size_t i = 0;

	for (uint32_t p = 0; p < h->nr_pages; p++) {
		uint64_t at = h->base + ((uint64_t)p << SHSTK_RULES_PAGE_SHIFT);
		uint64_t end = at + (1 << SHSTK_RULES_PAGE_SHIFT);

		page[p] = n;
		if (i == rows->n || rows->v[i].at != at)
			row[n++] = now;
		for (; i < rows->n && rows->v[i].at < end; i++) {
			now = rule_number(rule, h->nr_rules, rows->v[i].rule);
			row[n++] = (uint32_t)(rows->v[i].at - at) << 16 | now;
			account(t, rows->img, &rows->v[i],
				i + 1 < rows->n ? rows->v[i + 1].at : end);
		}
	}
	page[h->nr_pages] = n;
	return n;
}

static int build(const struct rows *rows, unsigned int machine, struct rules_table *t)
{
	struct shstk_rules_header *h;
	uint64_t base, pages, *rules;
	size_t nr_rules, size;

	if (!text_range(rows->img, &base, &pages))
		return -ENOENT;
	nr_rules = distinct_rules(rows, &rules);
	if (!nr_rules)
		return -ENOMEM;
	if (nr_rules > SHSTK_RULES_MAX_RULES || rows->n + pages > SHSTK_RULES_MAX_ROWS) {
		free(rules);
		return -E2BIG;
	}
	size = sizeof(*h) + 8 * nr_rules + 4 * (pages + 1) + 4 * (rows->n + pages);
	h = calloc(1, size);
	if (!h) {
		free(rules);
		return -ENOMEM;
	}
	*h = (struct shstk_rules_header){
		.magic = SHSTK_RULES_MAGIC,
		.version = SHSTK_RULES_VERSION,
		.machine = machine,
		.base = base,
		.nr_rules = nr_rules,
		.nr_pages = pages,
	};
	memcpy(h + 1, rules, 8 * nr_rules);
	free(rules);
	h->nr_rows = fill_pages(rows, h, t);
	t->header = h;
	t->size = sizeof(*h) + 8 * nr_rules + 4 * (pages + 1) + 4 * (size_t)h->nr_rows;
	return 0;
}

/* No two rows at one offset, as only segments that overlap in the file can give. */
static void drop_doubles(struct rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		if (n && rows->v[n - 1].at == rows->v[i].at)
			n--;
		rows->v[n++] = rows->v[i];
	}
	rows->n = n;
}

static int compile(struct rows *rows, const char *path, struct rules_table *ret)
{
	const struct elf_image *img = rows->img;

	read_cfi(rows, &img->eh_frame, false);
	read_cfi(rows, &img->debug_frame, true);
	read_sframe(rows);
	read_debug(rows, path);
	if (rows->n)
		add_start_files(rows);
	sort_rows(rows);
	add_known_code(rows);
	if (!rows->n)
		add_bare(rows);
	add_entry(rows);
	if (rows->err)
		return rows->err;
	place_rows(rows);
	drop_doubles(rows);
	if (!rows->n)
		return -ENOENT;
	ret->functions = rows->nspan;
	for (unsigned int i = 0; i < img->nload; i++)
		if (img->load[i].exec)
			ret->code += img->load[i].filesz;
	return build(rows, img->m->elf_machine, ret);
}

int rules_compile(const void *image, size_t size, const char *path, struct rules_table *ret)
{
	struct elf_image img;
	struct rows rows = { .img = &img };
	int err;

	*ret = (struct rules_table){ 0 };
	if (elf_image_parse(&img, image, size, false))
		return -ENOEXEC;
	err = compile(&rows, path, ret);
	free(rows.v);
	free(rows.span);
	return err;
}
