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
 * Passes the frame @f if its rule is plain, and if all that it needs is in the piece, which begins at @base
 * and has @size bytes. Returns whether it did. Sets @p->missed if the piece does not have the return address.
 * @f->sp counts from @base, and is a multiple of 8.
 */
static __always_inline bool pass_plain(struct piece *p, u64 base, u64 size,
				       const struct packed_rule *rule, struct frame *f)
{
	const u32 up = *(const volatile u32 *)&rule->cfa;
	const u64 words = *(const volatile u64 *)&rule->cfa;
	u64 cfa, place, fp = f->fp;

	if (!plain_cfa(base, up, f, &cfa))
		return false;
	place = cfa - WALK_CALL_PUSHES;
	if (place >= size) {
		p->missed = base + place;
		return false;
	}
	if (!saved_word(p, cfa, fp_bytes(words), &fp))
		return false;
	*f = (struct frame){ word_at_place(p, place), cfa, fp, f->other };
	return true;
}

#endif /* BPF_LOOP_X86_H */
