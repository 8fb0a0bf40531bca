/* SPDX-License-Identifier: GPL-2.0-only */
/* loop_x86.h - pass frames of plain rules, which kmod/walk.c does in its loop. */
#ifndef BPF_LOOP_X86_H
#define BPF_LOOP_X86_H

static __always_inline int step_plain(struct walk *w, struct frame *f,
				      const struct packed_rule *rule)
{
	u64 base = rule->cfa & PACKED_FP ? f->fp : f->sp;

	return step_to(w, f, rule, base + (rule->cfa & ~PACKED_FLAGS));
}

/*
 * Passes the frame @f if its rule is plain, and if all that it needs is in the piece. Returns whether it
 * did. Sets @p->missed if the piece does not have the return address. @f->sp is a multiple of 8, so that
 * the CFA is none if the rule is special.
 */
static __always_inline bool pass_plain(struct piece *p, const struct packed_rule *rule,
				       struct frame *f)
{
	u64 cfa = f->sp + rule->cfa, place, pc, fp = f->fp, other = f->other;

	if (rule->cfa & PACKED_FP)
		cfa = f->fp + rule->cfa - PACKED_FP;
	if (cfa & 7 || cfa <= f->sp)
		return false;
	place = cfa - WALK_CALL_PUSHES - p->at;
	if (place >= p->size) {
		p->missed = cfa - WALK_CALL_PUSHES;
		return false;
	}
	pc = word_at_place(p, place);
	place += WALK_CALL_PUSHES;
	if (!pc || (rule->fp && !word_before(p, place, rule->fp, &fp)) ||
	    (rule->saved && !word_before(p, place, rule->saved, &other)))
		return false;
	*f = (struct frame){ pc, cfa, fp, other };
	return true;
}

#endif /* BPF_LOOP_X86_H */
