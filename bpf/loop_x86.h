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

#endif /* BPF_LOOP_X86_H */
