// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crt.c - makes rules for the code of the compiler's start files.
 */
#include <elf.h>
#include <linux/shstk_rules.h>
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/rules/crt.h"

#define MAX_FUNCTIONS 16
#define MAX_ROWS 64
#define MAX_JUMPS 16
#define MAX_BYTES 512
#define INSN_BYTES 16

/* What an instruction does to the frame. */
enum what {
	UNKNOWN,
	PLAIN, /* changes nothing */
	PUSH, /* enlarges the frame by @words and saves fp, on arm64 lr, too */
	GROW, /* enlarges the frame by @words */
	SHRINK, /* shrinks the frame by @words */
	POP, /* undoes PUSH */
	CALL, /* calls @target */
	BRANCH, /* jumps to @target or goes on */
	LEAVE, /* leaves the function */
};

/**
 * struct crt_insn - an instruction
 * @what: what it does to the frame.
 * @size: its size in bytes.
 * @words: number of words on the stack, for the kinds that change its size.
 * @target: target address; 0 if it is not in the code.
 */
struct crt_insn {
	enum what what;
	unsigned int size;
	unsigned int words;
	uint64_t target;
};

/**
 * struct state - a frame, in words
 * @cfa: distance from sp to the CFA.
 * @fp: distance from the CFA down to the saved frame pointer; 0 if it is not saved.
 * @ra: distance from the CFA down to the saved return address, on arm64; 0 if it is not saved.
 */
struct state {
	unsigned int cfa, fp, ra;
};

struct frame_at {
	uint64_t at;
	struct state state;
};

/**
 * struct crt_function - a function that is being read
 * @row: frames, each valid from its address on; @nrow of them.
 * @nrow: number of elements of @row.
 * @jump: targets of jumps, with the frame at the jump; @njump of them.
 * @njump: number of elements of @jump.
 */
struct crt_function {
	struct frame_at row[MAX_ROWS], jump[MAX_JUMPS];
	unsigned int nrow, njump;
};

/**
 * struct crt_work - the functions that are to be read
 * @crt: the file and the receiver of the rules.
 * @at: addresses of the functions; @n of them.
 * @n: number of elements of @at.
 */
struct crt_work {
	const struct crt *crt;
	uint64_t at[MAX_FUNCTIONS];
	unsigned int n;
};

static struct crt_insn plain(unsigned int size)
{
	return (struct crt_insn){ .what = PLAIN, .size = size };
}

/* ---- x86-64 ---- */

/* Returns the size of a no-op with an operand, from its 0f on; 0 if it is none. */
static unsigned int long_nop(const uint8_t *p)
{
	unsigned int mod = p[2] >> 6, sib = (p[2] & 7) == 4;

	if (p[0] != 0x0f || p[1] != 0x1f || mod == 3 || (!mod && (p[2] & 7) == 5))
		return 0;
	return 3 + sib + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/*
 * Decodes an instruction with a REX.W prefix. Known are those that move the stack pointer by 8, and
 * those that change neither the stack pointer nor, except "mov %rsp, %rbp", the frame pointer.
 */
static struct crt_insn x86_wide(const uint8_t *p)
{
	bool by_rip = (p[2] & 0xc7) == 5, registers = p[2] >> 6 == 3;
	unsigned int to = p[2] & 7, from = p[2] >> 3 & 7;

	if (p[1] == 0x83 && p[3] == 8 && (p[2] == 0xec || p[2] == 0xc4))
		return (struct crt_insn){ p[2] == 0xec ? GROW : SHRINK, 4, 1, 0 };
	if (p[1] == 0x83 && p[2] == 0x3d) /* cmpq $, (rip) */
		return plain(8);
	if (p[1] == 0x3d) /* cmp $, %rax */
		return plain(6);
	if ((p[1] == 0x8b || p[1] == 0x8d) && by_rip && from != 4 && from != 5)
		return plain(7);
	if (p[1] == 0x89 && p[2] == 0xe5) /* mov %rsp, %rbp */
		return plain(3);
	if (!registers)
		return (struct crt_insn){ 0 };
	if (p[1] == 0x39 || p[1] == 0x85) /* cmp, test */
		return plain(3);
	if (to == 4 || to == 5)
		return (struct crt_insn){ 0 };
	if (p[1] == 0x89 || p[1] == 0x29 || p[1] == 0x01 || p[1] == 0xd1)
		return plain(3);
	if (p[1] == 0x81) /* with a number */
		return plain(7);
	return p[1] == 0xc1 ? plain(4) : (struct crt_insn){ 0 };
}

/* Decodes the instruction at @p. Looks at up to INSN_BYTES. */
static struct crt_insn x86_insn(const uint8_t *p, uint64_t at)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned int skip = 0;

	if (!memcmp(p, endbr, sizeof(endbr)))
		return plain(4);
	while (skip < 3 && (p[skip] == 0x66 || p[skip] == 0x2e))
		skip++;
	if (long_nop(p + skip))
		return plain(skip + long_nop(p + skip));
	switch (p[0]) {
	case 0x48:
		return x86_wide(p);
	case 0x55:
		return (struct crt_insn){ PUSH, 1, 1, 0 };
	case 0x5d:
		return (struct crt_insn){ POP, 1, 1, 0 };
	case 0x66:
		return p[1] == 0x90 ? plain(2) : (struct crt_insn){ 0 };
	case 0x90:
		return plain(1);
	case 0x74:
	case 0x75:
		return (struct crt_insn){ BRANCH, 2, 0, at + 2 + (int8_t)p[1] };
	case 0x80:
	case 0xc6: /* cmpb and movb $, (rip) */
		return p[1] == (p[0] == 0x80 ? 0x3d : 0x05) ? plain(7) : (struct crt_insn){ 0 };
	case 0xb8:
	case 0xb9:
	case 0xbe:
	case 0xbf: /* mov $, register: addresses, where programs have fixed ones */
		return plain(5);
	case 0xc3:
		return (struct crt_insn){ LEAVE, 1, 0, 0 };
	case 0xe8:
		return (struct crt_insn){ CALL, 5, 0, at + 5 + (int32_t)get32(p + 1) };
	case 0xe9:
		return (struct crt_insn){ LEAVE, 5, 0, at + 5 + (int32_t)get32(p + 1) };
	case 0xeb:
		return (struct crt_insn){ LEAVE, 2, 0, at + 2 + (int8_t)p[1] };
	case 0xff:
		if (p[1] == 0x15 || p[1] == 0xd0)
			return (struct crt_insn){ CALL, p[1] == 0x15 ? 6 : 2, 0, 0 };
		if (p[1] == 0x25 || p[1] == 0xe0)
			return (struct crt_insn){ LEAVE, p[1] == 0x25 ? 6 : 2, 0, 0 };
		break;
	}
	return (struct crt_insn){ 0 };
}

/* ---- arm64 ---- */

static int64_t extend(uint32_t v, unsigned int bits)
{
	return (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
}

/* Decodes a jump, a call or a return. @at is its address. */
static struct crt_insn arm64_jump(uint32_t w, uint64_t at)
{
	if (w >> 26 == 0x25) /* bl */
		return (struct crt_insn){ CALL, 4, 0, at + 4 * extend(w & 0x3ffffff, 26) };
	if (w >> 26 == 0x05) /* b */
		return (struct crt_insn){ LEAVE, 4, 0, at + 4 * extend(w & 0x3ffffff, 26) };
	if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000) /* b.cond, cbz */
		return (struct crt_insn){ BRANCH, 4, 0, at + 4 * extend(w >> 5 & 0x7ffff, 19) };
	if ((w & 0x7e000000) == 0x36000000) /* tbz */
		return (struct crt_insn){ BRANCH, 4, 0, at + 4 * extend(w >> 5 & 0x3fff, 14) };
	if ((w & 0xfffffc1f) == 0xd63f0000) /* blr */
		return (struct crt_insn){ CALL, 4, 0, 0 };
	if ((w & 0xfffffc1f) == 0xd61f0000 || w == 0xd65f03c0) /* br, ret */
		return (struct crt_insn){ LEAVE, 4, 0, 0 };
	return (struct crt_insn){ 0 };
}

/* Returns whether the instruction changes no register but x0 to x28. */
static bool arm64_is_plain(uint32_t w)
{
	bool low = (w & 0x1f) < 29;

	if ((w & 0xfffff01f) == 0xd503201f || w == 0x910003fd) /* hints; mov x29, sp */
		return true;
	if ((w & 0x3fc00000) == 0x39000000) /* str */
		return true;
	if (w >> 24 == 0xeb && (w & 0x1f) == 31) /* cmp */
		return true;
	if (!low)
		return false;
	return (w & 0x9f000000) == 0x90000000 || /* adrp */
	       (w & 0x3fc00000) == 0x39400000 || /* ldr */
	       (w & 0x7f800000) == 0x52800000 || /* mov $ */
	       (w & 0x7fe0ffe0) == 0x2a0003e0 || /* mov */
	       (w & 0xff800000) == 0x91000000 || /* add $ */
	       (w & 0xdf200000) == 0x8b000000 || w >> 24 == 0xcb ||
	       w >> 24 == 0xeb || /* add, sub */
	       w >> 22 == 0x24d || w >> 22 == 0x34d; /* asr, lsr */
}

static struct crt_insn arm64_insn(const uint8_t *p, uint64_t at)
{
	uint32_t w = get32(p);
	int64_t words = extend(w >> 15 & 0x7f, 7);

	if ((w & 0xffc07fff) == 0xa9807bfd && words < 0) /* stp x29, x30, [sp, -]! */
		return (struct crt_insn){ PUSH, 4, (unsigned int)-words, 0 };
	if ((w & 0xffc07fff) == 0xa8c07bfd && words > 0) /* ldp x29, x30, [sp], + */
		return (struct crt_insn){ POP, 4, (unsigned int)words, 0 };
	return arm64_is_plain(w) ? plain(4) : arm64_jump(w, at);
}

/* ---- Functions ---- */

static bool is_x86(const struct crt *crt)
{
	return crt->img->m->arch == SHSTK_ARCH_X86;
}

static struct state state_at_entry(const struct crt *crt)
{
	return (struct state){ .cfa = is_x86(crt) };
}

static bool same(const struct state *a, const struct state *b)
{
	return a->cfa == b->cfa && a->fp == b->fp && a->ra == b->ra;
}

static uint64_t rule_of(const struct state *s)
{
	return SHSTK_RULE_SP | (uint64_t)s->ra << SHSTK_RULE_SAVED_SHIFT |
	       (uint64_t)s->fp << SHSTK_RULE_FP_SHIFT | (uint64_t)s->cfa << SHSTK_RULE_CFA_SHIFT;
}

/* Decodes the instruction at @at. */
static struct crt_insn insn_at(const struct crt *crt, uint64_t at)
{
	uint8_t code[INSN_BYTES] = { 0 };
	size_t avail;
	const uint8_t *p = elf_image_at(crt->img, at, &avail);
	struct crt_insn i = { 0 };

	if (!p)
		return i;
	memcpy(code, p, avail < sizeof(code) ? avail : sizeof(code));
	i = is_x86(crt) ? x86_insn(code, at) : arm64_insn(code, at);
	if (i.size > avail)
		i.what = UNKNOWN;
	return i;
}

/* Adds a function to the work, if it is new and nothing describes it. */
static void add_function(struct crt_work *w, uint64_t at)
{
	for (unsigned int i = 0; i < w->n; i++)
		if (w->at[i] == at)
			return;
	if (at && w->n < MAX_FUNCTIONS && !w->crt->described(w->crt->arg, at, at + 1))
		w->at[w->n++] = at;
}

/* Changes the frame @s as the instruction @i does. Returns whether this is allowed. */
static bool change(const struct crt *crt, struct state *s, const struct crt_insn *i)
{
	bool x86 = is_x86(crt);

	switch (i->what) {
	case PUSH:
		if (s->fp || (!x86 && s->cfa))
			return false;
		s->cfa += i->words;
		s->fp = s->cfa;
		s->ra = x86 ? 0 : s->cfa - 1;
		return x86 || s->ra;
	case POP:
		if (s->fp != s->cfa || s->cfa < i->words + x86)
			return false;
		s->cfa -= i->words;
		s->fp = 0;
		s->ra = 0;
		return x86 || !s->cfa;
	case GROW:
		s->cfa += i->words;
		return s->cfa < 64;
	case SHRINK:
		s->cfa -= i->words;
		return s->cfa >= 1 && s->cfa < 64 && s->cfa >= s->fp;
	default:
		return true;
	}
}

/*
 * Returns whether all jumps to @at have the frame @s. *@further is set if there are jumps to @at or
 * beyond it, so that the function does not end in front of @at.
 */
static bool jumps_fit(const struct crt_function *f, uint64_t at, const struct state *s,
		      bool *further)
{
	*further = false;
	for (unsigned int i = 0; i < f->njump; i++) {
		if (f->jump[i].at == at && !same(&f->jump[i].state, s))
			return false;
		*further |= f->jump[i].at >= at;
	}
	return true;
}

/* Notes the target of a jump and the frame there. Returns whether such a jump is understood. */
static bool add_jump(struct crt_function *f, uint64_t start, const struct crt_insn *i,
		     uint64_t next, const struct state *s)
{
	/* The start files have no loops. */
	if (f->njump == MAX_JUMPS || i->target < next || i->target - start > MAX_BYTES)
		return false;
	f->jump[f->njump++] = (struct frame_at){ i->target, *s };
	return true;
}

/*
 * Reads a function from its first instruction to its last one. Returns the end of the function, or
 * 0 if the code is not understood.
 */
static uint64_t read_function(struct crt_work *w, uint64_t start, struct crt_function *f)
{
	const struct crt *crt = w->crt;
	struct state s = state_at_entry(crt), entry = s;
	uint64_t at = start;
	bool further = true;

	while (at - start < MAX_BYTES && f->nrow < MAX_ROWS) {
		struct crt_insn i;

		if (crt->described(crt->arg, at, at + 1) || !jumps_fit(f, at, &s, &further))
			return 0;
		i = insn_at(crt, at);
		if (!f->nrow || !same(&f->row[f->nrow - 1].state, &s))
			f->row[f->nrow++] = (struct frame_at){ at, s };
		at += i.size;
		if (i.what == UNKNOWN || !change(crt, &s, &i) ||
		    (i.what == BRANCH && !add_jump(f, start, &i, at, &s)))
			return 0;
		if (i.what == CALL)
			add_function(w, i.target);
		if (i.what != LEAVE)
			continue;
		/* Where a function is left, its frame must be the same as at its entry. */
		if (!same(&s, &entry) || !jumps_fit(f, at, &s, &further))
			return 0;
		add_function(w, i.target);
		if (!further)
			return at;
	}
	return 0;
}

/* Returns the value of an entry of the dynamic section, or 0. */
static uint64_t dynamic(const struct elf_image *img, int64_t tag)
{
	Elf64_Dyn d;

	for (size_t i = 0; i + sizeof(d) <= img->dynamic.size; i += sizeof(d)) {
		memcpy(&d, img->dynamic.data + i, sizeof(d));
		if (d.d_tag == tag)
			return d.d_un.d_val;
	}
	return 0;
}

/* Returns the first entry of an array of functions, as the file has it. */
static uint64_t first_entry(const struct elf_image *img, int64_t tag)
{
	uint64_t array = dynamic(img, tag), entry;
	size_t avail;
	const uint8_t *p = array ? elf_image_at(img, array, &avail) : NULL;

	if (!p || avail < sizeof(entry))
		return 0;
	memcpy(&entry, p, sizeof(entry));
	return entry;
}

void crt_rules(const struct crt *crt)
{
	const struct elf_image *img = crt->img;
	struct crt_work w = { .crt = crt };

	if (!is_x86(crt) && img->m->arch != SHSTK_ARCH_ARM64)
		return;
	add_function(&w, dynamic(img, DT_INIT));
	add_function(&w, dynamic(img, DT_FINI));
	add_function(&w, first_entry(img, DT_INIT_ARRAY));
	add_function(&w, first_entry(img, DT_FINI_ARRAY));
	for (unsigned int i = 0; i < w.n; i++) {
		struct crt_function f = { .nrow = 0 };
		uint64_t end = read_function(&w, w.at[i], &f);

		for (unsigned int k = 0; end && k < f.nrow; k++)
			crt->add(crt->arg, f.row[k].at, rule_of(&f.row[k].state));
		if (end)
			crt->add(crt->arg, end, SHSTK_RULE_NONE);
	}
}
