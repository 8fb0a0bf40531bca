// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compile_rule.c - turns a row of unwind information into a rule for the kernel.
 */
#include <string.h>

#include <linux/shstk_rules.h>

#include "libshstk/rule.h"
#include "tools/rules/compile_private.h"

#define X86_RBX 3

/*
 * The row of a signal return may begin this many bytes in front of its code: one instruction, the
 * widest.
 */
#define SIGTRAMP_SLACK 8

/**
 * struct probe - a made-up state in which an expression is evaluated to see what it computes
 * @regs: registers that the expression may use.
 * @cfa: pushed first, unless NULL.
 * @word: the value that the first read gets; the second one gets twice as much, and so on.
 * @first: receives the address of the first read.
 * @addr: receives the address of the last read.
 * @reads: receives the number of reads.
 */
struct probe {
	struct regs regs;
	const uint64_t *cfa;
	uint64_t word;
	uint64_t first;
	uint64_t addr;
	unsigned int reads;
};

static int probe_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct probe *p = arg;
	uint64_t word;

	if (!p->reads)
		p->first = addr;
	p->addr = addr;
	word = ++p->reads * p->word;
	if (len != sizeof(word))
		return -1;
	memcpy(buf, &word, len);
	return 0;
}

/* Evaluates the expression @expr in the state @p. Returns whether it could be evaluated. */
static bool evaluate(const struct described *d, size_t expr, struct probe *p, uint64_t *ret)
{
	const struct memory mem = { .read = probe_read, .arg = p };

	p->reads = 0;
	return d->sec && !cfi_eval(d->sec, expr, &p->regs, &mem, p->cfa, ret);
}

/*
 * Makes a rule for a stub of the linker. The linker describes its stubs by an expression of pc and
 * sp: sp + 8, and sp + 16 from some byte of each 16 on. Every expression with these results is
 * taken as such a stub. Returns SHSTK_RULE_CUT if the row is not like that.
 */
static uint64_t plt_rule(const struct described *d)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;
	struct probe p = { .regs.known = 1ull << m->sp | 1ull << m->ra | 1ull << REG_PC };
	const uint64_t sp = 0x10000;
	unsigned int first = 16;
	uint64_t cfa;

	if (m->arch != SHSTK_ARCH_X86 || row->type[m->ra] != REG_AT_CFA || row->val[m->ra] != -8)
		return SHSTK_RULE_CUT;
	p.regs.r[m->sp] = sp;
	for (unsigned int i = 0; i < 16; i++) {
		p.regs.r[m->ra] = 0x20000 + i;
		p.regs.r[REG_PC] = 0x20000 + i;
		if (!evaluate(d, row->cfa_off, &p, &cfa) || p.reads)
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

/* Returns whether the caller's frame pointer is saved where this frame's frame pointer points. */
static bool fp_at_fp(const struct described *d)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;
	const uint64_t cfa = 0x40000;
	struct probe p = { .regs.known = 1ull << m->fp, .cfa = &cfa };
	uint64_t at;

	p.regs.r[m->fp] = 0x30000;
	if (row->type[m->fp] == REG_AT_REG)
		return reg_number(row->val[m->fp]) == m->fp && !reg_offset(row->val[m->fp]);
	return row->type[m->fp] == REG_AT_EXPR && evaluate(d, row->val[m->fp], &p, &at) &&
	       at == p.regs.r[m->fp] && !p.reads;
}

/*
 * Makes a rule for a function that has aligned its stack and keeps the CFA in its frame: CFA =
 * load(fp + @off), and fp points to the caller's fp. Returns SHSTK_RULE_CUT if the row is not like
 * that.
 */
static uint64_t load_rule(const struct described *d, unsigned int reg, int64_t off)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;

	if (m->arch != SHSTK_ARCH_X86 || reg != m->fp || off & 7 || off < -(1 << 17) ||
	    off >= 1 << 17 || row->type[m->ra] != REG_AT_CFA || row->val[m->ra] != -8 ||
	    !fp_at_fp(d))
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_LOAD | (uint64_t)(off / 8) << SHSTK_RULE_CFA_SHIFT;
}

/*
 * Finds out whether the expression is CFA = load(register + @off) + @more: there is one read, and
 * the CFA is made from that word. No other register is known, so the expression uses none. Returns
 * whether it is.
 */
static bool loads_cfa(const struct described *d, unsigned int reg, int64_t *off, uint64_t *more)
{
	struct probe p = { .regs.known = 1ull << reg, .word = 0x50000 };
	uint64_t cfa;

	p.regs.r[reg] = 1ull << 32;
	if (!evaluate(d, d->row->cfa_off, &p, &cfa) || p.reads != 1)
		return false;
	*off = (int64_t)(p.addr - p.regs.r[reg]);
	*more = cfa - p.word;
	return true;
}

/* Makes a rule if the expression is CFA = load(fp + off), see load_rule(). */
static uint64_t load_expression(const struct described *d)
{
	const struct machine *m = d->img->m;
	uint64_t more;
	int64_t off;

	if (!loads_cfa(d, m->fp, &off, &more) || more)
		return SHSTK_RULE_CUT;
	return load_rule(d, m->fp, off);
}

/*
 * Returns how many words below the CFA a register is saved; 0 if it is unchanged; -1 if no rule can
 * express its place.
 */
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

/*
 * Returns the field "saved" of a rule, in words; -1 if the return address is not where it must be.
 */
static int64_t saved_words(const struct machine *m, const struct cfi_row *row)
{
	int64_t words;

	if (m->ra_in_reg)
		return words_below(row, m->ra);
	if (row->type[m->ra] != REG_AT_CFA || row->val[m->ra] != -8)
		return -1;
	/* Few frames need rbx, so losing it is no reason to give up the rule. */
	words = words_below(row, X86_RBX);
	return words > 0 ? words : 0;
}

/*
 * Finds out whether the expression is CFA = load(load(sp + @off)) + @more. Returns whether it is.
 */
static bool switches_stack(const struct described *d, int64_t *off, uint64_t *more)
{
	const struct machine *m = d->img->m;
	struct probe p = { .regs.known = 1ull << m->sp, .word = 0x50000 };
	uint64_t cfa;

	p.regs.r[m->sp] = 1ull << 32;
	if (!evaluate(d, d->row->cfa_off, &p, &cfa) || p.reads != 2 || p.addr != p.word)
		return false;
	*off = (int64_t)(p.first - p.regs.r[m->sp]);
	*more = cfa - 2 * p.word;
	return true;
}

/*
 * Makes a rule for code that saves the former stack pointer in its frame, as in libcrypto: CFA =
 * load(sp + off) + more. Or it has, on a stack of its own, the address of a word with that of its caller's
 * stack, as OCaml's has: CFA = load(load(sp + off)) + more. Returns SHSTK_RULE_CUT if the row is not like that.
 */
static uint64_t stack_expression(const struct described *d)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;
	int64_t fp = words_below(row, m->fp), saved = saved_words(m, row), off;
	uint64_t more, kind = SHSTK_RULE_STACK;

	if ((m->arch != SHSTK_ARCH_X86 && m->arch != SHSTK_ARCH_ARM64) || fp < 0 || saved < 0 ||
	    (m->ra_in_reg && !saved))
		return SHSTK_RULE_CUT;
	if (switches_stack(d, &off, &more))
		kind = SHSTK_RULE_SWITCH;
	else if (!loads_cfa(d, m->sp, &off, &more))
		return SHSTK_RULE_CUT;
	if (off & 7 || off < -(1 << 17) || off >= 1 << 17 || more & 7 ||
	    more / 8 > SHSTK_RULE_REG_MASK)
		return SHSTK_RULE_CUT;
	return kind | more / 8 << SHSTK_RULE_REG_SHIFT | (uint64_t)saved << SHSTK_RULE_SAVED_SHIFT |
	       (uint64_t)fp << SHSTK_RULE_FP_SHIFT | (uint64_t)(off / 8) << SHSTK_RULE_CFA_SHIFT;
}

/*
 * Makes a rule for code that has the address of the word with its caller's stack pointer in a register, as
 * OCaml's has that pushes arguments of a C function: CFA = load(register + off) + 8. Returns SHSTK_RULE_CUT if
 * the row is not like that.
 */
static uint64_t word_expression(const struct described *d)
{
	const struct machine *m = d->img->m;
	int64_t fp = words_below(d->row, m->fp), saved = saved_words(m, d->row), off;
	int reg = d->sec ? cfi_loads_by(d->sec, d->row->cfa_off) : -1;
	uint64_t more;

	if (m->arch != SHSTK_ARCH_X86 || fp < 0 || saved < 0 || reg < 0 || reg >= 16 ||
	    !loads_cfa(d, reg, &off, &more) || more != 8 || off & 7 || off < -(1 << 17) ||
	    off >= 1 << 17)
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_WORD | (uint64_t)reg << SHSTK_RULE_REG_SHIFT |
	       (uint64_t)saved << SHSTK_RULE_SAVED_SHIFT | (uint64_t)fp << SHSTK_RULE_FP_SHIFT |
	       (uint64_t)(off / 8) << SHSTK_RULE_CFA_SHIFT;
}

/*
 * Evaluates the expression CFA = load(sp + something with register @reg) + 8 with @value in the
 * register. *@off receives the address of the read, relative to sp. Returns whether the expression
 * is like that.
 */
static bool index_at(const struct described *d, unsigned int reg, uint64_t value, uint64_t *off)
{
	const struct machine *m = d->img->m;
	struct probe p = { .regs.known = 1ull << m->sp | 1ull << reg, .word = 0x50000 };
	const uint64_t sp = 1ull << 32;
	uint64_t cfa;

	p.regs.r[m->sp] = sp;
	p.regs.r[reg] = value;
	if (!evaluate(d, d->row->cfa_off, &p, &cfa) || p.reads != 1 || cfa != p.word + 8)
		return false;
	*off = p.addr - sp;
	return true;
}

/*
 * Makes a rule for a frame whose size in words is in a register, as in RSA of libcrypto. Returns
 * SHSTK_RULE_CUT if the row is not like that.
 */
static uint64_t index_expression(const struct described *d)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;
	int64_t fp = words_below(row, m->fp), saved = saved_words(m, row);

	if (m->arch != SHSTK_ARCH_X86 || fp < 0 || saved < 0)
		return SHSTK_RULE_CUT;
	for (unsigned int reg = 0; reg < 16; reg++) {
		uint64_t none, one, many;

		if (reg == m->sp || !index_at(d, reg, 0, &none) || !index_at(d, reg, 1, &one) ||
		    !index_at(d, reg, 1000, &many))
			continue;
		if (one - none != 8 || many - none != 8000 || none & 7 || none >= 1 << 17)
			break;
		return SHSTK_RULE_INDEX | (uint64_t)reg << SHSTK_RULE_REG_SHIFT |
		       (uint64_t)saved << SHSTK_RULE_SAVED_SHIFT |
		       (uint64_t)fp << SHSTK_RULE_FP_SHIFT | none / 8 << SHSTK_RULE_CFA_SHIFT;
	}
	return SHSTK_RULE_CUT;
}

/* Makes a rule for CFA = sp + offset with the return address in an unusual register. */
static uint64_t return_rule(const struct machine *m, const struct cfi_row *row)
{
	int64_t fp = words_below(row, m->fp), words = row->cfa_off / 8;

	if (m->arch != SHSTK_ARCH_ARM64 || row->cfa_reg != m->sp || row->cfa_off & 7 || words < 0 ||
	    words > INT16_MAX || fp < 0 || row->type[m->sp] != REG_SAME)
		return SHSTK_RULE_CUT;
	return SHSTK_RULE_RETURN | (uint64_t)row->val[m->ra] << SHSTK_RULE_REG_SHIFT |
	       (uint64_t)fp << SHSTK_RULE_FP_SHIFT | (uint64_t)words << SHSTK_RULE_CFA_SHIFT;
}

/* Makes a rule for CFA = register + offset. */
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

/*
 * Makes a rule for a signal return. The code is checked, because other code may be marked as a
 * signal frame, too.
 */
static uint64_t signal_rule(const struct described *d, uint64_t vaddr)
{
	const struct machine *m = d->img->m;
	const uint8_t *code;
	size_t avail;

	for (unsigned int i = 0; i <= SIGTRAMP_SLACK; i++) {
		code = elf_image_at(d->img, vaddr + i, &avail);
		if (code && m->is_sigtramp(code, avail))
			return SHSTK_RULE_SIGNAL;
	}
	return SHSTK_RULE_CUT;
}

/*
 * Returns whether the frame has a record, of the caller's frame pointer and the return address above it.
 * Where it has none, the frame pointer leads to the record of another frame, so that the caller would be
 * missing. So it is with the end of longjmp(), which describes the frame that it returns to by the buffer.
 */
static bool has_record(const struct described *d)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;

	if (row->type[m->ra] != REG_AT_CFA || row->val[m->ra] >= 0)
		return false;
	return fp_at_fp(d) ||
	       (row->type[m->fp] == REG_AT_CFA && row->val[m->fp] == row->val[m->ra] - 8);
}

/* Makes a rule for an ordinary frame. Returns SHSTK_RULE_CUT if no kind can express it. */
static uint64_t frame_rule(const struct described *d)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;
	uint64_t rule;

	if (row->cfa_load)
		return load_rule(d, row->cfa_reg, row->cfa_off);
	if (!row->cfa_expr)
		return plain_rule(m, row);
	rule = plt_rule(d);
	if (rule == SHSTK_RULE_CUT)
		rule = load_expression(d);
	if (rule == SHSTK_RULE_CUT)
		rule = stack_expression(d);
	if (rule == SHSTK_RULE_CUT)
		rule = word_expression(d);
	return rule == SHSTK_RULE_CUT ? index_expression(d) : rule;
}

uint64_t kernel_rule(const struct described *d, uint64_t vaddr)
{
	const struct machine *m = d->img->m;
	const struct cfi_row *row = d->row;
	uint64_t rule;

	if (row->type[row->ra] == REG_UNDEFINED)
		return SHSTK_RULE_END;
	rule = row->signal_frame ? signal_rule(d, vaddr) : SHSTK_RULE_CUT;
	if (row->signal_frame && (rule == SHSTK_RULE_SIGNAL || !rule_was_called(m, row)))
		return rule;
	if (row->ra != m->ra)
		return SHSTK_RULE_CUT;
	rule = frame_rule(d);
	return rule == SHSTK_RULE_CUT && !has_record(d) ? LOST_RULE(m) : rule;
}
