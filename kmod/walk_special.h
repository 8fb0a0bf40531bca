/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_special.h - frames that the loop does not pass by itself: those of no rule, signal
 * frames, rules of rare kinds, and what uprobes hide.
 *
 * The window of user access is closed here: each word is read by itself.
 *
 * Two walks have it: this module's, and the BPF program of bpf/. Who includes it has defined
 * before what differs: struct walk and struct mapping; load() and load_code(), which read the
 * user's memory; find_mapping(); walk_count(), rules_cut(); and what walk_x86.h and walk_arm64.h
 * say of an architecture.
 */
#ifndef USHSTK_WALK_SPECIAL_H
#define USHSTK_WALK_SPECIAL_H

#ifdef CONFIG_X86
#include "walk_special_x86.h"
#else
#include "walk_special_arm64.h"
#endif

#define MAX_SIGNALS 8
#define MAX_RECORD 0x100000 /* bytes from sp to a frame record */

static bool behind_call(u64 pc)
{
	u8 code[WALK_CALL_BYTES];

	return load_code(code, pc - WALK_CALL_BYTES) && walk_arch_after_call(code);
}

/*
 * Code that nothing describes: the frame record at fp, if it lies in the stack a little
 * above and its return address is behind a call in executable memory.
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
	/* The record is at the frame's lower end: the rest of it is not known. */
	w->sp_known = false;
	return GO_CAREFULLY;
}

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

/* Return: GO_ON, GO_CAREFULLY, or how the walk ends. */
static noinline int step_special(struct walk *w, struct frame *f, const struct mapping *m,
				 const struct packed_rule *rule, bool careful)
{
	/* step_by_kind() may overwrite *m: read it first. */
	u64 offset = f->pc - !w->exact + m->file_off;
	const void *key = m->key;
	int ret = step_by_kind(w, f, rule, m->table, careful);

	/* What no kind of rule can say may have a frame record: only the first frame's is sure. */
	if (ret == WALK_NO_KIND && !w->nr)
		ret = step_record(w, f, WALK_NO_KIND);
	if (ret == WALK_NO_TABLE)
		rules_cut(key, offset, RULES_CUT_TABLE);
	else if (ret == WALK_NO_RULE)
		rules_cut(key, offset, RULES_CUT_RULE);
	else if (ret == WALK_NO_KIND)
		rules_cut(key, offset, RULES_CUT_KIND);
	return ret;
}

/* --- uprobes --- */

/*
 * The return address of a function with a return probe is that of a trampoline, the first byte of
 * a mapping of no file. Then the true one, else @pc itself. @sp: as the function leaves it.
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
