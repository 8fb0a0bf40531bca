// SPDX-License-Identifier: LGPL-2.1-or-later
/* cursor.c - what every way to leave a frame needs; see cursor.h. */
#include "cursor.h"
#include "paths.h"
#include "return_probes.h"

/* The number of words behind the end of a stack that are searched for a return address. */
#define BEHIND_END 8

/*
 * Returns true if the stack goes on at @sp although the return address in front of it is 0. The
 * rule may be wrong, as LuaJIT's rule is in functions that its interpreter calls: then the true
 * return address lies some words further out. Machines with struct machine.fp_ends are not
 * searched, because there the frame pointer tells.
 */
static bool goes_on(const struct view *v, uint64_t sp)
{
	uint64_t word;
	unsigned int i;

	for (i = 0; i < BEHIND_END && !v->m->fp_ends; i++) {
		if (cursor_read(v, sp + 8 * i, &word))
			break;
		if (word && is_after_call(v, word))
			return true;
	}
	return false;
}

/*
 * Returns whether the caller may have the stack pointer @sp, which is below that of the frame that is left,
 * @own. So it is on another stack, and a call lies in front of its return address @ra. Steps may lead
 * round in a circle if memory holds anything, and then one of them comes back to the caller that is kept: which one
 * that is changes at the second, fourth, eighth step, and so on, so circles of any length are met.
 */
static bool is_lower_stack(const struct view *v, struct cursor *c, uint64_t own, uint64_t sp,
			   uint64_t ra)
{
	struct lower_stacks *l = &c->lower;

	if (!v->leaves_stack || !c->sp_kept || c->guessed || (l->nr && sp == l->kept) ||
	    !is_after_call(v, ra))
		return false;
	l->nr++;
	if (!(l->nr & (l->nr - 1)))
		l->kept = sp;
	l->below = own;
	return true;
}

/*
 * Returns whether the caller may have the stack pointer @sp, which is above that of the frame that is left.
 * A stack that was reached by a step downwards ends below the frame that was left then.
 */
static bool is_same_or_higher_stack(struct cursor *c, uint64_t sp)
{
	struct lower_stacks *l = &c->lower;

	if (!l->below || sp <= l->below)
		return true;
	if (!c->sp_kept)
		return false;
	l->below = 0;
	return true;
}

/*
 * Checks that there is a caller with the stack pointer @sp and the return address @ra. @fp: the
 * caller has a frame pointer that is not 0. Returns what cursor_leave() does.
 */
static int has_caller(const struct view *v, struct cursor *c, uint64_t sp, bool fp, uint64_t ra)
{
	uint64_t own = cursor_reg(c, v->m->sp);

	/*
	 * A return address of 0 means the outermost frame, or a slot that never held a return
	 * address.
	 */
	if (!ra)
		return c->guessed || (v->m->fp_ends && fp) || goes_on(v, sp) ? -SHSTK_END_BAD_PC :
									       STEP_COMPLETE;
	if (sp & 7)
		return -SHSTK_END_BAD_STACK;
	/* sp only stays the same if the return address is in a register. */
	if (sp == own)
		return c->innermost || c->ra_elsewhere ? 0 : -SHSTK_END_BAD_STACK;
	if (sp < own ? is_lower_stack(v, c, own, sp, ra) : is_same_or_higher_stack(c, sp))
		return 0;
	return -SHSTK_END_BAD_STACK;
}

/*
 * Completes the move to the caller. All registers but the program counter are the caller's already.
 * @ra is its return address, and @from is an address in the function that it called.
 */
static void arrive(const struct view *v, struct cursor *c, uint64_t ra, uint64_t from)
{
	const struct machine *m = v->m;
	bool probed = unlikely(ra == v->probe_return) && ra;
	uint64_t caller = 0;

	if (probed && c->probed_returns < PROBED_MAX) {
		c->probed_returns++;
		caller = probed_caller(v, c, from);
	}
	if (caller)
		ra = caller;

	/*
	 * Hand-written code may rely on what its callees leave alone, beyond
	 * the ABI: glibc's arm64 rawmemchr() keeps its return address in x15
	 * while it calls strlen(). Only rules that name such a register see it.
	 */
	if (!v->full)
		c->regs.known &= m->callee_saved;
	cursor_set(&c->regs, REG_PC, ra);
	if (!m->ra_in_reg)
		cursor_set(&c->regs, m->ra, ra);
	c->exact = false;
	c->innermost = false;
	c->ra_elsewhere = false;
	c->sp_kept = false;
	c->mark = 0;
	if (probed)
		cursor_guessed(c);
	/* Without the caller the frame is the trampoline itself; no call lies in front of it. */
	if (probed && !caller) {
		c->exact = true;
		c->mark |= SHSTK_MARK_PC;
	}
}

int cursor_leave(const struct view *v, struct cursor *c, struct regs *next, uint64_t ra)
{
	const struct machine *m = v->m;
	uint64_t from;
	int ret;

	ra &= ~v->pac_mask;
	ret = has_caller(v, c, next->r[m->sp], next->known >> m->fp & 1 && next->r[m->fp], ra);
	if (ret)
		return ret;
	from = cursor_reg(c, REG_PC);
	c->regs = *next;
	arrive(v, c, ra, from);
	return 0;
}

/* Restores only fp; most of the other registers that the code may have saved are still in place. */
int cursor_step_rule(const struct view *v, struct cursor *c, uint64_t rule)
{
	const struct machine *m = v->m;
	unsigned int base = RULE_KIND(rule) == RULE_FP ? m->fp : m->sp;
	bool knows_fp = cursor_knows(c, m->fp);
	uint64_t fp = cursor_reg(c, m->fp), cfa, ra;
	int err;

	if (!cursor_knows(c, base))
		return -SHSTK_END_NO_REGISTER;
	cfa = cursor_reg(c, base) + rule_cfa_off(rule);
	if (rule & RULE_RA_SAVED) {
		err = cursor_read(v, cfa + rule_ra_off(rule), &ra);
		if (err)
			return err;
	} else if (c->innermost && cursor_knows(c, m->ra)) {
		ra = cursor_reg(c, m->ra);
	} else {
		return c->innermost ? -SHSTK_END_NO_REGISTER : -SHSTK_END_BAD_RULE;
	}
	if (rule & RULE_FP_SAVED) {
		uint64_t slot = cfa + rule_fp_off(rule), saved;

		err = cursor_read(v, slot, &saved);
		/*
		 * A copy of the stack may lack what lies below sp. The word was popped already, so
		 * the register holds the value again; gcc does not describe that in epilogues.
		 */
		if (err && !cursor_popped(v, c, slot))
			return err;
		if (!err) {
			fp = saved;
			knows_fp = true;
		}
	}
	ra &= ~v->pac_mask;
	err = has_caller(v, c, cfa, knows_fp && fp, ra);
	if (err)
		return err;
	c->regs.known &= v->full ? ~m->callee_saved : 0;
	if (knows_fp)
		cursor_set(&c->regs, m->fp, fp);
	cursor_set(&c->regs, m->sp, cfa);
	arrive(v, c, ra, cursor_reg(c, REG_PC));
	return 0;
}

const uint8_t *view_code(const struct view *v, const struct module *mod, uint64_t pc,
			 size_t *before, size_t *after)
{
	if (mod->img.nload)
		return module_code(mod, pc, before, after);
	return v->generated && range_has(&mod->range, pc) ?
		       v->generated(v->generated_arg, pc, before, after) :
		       NULL;
}

bool is_after_any_call(const struct view *v, uint64_t ra)
{
	size_t before = 0, after = 0;
	const uint8_t *code;
	struct module *mod;

	ra &= ~v->pac_mask;
	mod = v->find(v->arg, ra - 1);
	code = mod && !mod->img.nload ? view_code(v, mod, ra - 1, &before, &after) : NULL;
	if (!code)
		return is_after_call(v, ra);
	return v->m->after_call(code - min(before, (size_t)15), min(before, (size_t)15) + 1);
}

/* Returns true if a call lies in front of @ra, or if that cannot be checked. */
static noinline_for_stack bool has_call_before(const struct view *v, uint64_t ra)
{
	size_t before = 0, after = 0;
	struct module *mod;
	const uint8_t *code;

	if (!v->is_code(v->arg, ra - 1))
		return false;
	mod = v->find(v->arg, ra - 1);
	if (!mod || !mod->img.nload)
		return true;
	code = module_code(mod, ra - 1, &before, &after);
	if (!code)
		return true;
	return v->m->after_call(code - min(before, (size_t)15), min(before, (size_t)15) + 1);
}

bool is_after_call(const struct view *v, uint64_t ra)
{
	struct module *mod;

	ra &= ~v->pac_mask;
	if (v->remembers && paths_no_code(ra - 1))
		return false;
	if (has_call_before(v, ra))
		return true;
	/* A signal handler's return address has no call in front of it. */
	mod = v->find(v->arg, ra);
	if (mod)
		return RULE_KIND(module_rule(mod, ra, true)) == RULE_SIGTRAMP;
	if (v->remembers && !v->find(v->arg, ra - 1))
		paths_saw_no_code(ra - 1);
	return false;
}
