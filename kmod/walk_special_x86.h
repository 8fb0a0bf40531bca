/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_special_x86.h - the rare rule kinds of x86-64.
 */
#ifndef USHSTK_WALK_SPECIAL_X86_H
#define USHSTK_WALK_SPECIAL_X86_H

/* Loads the caller's registers from a frame with this CFA. Returns whether they could be read. */
static bool load_caller(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa)
{
	return load(w, &f->pc, cfa - 8) &&
	       (!rule->fp || load(w, &f->fp, at_words(cfa, rule->fp))) &&
	       (!rule->saved || load(w, &f->other, at_words(cfa, rule->saved)));
}

/* Passes a frame whose caller's frame is on the same stack. */
static int step_to(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa)
{
	return cfa < f->sp ? WALK_BAD_CFA : step_anywhere(w, f, rule, cfa);
}

/*
 * Passes a realigned frame: the CFA is in the frame, and fp points to the saved fp of the caller.
 */
static int step_load(struct walk *w, struct frame *f, const struct packed_rule *rule)
{
	u64 cfa, fp = f->fp;
	int ret;

	if (!load(w, &cfa, fp + packed_cfa(rule->cfa)))
		return WALK_NO_MEMORY;
	ret = step_to(w, f, rule, cfa);
	if (ret == GO_ON && !load(w, &f->fp, fp))
		return WALK_NO_MEMORY;
	return ret;
}

/*
 * Passes a frame whose CFA is found by an index in a register. Only the registers of the
 * interrupted frame are all known.
 */
static int step_index(struct walk *w, struct frame *f, const struct packed_rule *rule)
{
	u64 cfa;

	if (w->nr)
		return WALK_NO_KIND;
	if (!load(w, &cfa,
		  at_words(f->sp + packed_cfa(rule->cfa),
			   walk_arch_register(w->regs, packed_reg(rule->cfa)))))
		return WALK_NO_MEMORY;
	return step_to(w, f, rule, cfa + 8);
}

/*
 * Sets @ret to a register. Only the registers of the interrupted frame are all known; of outer
 * frames only rbx and, always, rbp. Returns GO_ON, or what step_arch() has to return.
 */
static int known_register(const struct walk *w, const struct frame *f, unsigned int reg,
			  bool careful, u64 *ret)
{
	if (w->nr && reg == WALK_DWARF_RBX && !careful)
		return GO_CAREFULLY;
	if (!w->nr)
		*ret = walk_arch_register(w->regs, reg);
	else if (reg == WALK_DWARF_RBP)
		*ret = f->fp;
	else if (reg == WALK_DWARF_RBX)
		*ret = f->other;
	else
		return WALK_NO_KIND;
	return GO_ON;
}

/* Passes a frame whose CFA is found by any register; with @word, by a word to which it leads. */
static int step_register(struct walk *w, struct frame *f, const struct packed_rule *rule,
			 bool careful, bool word)
{
	u64 cfa;
	int ret = known_register(w, f, packed_reg(rule->cfa), careful, &cfa);

	if (ret != GO_ON)
		return ret;
	cfa += packed_cfa(rule->cfa);
	if (!word)
		return step_kept(w, f, rule, cfa);
	if (!load(w, &cfa, cfa))
		return WALK_NO_MEMORY;
	return step_kept(w, f, rule, cfa + 8);
}

/*
 * Passes the frame of the clone() system call. A thread that has just begun (rax is 0) has no
 * caller; the thread that made it has one.
 */
static int step_clone(struct walk *w, struct frame *f, const struct packed_rule *rule)
{
	if (w->nr)
		return WALK_NO_KIND;
	return walk_arch_register(w->regs, WALK_DWARF_RAX) ? step_to(w, f, rule, f->sp + 8) :
							     WALK_WHOLE;
}

static int step_arch(struct walk *w, struct frame *f, const struct packed_rule *rule, bool careful)
{
	unsigned int in_stub = (f->pc - !w->exact) & 15;

	switch (packed_kind(rule->cfa)) {
	case SHSTK_RULE_REG:
		return step_register(w, f, rule, careful, false);
	case SHSTK_RULE_WORD:
		return step_register(w, f, rule, careful, true);
	case SHSTK_RULE_LOAD:
		return step_load(w, f, rule);
	case SHSTK_RULE_STACK:
		return step_stack(w, f, rule, false);
	case SHSTK_RULE_SWITCH:
		return step_stack(w, f, rule, true);
	case SHSTK_RULE_INDEX:
		return step_index(w, f, rule);
	case SHSTK_RULE_CLONE:
		return step_clone(w, f, rule);
	case SHSTK_RULE_PLT:
		return step_to(w, f, rule, f->sp + (in_stub >= packed_reg(rule->cfa) ? 16 : 8));
	}
	return WALK_NO_KIND;
}

#endif /* USHSTK_WALK_SPECIAL_X86_H */
