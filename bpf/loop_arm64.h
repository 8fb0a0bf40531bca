/* SPDX-License-Identifier: GPL-2.0-only */
/* loop_arm64.h - pass frames of plain rules, which kmod/walk.c does in its loop. */
#ifndef BPF_LOOP_ARM64_H
#define BPF_LOOP_ARM64_H

/*
 * A function may have no frame, so the innermost frame's CFA may be equal to sp. Only that frame
 * may have its return address in the link register.
 */
static __always_inline int step_plain(struct walk *w, struct frame *f,
				      const struct packed_rule *rule)
{
	u64 cfa = f->sp + rule->cfa, pc = f->other;

	if (rule->cfa & PACKED_FP) {
		cfa = f->fp + (rule->cfa & ~PACKED_FLAGS);
		w->sp_known = true;
	} else if (!w->sp_known) {
		return step_record(w, f, WALK_BAD_CFA);
	}
	if (cfa < f->sp || (cfa == f->sp && !w->exact) || (!rule->saved && !w->exact))
		return WALK_BAD_CFA;
	if ((rule->saved && !load(w, &pc, at_words(cfa, rule->saved))) ||
	    (rule->fp && !load(w, &f->fp, at_words(cfa, rule->fp))))
		return WALK_NO_MEMORY;
	f->pc = walk_arch_strip(pc);
	f->sp = cfa;
	w->exact = false;
	return GO_ON;
}

/*
 * Passes the frame @f, which is not the innermost one, if its rule is plain, and if all that it needs is
 * in the piece. Returns whether it did. Sets @p->missed if the piece does not have the return address.
 * @f->sp is a multiple of 8, so that the CFA is none if the rule is special.
 */
static __always_inline bool pass_plain(struct piece *p, const struct packed_rule *rule,
				       struct frame *f)
{
	u64 cfa = f->sp + rule->cfa, place, pc, fp = f->fp;

	if (rule->cfa & PACKED_FP)
		cfa = f->fp + rule->cfa - PACKED_FP;
	if (cfa & 7 || cfa <= f->sp || !rule->saved)
		return false;
	place = at_words(cfa, rule->saved) - p->at;
	if (place >= p->size) {
		p->missed = at_words(cfa, rule->saved);
		return false;
	}
	pc = walk_arch_strip(word_at_place(p, place));
	if (!pc || (rule->fp && !word_of_piece(p, at_words(cfa, rule->fp), &fp)))
		return false;
	*f = (struct frame){ pc, cfa, fp, f->other };
	return true;
}

#endif /* BPF_LOOP_ARM64_H */
