// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * step.c - one step outwards: by an unwind rule, by a row of unwind information, or through
 * a signal frame. guess.c steps out of code that nothing describes. See step.h.
 */
#include "go/goswitch.h"
#include "guess.h"
#include "scratch.h"
#include "step.h"

/* Steps out of a signal return trampoline: all interrupted registers lie in the signal frame. */
static noinline_for_stack int step_sigtramp(const struct view *v, struct cursor *c)
{
	const struct machine *m = v->m;
	struct regs next = { .known = 0 };
	unsigned int i;

	for (i = 0; i < NREGS; i++) {
		int off = m->sigframe_offset(i);
		int err;

		if (off < 0)
			continue;
		err = cursor_read(v, cursor_reg(c, m->sp) + off, &next.r[i]);
		if (err)
			return err;
		next.known |= 1ull << i;
	}
	c->regs = next;
	c->exact = true;
	c->innermost = true;
	c->lower.below = 0; /* the handler may have had a stack of its own */
	c->mark = SHSTK_MARK_PC;
	return 0;
}

/**
 * struct row_step - a step by a row of unwind information
 * @v: the program that is unwound.
 * @c: the frame that is left.
 * @sec: the section that @row comes from; expressions of the row lie in it.
 * @row: where the caller's registers are.
 * @cfa: the frame's CFA.
 * @next: the caller's registers, as far as they are wanted and known.
 */
struct row_step {
	const struct view *v;
	struct cursor *c;
	const struct cfi_section *sec;
	struct cfi_row row;
	uint64_t cfa;
	struct regs next;
};

/*
 * Recovers register @n of the caller; *@is_known tells whether its value is known. Returns 0, or a
 * negative enum shstk_end.
 */
static int recover(const struct row_step *s, unsigned int n, uint64_t *ret, bool *is_known)
{
	const struct cursor *c = s->c;
	int32_t val = s->row.val[n];
	uint64_t addr;
	int err;

	*is_known = true;
	switch (s->row.type[n]) {
	case REG_SAME:
		*ret = cursor_reg(c, n);
		*is_known = cursor_knows(c, n);
		return 0;
	case REG_UNDEFINED:
		*is_known = false;
		return 0;
	case REG_AT_CFA:
		return cursor_read(s->v, s->cfa + val, ret);
	case REG_IS_CFA:
		*ret = s->cfa + val;
		return 0;
	case REG_IN:
		*ret = cursor_reg(c, val);
		*is_known = cursor_knows(c, val);
		return 0;
	case REG_AT_EXPR:
		err = cfi_eval(s->sec, val, &c->regs, &s->v->mem, &s->cfa, &addr);
		return err ? err : cursor_read(s->v, addr, ret);
	case REG_IS_EXPR:
		return cfi_eval(s->sec, val, &c->regs, &s->v->mem, &s->cfa, ret);
	case REG_AT_REG:
		*is_known = cursor_knows(c, reg_number(val));
		addr = cursor_reg(c, reg_number(val)) + reg_offset(val);
		return *is_known ? cursor_read(s->v, addr, ret) : 0;
	case REG_IS_REG:
		*ret = cursor_reg(c, reg_number(val)) + reg_offset(val);
		*is_known = cursor_knows(c, reg_number(val));
		return 0;
	default:
		return -SHSTK_END_BAD_RULE;
	}
}

static int find_cfa(struct row_step *s)
{
	const struct cfi_row *row = &s->row;
	const struct cursor *c = s->c;

	if (row->cfa_expr)
		return cfi_eval(s->sec, row->cfa_off, &c->regs, &s->v->mem, NULL, &s->cfa);
	if (!cursor_knows(c, row->cfa_reg))
		return -SHSTK_END_NO_REGISTER;
	s->cfa = cursor_reg(c, row->cfa_reg) + row->cfa_off;
	return row->cfa_load ? cursor_read(s->v, s->cfa, &s->cfa) : 0;
}

/* Recovers the caller's registers into @s->next. Returns 0, or a negative enum shstk_end. */
static int recover_all(struct row_step *s)
{
	const struct machine *m = s->v->m;
	const struct cfi_row *row = &s->row;
	struct regs *next = &s->next;
	unsigned int i;
	bool ok;
	int err;

	err = find_cfa(s);
	if (err)
		return err;
	for (i = 0; i < REG_PC; i++) {
		if (!s->v->full && i != m->fp && i != m->sp && i != row->ra)
			continue;
		err = recover(s, i, &next->r[i], &ok);
		/* If an epilogue has already popped it, the register has the caller's value. */
		if (err && row->type[i] == REG_AT_CFA &&
		    cursor_popped(s->v, s->c, s->cfa + row->val[i])) {
			next->r[i] = cursor_reg(s->c, i);
			ok = cursor_knows(s->c, i);
			err = 0;
		}
		/* A register that is not needed may lie in memory that can't be read. */
		if (err && (i == m->sp || i == row->ra))
			return err;
		if (!err && ok)
			next->known |= 1ull << i;
	}
	if (row->type[m->sp] == REG_SAME)
		cursor_set(next, m->sp, s->cfa);
	if (!(next->known & 1ull << row->ra) || !(next->known & 1ull << m->sp))
		return -SHSTK_END_NO_REGISTER;
	return 0;
}

/*
 * Checks the return address *@ra that the row gives. If the row has it in another register
 * than the usual one, the function may have just begun and not have put it there yet: then
 * *@ra becomes the value of the usual register, and *@guess is set. Returns 0, or a negative
 * enum shstk_end.
 */
static int find_return(const struct view *v, struct cursor *c, const struct cfi_row *row,
		       uint64_t *ra, bool *guess)
{
	const struct machine *m = v->m;

	*guess = false;
	if (row->type[row->ra] == REG_SAME) {
		if (!m->ra_in_reg || (row->ra == m->ra && !c->innermost))
			return -SHSTK_END_BAD_RULE;
		c->ra_elsewhere = row->ra != m->ra;
	}
	if (!c->ra_elsewhere || !c->innermost || !cursor_knows(c, m->ra) || is_after_call(v, *ra))
		return 0;
	*ra = cursor_reg(c, m->ra);
	*guess = true;
	return is_after_call(v, *ra) ? 0 : -SHSTK_END_BAD_RULE;
}

/* Steps from a signal frame to the code that the signal interrupted, with all its registers. */
static int leave_signal_frame(const struct view *v, struct cursor *c, struct regs *next,
			      uint64_t ra)
{
	uint64_t callee_saved = next->known;
	int err = cursor_leave(v, c, next, ra);

	if (err)
		return err;
	c->regs.known |= callee_saved;
	c->exact = true;
	c->innermost = true;
	c->mark = SHSTK_MARK_PC;
	return 0;
}

/* The arguments of step_row(). */
struct row_call {
	const struct view *v;
	struct cursor *c;
	struct module *mod;
};

static int step_row_in(void *mem, void *arg)
{
	const struct row_call *call = arg;
	struct row_step *s = mem;
	const struct cfi_row *row = &s->row;
	const struct view *v = call->v;
	struct cursor *c = call->c;
	uint64_t ra;
	bool guess;
	int err;

	s->v = v;
	s->c = c;
	s->next.known = 0;
	err = module_row(call->mod, cursor_reg(c, REG_PC), c->exact, &s->row, &s->sec);
	if (err)
		return err;
	if (row->type[row->ra] == REG_UNDEFINED)
		return STEP_COMPLETE;
	err = recover_all(s);
	if (err)
		return err;
	c->sp_kept = row->cfa_expr || row->cfa_load ||
		     (row->cfa_reg != v->m->sp && row->cfa_reg != v->m->fp);
	ra = s->next.r[row->ra];
	err = find_return(v, c, row, &ra, &guess);
	if (err)
		return err;
	if (row->signal_frame && !rule_was_called(v->m, row))
		return leave_signal_frame(v, c, &s->next, ra);
	/*
	 * Such frames may take no room on the stack: a marker's trampoline, and code that keeps
	 * its return address in another register (arm64's rawmemchr() in glibc 2.41).
	 */
	if (row->type[row->ra] == REG_AT_EXPR || row->type[row->ra] == REG_IS_EXPR ||
	    row->type[row->ra] == REG_IN)
		c->ra_elsewhere = true;
	err = cursor_leave(v, c, &s->next, ra);
	if (!err && guess)
		cursor_guessed(c);
	return err;
}

static int step_row(const struct view *v, struct cursor *c, struct module *mod)
{
	struct row_call call = { v, c, mod };

	return scratch_call(sizeof(struct row_step), step_row_in, &call);
}

/*
 * Steps out of code that nothing describes. It is a function of its own so that the frame of
 * cursor_step() is gone from the stack by then: guesses need more stack than the other steps.
 */
static noinline_for_stack int step_guess(const struct view *v, struct cursor *c, struct module *mod)
{
	int err = guess_caller(v, c, mod, cursor_step);

	if (!err)
		goswitch_confirm(v, c);
	return err;
}

int cursor_step(const struct view *v, struct cursor *c, uint8_t *mark)
{
	uint64_t pc = cursor_reg(c, REG_PC);
	struct module *mod = v->find(v->arg, pc - !c->exact);
	uint64_t rule = RULE_NONE;
	int err;

	if (mod)
		rule = module_rule(mod, pc, c->exact);
	*mark = c->mark;
	switch (RULE_KIND(rule)) {
	case RULE_SIGTRAMP:
		*mark |= SHSTK_MARK_SIGNAL;
		return step_sigtramp(v, c);
	case RULE_END:
		return STEP_COMPLETE;
	case RULE_SP:
	case RULE_FP:
		err = v->full ? step_row(v, c, mod) : cursor_step_rule(v, c, rule);
		return err == -SHSTK_END_BAD_PC ? guess_helper(v, c) : err;
	case RULE_FULL:
		err = mod->go.nfunc ? goswitch_step(v, c, mod) : GOSWITCH_ORDINARY;
		return err == GOSWITCH_ORDINARY ? step_row(v, c, mod) : err;
	default:
		return step_guess(v, c, mod);
	}
}
