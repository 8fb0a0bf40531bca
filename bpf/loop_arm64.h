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
 * in the piece, which begins at @base and has @size bytes. Returns whether it did. Sets @p->missed if the
 * piece does not have the return address. @f->sp counts from @base, and is a multiple of 8.
 */
static __always_inline bool pass_plain(struct piece *p, u64 base, u64 size,
				       const struct packed_rule *rule, struct frame *f)
{
	const u32 up = *(const volatile u32 *)&rule->cfa;
	const u64 words = *(const volatile u64 *)&rule->cfa;
	u64 cfa, place, fp = f->fp;

	if (!up || !plain_cfa(base, up, f, &cfa) || !saved_bytes(words))
		return false;
	place = cfa + saved_bytes(words);
	if (place >= size) {
		p->missed = base + place;
		return false;
	}
	/* The fp may be saved above the return address, so the piece may end between them. */
	if (fp_bytes(words) && cfa + fp_bytes(words) >= size)
		return false;
	if (!saved_word(p, cfa, fp_bytes(words), &fp))
		return false;
	*f = (struct frame){ walk_arch_strip(word_at_place(p, place)), cfa, fp, f->other };
	return true;
}

#endif /* BPF_LOOP_ARM64_H */
