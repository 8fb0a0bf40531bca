/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_special.h - the frames that the loop cannot pass: frames without a rule, signal frames,
 * frames with rules of rare kinds, and what uprobes hide.
 *
 * The window of user access is closed here, so each word is read separately.
 *
 * Two walks use this file: the one of this module and the BPF program in bpf/. The including file
 * must define what differs between them: struct walk and struct mapping; load() and load_code(),
 * which read user memory; find_mapping(); walk_count() and rules_cut(); and the definitions of
 * walk_x86.h and walk_arm64.h for the architecture.
 */
#ifndef USHSTK_WALK_SPECIAL_H
#define USHSTK_WALK_SPECIAL_H

#include "walk_kept.h"
#ifdef CONFIG_X86
#include "walk_special_x86.h"
#else
#include "walk_special_arm64.h"
#endif

#define MAX_SIGNALS 8
#define MAX_RECORD 0x100000 /* most bytes from sp to a frame record */

/* Returns whether @pc is behind a call instruction. */
static bool behind_call(u64 pc)
{
	u8 code[WALK_CALL_BYTES];

	return load_code(code, pc - WALK_CALL_BYTES) && walk_arch_after_call(code);
}

/*
 * Passes a frame without a rule by the frame record at fp. The record must lie on the stack not far
 * above sp, and its return address must be behind a call in executable memory. Returns GO_ON,
 * GO_CAREFULLY, or @why if there is no such record.
 */
static int step_record(struct walk *w, struct frame *f, int why)
{
	u64 fp, pc;

	if (f->fp < f->sp || f->fp - f->sp > MAX_RECORD || f->fp & 7 || !load(w, &fp, f->fp) ||
	    !load(w, &pc, f->fp + 8))
		return why;
	pc = walk_arch_strip(pc);
	if (!behind_call(pc) || !find_mapping(w, pc - 1))
		return why;
	walk_count(COUNT_RECORD);
	f->sp = f->fp + 16;
	f->fp = fp;
	f->pc = pc;
	w->exact = false;
	if (!WALK_LINK_REGISTER || !w->sp_known)
		return GO_ON;
	/* The record is at the lower end of the frame, so the size of the frame is not known. */
	w->sp_known = false;
	return GO_CAREFULLY;
}

/* Passes a signal frame: continues with the registers that the signal interrupted. */
static int step_signal(struct walk *w, struct frame *f)
{
	u64 sp = f->sp;

	if (!w->sp_known || w->signals == MAX_SIGNALS)
		return WALK_BAD_CFA;
	if (!load(w, &f->pc, sp + WALK_CONTEXT_PC) || !load(w, &f->fp, sp + WALK_CONTEXT_FP) ||
	    !load(w, &f->other, sp + WALK_CONTEXT_OTHER) || !load(w, &f->sp, sp + WALK_CONTEXT_SP))
		return WALK_NO_MEMORY;
	walk_count(COUNT_SIGNAL);
	w->signals++;
	w->exact = true;
	return GO_ON;
}

/*
 * Passes a frame by the kind of its rule. @table: a table covers its code. Returns GO_ON,
 * GO_CAREFULLY, or how the walk ends.
 */
static __always_inline int step_by_kind(struct walk *w, struct frame *f,
					const struct packed_rule *rule, bool table, bool careful)
{
	switch (packed_kind(rule->cfa)) {
	case SHSTK_RULE_END:
		return WALK_WHOLE;
	case SHSTK_RULE_SIGNAL:
		return step_signal(w, f);
	case SHSTK_RULE_NONE:
		return step_record(w, f, table ? WALK_NO_RULE : WALK_NO_TABLE);
	}
	return step_arch(w, f, rule, careful);
}

/*
 * Passes one frame that the loop cannot pass, and counts where a chain ends. Returns GO_ON,
 * GO_CAREFULLY, or how the walk ends.
 */
static noinline int step_special(struct walk *w, struct frame *f, const struct mapping *m,
				 const struct packed_rule *rule, bool careful)
{
	/* step_by_kind() may overwrite *m, so it is read before. */
	u64 offset = f->pc - !w->exact + m->file_off;
	const void *key = m->key;
	int ret = step_by_kind(w, f, rule, m->table, careful);

	/*
	 * Code that no kind of rule can describe may have a frame record. Only the first frame's fp
	 * is certain, so only that one is tried.
	 */
	if (ret == WALK_NO_KIND && !w->nr && packed_kind(rule->cfa) != PACKED_LOST)
		ret = step_record(w, f, WALK_NO_KIND);
	if (ret == WALK_NO_TABLE)
		rules_cut(key, offset, RULES_CUT_TABLE);
	else if (ret == WALK_NO_RULE)
		rules_cut(key, offset, RULES_CUT_RULE);
	else if (ret == WALK_NO_KIND)
		rules_cut(key, offset, RULES_CUT_KIND);
	return ret;
}

/* ---- Uprobes ---- */

/*
 * If @pc is the trampoline of a return probe, returns the true return address; otherwise returns
 * @pc. The trampoline is the first byte of a mapping without a file. @sp is the stack pointer after
 * the function has returned.
 */
static noinline u64 through_trampoline(struct walk *w, u64 pc, u64 sp)
{
	const struct mapping *m = find_mapping(w, pc);
	unsigned long address;

	if (!m || m->file || m->start != pc ||
	    !ushstk_take_return(&w->instance, w->sp_known ? sp - WALK_CALL_PUSHES : 0, &address))
		return pc;
	walk_count(COUNT_URETPROBE);
	return address;
}

#endif /* USHSTK_WALK_SPECIAL_H */
