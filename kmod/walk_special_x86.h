/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_special_x86.h - the rule kinds that only x86-64 has.
 */
#ifndef USHSTK_WALK_SPECIAL_X86_H
#define USHSTK_WALK_SPECIAL_X86_H

static bool behind_call(u64 pc);

/*
 * Passes a frame whose CFA is known and may be anywhere but where the frame itself is; the rest is
 * the same as in the loop.
 */
static int step_anywhere(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa)
{
	if (cfa == f->sp)
		return WALK_BAD_CFA;
	if (!load(w, &f->pc, cfa - 8) || (rule->fp && !load(w, &f->fp, at_words(cfa, rule->fp))) ||
	    (rule->saved && !load(w, &f->other, at_words(cfa, rule->saved))))
		return WALK_NO_MEMORY;
	f->sp = cfa;
	w->exact = false;
	return GO_ON;
}

/* Passes a frame whose caller's frame is on the same stack. */
static int step_to(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa)
{
	return cfa < f->sp ? WALK_BAD_CFA : step_anywhere(w, f, rule, cfa);
}

/*
 * Passes a frame of which a word, or a register that is neither stack nor frame pointer, has kept
 * the caller's stack pointer. The caller's frame may be on another stack, at a lower address, as
 * those of OCaml 5 are; a call has to be in front of the return address there. Stacks that lead
 * round in a circle have as many entries as there is room for.
 */
static int step_kept(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa)
{
	const bool other = cfa < f->sp;
	int ret;

	if (other && cfa & 7)
		return WALK_BAD_CFA;
	ret = step_anywhere(w, f, rule, cfa);
	if (ret == GO_ON && other && f->pc && !behind_call(f->pc))
		return WALK_BAD_CFA;
	return ret;
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
 * Passes a frame that keeps the former stack pointer or, with @link, the address of a word that has
 * it.
 */
static int step_stack(struct walk *w, struct frame *f, const struct packed_rule *rule, bool link)
{
	u64 cfa;

	if (!load(w, &cfa, f->sp + packed_cfa(rule->cfa)) || (link && !load(w, &cfa, cfa)))
		return WALK_NO_MEMORY;
	return step_kept(w, f, rule, at_words(cfa, packed_reg(rule->cfa)));
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

/* Passes a frame whose CFA is found by any register. */
static int step_register(struct walk *w, struct frame *f, const struct packed_rule *rule,
			 bool careful)
{
	unsigned int reg = packed_reg(rule->cfa);
	u64 value;

	/* Only the registers of the interrupted frame are all known; of outer frames only rbx. */
	if (w->nr && reg != WALK_DWARF_RBX)
		return WALK_NO_KIND;
	if (w->nr && !careful)
		return GO_CAREFULLY;
	value = w->nr ? f->other : walk_arch_register(w->regs, reg);
	return step_kept(w, f, rule, value + packed_cfa(rule->cfa));
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
		return step_register(w, f, rule, careful);
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
