// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * undescribed.c - makes rules for an image that has no unwind information, such as the vdso of
 * arm64.
 */
#include <linux/shstk_rules.h>

#include "libshstk/epilogue.h"
#include "tools/rules/undescribed.h"

/* Larger images are programs whose stacks are described elsewhere, such as Go programs. */
#define MAX_BYTES 0x4000

static const uint8_t *code_bytes(void *arg, uint64_t pc, size_t *len)
{
	return elf_image_at(arg, pc, len);
}

static bool nothing_covered(void *arg, uint64_t pc)
{
	(void)arg;
	(void)pc;
	return false;
}

/*
 * Converts an offset from the CFA to words below the CFA. Returns false if it is above or too far
 * away.
 */
static bool words(int64_t off, uint64_t *ret)
{
	*ret = (uint64_t)-off / 8;
	return off < 0 && *ret <= SHSTK_RULE_OFF_MASK;
}

/* Takes the rule that one path to a return gives. Returns whether the kernel can express it. */
static bool take(void *arg, uint64_t rule, bool lost_fp)
{
	uint64_t cfa = (uint64_t)rule_cfa_off(rule) / 8, ra = 0, fp = 0, *ret = arg;

	if (lost_fp || cfa > SHSTK_RULE_CFA_MAX ||
	    (rule & RULE_RA_SAVED && !words(rule_ra_off(rule), &ra)) ||
	    (rule & RULE_FP_SAVED && !words(rule_fp_off(rule), &fp)))
		return false;
	*ret = (RULE_KIND(rule) == RULE_SP ? SHSTK_RULE_SP : SHSTK_RULE_FP) |
	       ra << SHSTK_RULE_SAVED_SHIFT | fp << SHSTK_RULE_FP_SHIFT |
	       cfa << SHSTK_RULE_CFA_SHIFT;
	return true;
}

static uint64_t rule_of_code(const struct elf_image *img, uint64_t at)
{
	const struct code code = { code_bytes, nothing_covered, (void *)img };
	uint64_t rule = SHSTK_RULE_NONE;

	epilogue_rules(img->m, &code, at, true, take, &rule);
	return rule;
}

/*
 * Returns whether the instruction at @at belongs to the code to which a signal handler returns, or
 * is in front of it. The instruction in front counts because a return address is looked up by the
 * byte in front of it.
 */
static bool is_signal_return(const struct machine *m, const uint8_t *code, size_t size, size_t at)
{
	size_t next = at + m->insn_align, call = m->sigtramp_call[0];

	return m->is_sigtramp(code + at, size - at) ||
	       (next < size && m->is_sigtramp(code + next, size - next)) ||
	       (at >= call && m->is_sigtramp(code + at - call, size - at + call));
}

static void read_segment(const struct undescribed *b, const struct load *l)
{
	const struct machine *m = b->img->m;
	bool frames = m->arch == SHSTK_ARCH_ARM64 && l->filesz <= MAX_BYTES;
	uint64_t last = SHSTK_RULE_NONE;
	size_t size = 0;
	const uint8_t *code = elf_image_at(b->img, l->vaddr, &size);

	for (size_t at = 0; code && at < size && at < l->filesz; at += m->insn_align) {
		uint64_t rule = SHSTK_RULE_NONE;

		if (is_signal_return(m, code, size, at))
			rule = SHSTK_RULE_SIGNAL;
		else if (frames)
			rule = rule_of_code(b->img, l->vaddr + at);
		/* While that system call is made, the program counter is behind it. */
		if (rule != last)
			b->add(b->arg, l->vaddr + at + (last == SHSTK_RULE_SIGNAL), rule);
		last = rule;
	}
	if (last != SHSTK_RULE_NONE)
		b->add(b->arg, l->vaddr + size, SHSTK_RULE_NONE);
}

void undescribed_rules(const struct undescribed *b)
{
	for (unsigned int i = 0; i < b->img->nload; i++)
		if (b->img->load[i].exec && b->img->load[i].filesz)
			read_segment(b, &b->img->load[i]);
}
