// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * step.c - one step outwards: by rule, by a row of unwind information, or through a
 * signal frame. What nothing describes is guess.c's. See step.h.
 */
#include "goswitch.h"
#include "guess.h"
#include "scratch.h"
#include "step.h"

/* All of the interrupted registers lie in the signal frame. */
static own_stack int step_sigtramp(const struct view *v, struct cursor *c)
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
	c->mark = SHSTK_MARK_PC;
	return 0;
}

/* Recover one register of the caller; *is_known says if it could be. */
static int recover(const struct view *v, const struct cursor *c, const struct cfi_section *sec,
		   const struct cfi_row *row, unsigned int n, uint64_t cfa, uint64_t *ret,
		   bool *is_known)
{
	int32_t val = row->val[n];
	uint64_t addr;
	int err;

	*is_known = true;
	switch (row->type[n]) {
	case REG_SAME:
		*ret = cursor_reg(c, n);
		*is_known = cursor_knows(c, n);
		return 0;
	case REG_UNDEFINED:
		*is_known = false;
		return 0;
	case REG_AT_CFA:
		return cursor_read(v, cfa + val, ret);
	case REG_IS_CFA:
		*ret = cfa + val;
		return 0;
	case REG_IN:
		*ret = cursor_reg(c, val);
		*is_known = cursor_knows(c, val);
		return 0;
	case REG_AT_EXPR:
		err = cfi_eval(sec, val, &c->regs, &v->mem, &cfa, &addr);
		return err ? err : cursor_read(v, addr, ret);
	case REG_IS_EXPR:
		return cfi_eval(sec, val, &c->regs, &v->mem, &cfa, ret);
	case REG_AT_REG:
		*is_known = cursor_knows(c, reg_number(val));
		return *is_known ? cursor_read(v, cursor_reg(c, reg_number(val)) + reg_offset(val),
					       ret) :
				   0;
	case REG_IS_REG:
		*ret = cursor_reg(c, reg_number(val)) + reg_offset(val);
		*is_known = cursor_knows(c, reg_number(val));
		return 0;
	default:
		return -SHSTK_END_BAD_RULE;
	}
}

static int find_cfa(const struct view *v, const struct cursor *c, const struct cfi_section *sec,
		    const struct cfi_row *row, uint64_t *cfa)
{
	if (row->cfa_expr)
		return cfi_eval(sec, row->cfa_off, &c->regs, &v->mem, NULL, cfa);
	if (!cursor_knows(c, row->cfa_reg))
		return -SHSTK_END_NO_REGISTER;
	*cfa = cursor_reg(c, row->cfa_reg) + row->cfa_off;
	return row->cfa_load ? cursor_read(v, *cfa, cfa) : 0;
}

/* The caller's registers, as far as they are wanted and known. */
static int recover_all(const struct view *v, const struct cursor *c, const struct cfi_section *sec,
		       const struct cfi_row *row, struct regs *next)
{
	const struct machine *m = v->m;
	unsigned int i;
	uint64_t cfa;
	bool ok;
	int err;

	err = find_cfa(v, c, sec, row, &cfa);
	if (err)
		return err;
	for (i = 0; i < REG_PC; i++) {
		if (!v->full && i != m->fp && i != m->sp && i != row->ra)
			continue;
		err = recover(v, c, sec, row, i, cfa, &next->r[i], &ok);
		/* An epilogue may have popped it already: the register has the caller's value. */
		if (err && row->type[i] == REG_AT_CFA && cursor_popped(v, c, cfa + row->val[i])) {
			next->r[i] = cursor_reg(c, i);
			ok = cursor_knows(c, i);
			err = 0;
		}
		/* A register nobody asks for may lie in unreadable memory. */
		if (err && (i == m->sp || i == row->ra))
			return err;
		if (!err && ok)
			next->known |= 1ull << i;
	}
	if (row->type[m->sp] == REG_SAME)
		cursor_set(next, m->sp, cfa);
	if (!(next->known & 1ull << row->ra) || !(next->known & 1ull << m->sp))
		return -SHSTK_END_NO_REGISTER;
	return 0;
}

/*
 * The return address, which the row says is in *@ra. If that is another register than
 * the usual one, the function may have just begun, and not have put it there yet.
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

/* Code that a signal interrupted: its registers are as they were then. */
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

/* A step by a row: what it is from, and what it needs. */
struct row_step {
	const struct view *v;
	struct cursor *c;
	struct module *mod;
};

struct row_room {
	struct cfi_row row;
	struct regs next;
};

static int step_row_in(void *mem, void *arg)
{
	const struct row_step *step = arg;
	const struct view *v = step->v;
	struct cursor *c = step->c;
	struct row_room *room = mem;
	const struct cfi_row *row = &room->row;
	const struct cfi_section *sec;
	uint64_t ra;
	bool guess;
	int err;

	room->next.known = 0;
	err = module_row(step->mod, cursor_reg(c, REG_PC), c->exact, &room->row, &sec);
	if (err)
		return err;
	if (row->type[row->ra] == REG_UNDEFINED)
		return STEP_COMPLETE;
	err = recover_all(v, c, sec, row, &room->next);
	if (err)
		return err;
	ra = room->next.r[row->ra];
	err = find_return(v, c, row, &ra, &guess);
	if (err)
		return err;
	if (row->signal_frame)
		return leave_signal_frame(v, c, &room->next, ra);
	/* A marker's trampoline: it has no room of its own on the stack. */
	if (row->type[row->ra] == REG_AT_EXPR || row->type[row->ra] == REG_IS_EXPR)
		c->ra_elsewhere = true;
	err = cursor_leave(v, c, &room->next, ra);
	if (!err && guess)
		cursor_guessed(c);
	return err;
}

static int step_row(const struct view *v, struct cursor *c, struct module *mod)
{
	struct row_step step = { v, c, mod };

	return scratch_call(sizeof(struct row_room), step_row_in, &step);
}

/* Apart, so that cursor_step() has left the stack: guesses take more of it than the rest. */
static own_stack int step_guess(const struct view *v, struct cursor *c, struct module *mod)
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
		return v->full ? step_row(v, c, mod) : cursor_step_rule(v, c, rule);
	case RULE_FULL:
		err = mod->go.nfunc ? goswitch_step(v, c, mod) : GOSWITCH_ORDINARY;
		return err == GOSWITCH_ORDINARY ? step_row(v, c, mod) : err;
	default:
		return step_guess(v, c, mod);
	}
}
