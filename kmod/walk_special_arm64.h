/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_special_arm64.h - the rare rule kinds of arm64.
 */
#ifndef USHSTK_WALK_SPECIAL_ARM64_H
#define USHSTK_WALK_SPECIAL_ARM64_H

/* Loads the caller's registers from a frame with this CFA. Returns whether they could be read. */
static bool load_caller(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa)
{
	u64 pc;

	if (!load(w, &pc, at_words(cfa, rule->saved)) ||
	    (rule->fp && !load(w, &f->fp, at_words(cfa, rule->fp))))
		return false;
	f->pc = walk_arch_strip(pc);
	return true;
}

/*
 * Passes a frame whose return address is in a register during a call that leaves that register
 * alone, as in setjmp() of glibc. The value is known if the frame is the interrupted one. In the
 * frame that called the interrupted one the register is trusted to be the same: a function that is
 * called in this way leaves the register alone, or its caller could not return either.
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

static int step_arch(struct walk *w, struct frame *f, const struct packed_rule *rule,
		     bool careful __maybe_unused)
{
	switch (packed_kind(rule->cfa)) {
	case SHSTK_RULE_RETURN:
		return step_return(w, f, rule);
	case SHSTK_RULE_STACK:
		return step_stack(w, f, rule, false);
	case SHSTK_RULE_SWITCH:
		return step_stack(w, f, rule, true);
	}
	return WALK_NO_KIND;
}

#endif /* USHSTK_WALK_SPECIAL_ARM64_H */
