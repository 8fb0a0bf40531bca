/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_kept.h - passes frames that have kept their caller's stack pointer. The caller may be on
 * another stack, as in programs of OCaml 5.
 */
#ifndef USHSTK_WALK_KEPT_H
#define USHSTK_WALK_KEPT_H

static bool behind_call(u64 pc);
static bool load_caller(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa);

/*
 * Passes a frame whose CFA is known and may be anywhere but where the frame itself is; the rest is
 * the same as in the loop.
 */
static int step_anywhere(struct walk *w, struct frame *f, const struct packed_rule *rule, u64 cfa)
{
	if (cfa == f->sp)
		return WALK_BAD_CFA;
	if (!load_caller(w, f, rule, cfa))
		return WALK_NO_MEMORY;
	f->sp = cfa;
	w->exact = false;
	return GO_ON;
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
 * Passes a frame that keeps the former stack pointer or, with @link, the address of a word that has
 * it.
 */
static int step_stack(struct walk *w, struct frame *f, const struct packed_rule *rule, bool link)
{
	u64 cfa;

	if (!w->sp_known)
		return WALK_BAD_CFA;
	if (!load(w, &cfa, f->sp + packed_cfa(rule->cfa)) || (link && !load(w, &cfa, cfa)))
		return WALK_NO_MEMORY;
	return step_kept(w, f, rule, at_words(cfa, packed_reg(rule->cfa)));
}

#endif /* USHSTK_WALK_KEPT_H */
