/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_special_arm64.h - the kind of rule that only arm64 has.
 */
#ifndef USHSTK_WALK_SPECIAL_ARM64_H
#define USHSTK_WALK_SPECIAL_ARM64_H

/*
 * The return address is kept in a register while something is called that leaves it
 * alone: glibc's setjmp(). Its value is known if that is the interrupted frame. In the
 * frame that called the interrupted one it is trusted to be the same; what is called so
 * does leave it alone, or the function would not return either.
 */
static int step_return(struct walk *w, struct frame *f, const struct packed_rule *rule)
{
	u64 cfa = f->sp + packed_cfa(rule->cfa);

	if (w->nr > 1 || w->signals)
		return WALK_NO_KIND;
	if (!w->sp_known)
		return WALK_BAD_CFA;
	if (rule->fp && !load(w, &f->fp, at_words(cfa, rule->fp)))
		return WALK_NO_MEMORY;
	f->pc = walk_arch_strip(walk_arch_register(w->regs, packed_reg(rule->cfa)));
	f->sp = cfa;
	w->exact = false;
	return GO_ON;
}

static int step_arch(struct walk *w, struct frame *f, const struct packed_rule *rule, bool careful)
{
	return packed_kind(rule->cfa) == SHSTK_RULE_RETURN ? step_return(w, f, rule) : WALK_NO_KIND;
}

#endif /* USHSTK_WALK_SPECIAL_ARM64_H */
