// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * walk.c - one step outwards: by rule, through a signal frame, or by what can be
 * verified where nothing describes the code. See walk.h.
 */
#include "epilogue.h"
#include "walk.h"

static int read_word(const struct view *v, uint64_t addr, uint64_t *ret)
{
	if (addr & 7)
		return -SHSTK_END_BAD_STACK;
	return v->mem.read(v->mem.arg, addr, ret, 8) ? -SHSTK_END_READ : 0;
}

static uint64_t reg(const struct cursor *c, unsigned int n)
{
	return c->regs.r[n];
}

static bool known(const struct cursor *c, unsigned int n)
{
	return c->regs.known & 1ull << n;
}

static void set_reg(struct regs *regs, unsigned int n, uint64_t v)
{
	regs->r[n] = v;
	regs->known |= 1ull << n;
}

/* Move to the caller: @ra and the registers in @next; checks that we progress. */
static int leave(const struct view *v, struct cursor *c, struct regs *next,
		 uint64_t ra)
{
	const struct machine *m = v->m;
	uint64_t sp = next->r[m->sp];

	ra &= ~v->pac_mask;
	/* The outermost one has no caller; nor has a slot that was never one. */
	if (!ra)
		return c->sp_guessed ? -SHSTK_END_BAD_PC : STEP_COMPLETE;
	/* Only where the return address is in a register, sp stays the same. */
	if (sp & 7 || sp < reg(c, m->sp) ||
	    (sp == reg(c, m->sp) && !c->innermost && !c->ra_elsewhere))
		return -SHSTK_END_BAD_STACK;
	/*
	 * Hand-written code may rely on what its callees leave alone, beyond
	 * the ABI: glibc's arm64 rawmemchr() keeps its return address in x15
	 * while it calls strlen(). Only rules that name such a register see it.
	 */
	if (!v->full)
		next->known &= m->callee_saved;
	set_reg(next, REG_PC, ra);
	if (!m->ra_in_reg)
		set_reg(next, m->ra, ra);
	c->regs = *next;
	c->exact = false;
	c->innermost = false;
	c->ra_elsewhere = false;
	c->mark = 0;
	return 0;
}

/* All of the interrupted registers lie in the signal frame. */
static int step_sigtramp(const struct view *v, struct cursor *c)
{
	const struct machine *m = v->m;
	struct regs next = { .known = 0 };
	unsigned int i;

	for (i = 0; i < NREGS; i++) {
		int off = m->sigframe_offset(i);
		int err;

		if (off < 0)
			continue;
		err = read_word(v, reg(c, m->sp) + off, &next.r[i]);
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

static int step_rule(const struct view *v, struct cursor *c, uint64_t rule)
{
	const struct machine *m = v->m;
	unsigned int base = RULE_KIND(rule) == RULE_FP ? m->fp : m->sp;
	struct regs next = c->regs;
	uint64_t cfa, ra;
	int err;

	if (!known(c, base))
		return -SHSTK_END_NO_REGISTER;
	cfa = reg(c, base) + rule_cfa_off(rule);
	if (rule & RULE_RA_SAVED) {
		err = read_word(v, cfa + rule_ra_off(rule), &ra);
		if (err)
			return err;
	} else if (c->innermost && known(c, m->ra)) {
		ra = reg(c, m->ra);
	} else {
		return c->innermost ? -SHSTK_END_NO_REGISTER :
				      -SHSTK_END_BAD_RULE;
	}
	/* Of those that the code may have saved, only fp is followed. */
	next.known &= 1ull << m->fp | (v->full ? ~m->callee_saved : 0);
	if (rule & RULE_FP_SAVED) {
		uint64_t slot = cfa + rule_fp_off(rule);

		err = read_word(v, slot, &next.r[m->fp]);
		/* What lies below sp may be left out of a copy of the stack. */
		if (err && (!c->innermost || slot >= reg(c, m->sp)))
			return err;
		next.known &= ~(1ull << m->fp);
		if (!err)
			next.known |= 1ull << m->fp;
	}
	set_reg(&next, m->sp, cfa);
	return leave(v, c, &next, ra);
}

/* Recover one register of the caller; *is_known says if it could be. */
static int recover(const struct view *v, const struct cursor *c,
		   const struct cfi_section *sec, const struct cfi_row *row,
		   unsigned int n, uint64_t cfa, uint64_t *ret, bool *is_known)
{
	int32_t val = row->val[n];
	uint64_t addr;
	int err;

	*is_known = true;
	switch (row->type[n]) {
	case REG_SAME:
		*ret = reg(c, n);
		*is_known = known(c, n);
		return 0;
	case REG_UNDEFINED:
		*is_known = false;
		return 0;
	case REG_AT_CFA:
		return read_word(v, cfa + val, ret);
	case REG_IS_CFA:
		*ret = cfa + val;
		return 0;
	case REG_IN:
		*ret = reg(c, val);
		*is_known = known(c, val);
		return 0;
	case REG_AT_EXPR:
		err = cfi_eval(sec, val, &c->regs, &v->mem, &cfa, &addr);
		return err ? err : read_word(v, addr, ret);
	case REG_IS_EXPR:
		return cfi_eval(sec, val, &c->regs, &v->mem, &cfa, ret);
	case REG_AT_REG:
		*is_known = known(c, reg_number(val));
		return *is_known ? read_word(v, reg(c, reg_number(val)) +
						reg_offset(val), ret) : 0;
	case REG_IS_REG:
		*ret = reg(c, reg_number(val)) + reg_offset(val);
		*is_known = known(c, reg_number(val));
		return 0;
	default:
		return -SHSTK_END_BAD_RULE;
	}
}

/* Could a call have left this return address? */
static bool is_return_address(const struct view *v, uint64_t ra)
{
	size_t before = 0, after = 0;
	struct module *mod;
	const uint8_t *code;

	ra &= ~v->pac_mask;
	/* No call lies in front of where a signal handler returns to. */
	mod = v->find(v->arg, ra);
	if (mod && RULE_KIND(module_rule(mod, ra, true)) == RULE_SIGTRAMP)
		return true;
	if (!v->is_code(v->arg, ra - 1))
		return false;
	mod = v->find(v->arg, ra - 1);
	if (!mod || !mod->img.nload)
		return true;
	code = module_code(mod, ra - 1, &before, &after);
	if (!code)
		return true;
	return v->m->after_call(code - min(before, (size_t)15),
				min(before, (size_t)15) + 1);
}

static int step_row(const struct view *v, struct cursor *c, struct module *mod)
{
	const struct machine *m = v->m;
	const struct cfi_section *sec;
	struct regs next = { .known = 0 };
	struct cfi_row row;
	uint64_t cfa, ra;
	unsigned int i;
	bool guess = false;
	bool ok;
	int err;

	err = module_row(mod, reg(c, REG_PC), c->exact, &row, &sec);
	if (err)
		return err;
	if (row.type[row.ra] == REG_UNDEFINED)
		return STEP_COMPLETE;
	if (row.cfa_expr) {
		err = cfi_eval(sec, row.cfa_off, &c->regs, &v->mem, NULL, &cfa);
		if (err)
			return err;
	} else {
		if (!known(c, row.cfa_reg))
			return -SHSTK_END_NO_REGISTER;
		cfa = reg(c, row.cfa_reg) + row.cfa_off;
		if (row.cfa_load) {
			err = read_word(v, cfa, &cfa);
			if (err)
				return err;
		}
	}
	for (i = 0; i < REG_PC; i++) {
		if (!v->full && i != m->fp && i != m->sp && i != row.ra)
			continue;
		err = recover(v, c, sec, &row, i, cfa, &next.r[i], &ok);
		/* A register nobody asks for may lie in unreadable memory. */
		if (err && (i == m->sp || i == row.ra))
			return err;
		if (!err && ok)
			next.known |= 1ull << i;
	}
	if (row.type[m->sp] == REG_SAME)
		set_reg(&next, m->sp, cfa);
	if (!(next.known & 1ull << row.ra) || !(next.known & 1ull << m->sp))
		return -SHSTK_END_NO_REGISTER;
	ra = next.r[row.ra];
	if (row.type[row.ra] == REG_SAME) {
		if (!m->ra_in_reg || (row.ra == m->ra && !c->innermost))
			return -SHSTK_END_BAD_RULE;
		c->ra_elsewhere = row.ra != m->ra;
	}
	/* The function has just begun, its return address is not there yet. */
	if (c->ra_elsewhere && c->innermost && known(c, m->ra) &&
	    !is_return_address(v, ra)) {
		ra = reg(c, m->ra);
		if (!is_return_address(v, ra))
			return -SHSTK_END_BAD_RULE;
		guess = true;
	}
	if (row.signal_frame) {
		uint64_t callee_saved = next.known;

		err = leave(v, c, &next, ra);
		if (!err) {
			c->regs.known |= callee_saved;
			c->exact = true;
			c->innermost = true;
			c->mark = SHSTK_MARK_PC;
		}
		return err;
	}
	/* A marker's trampoline: it has no room of its own on the stack. */
	if (row.type[row.ra] == REG_AT_EXPR || row.type[row.ra] == REG_IS_EXPR)
		c->ra_elsewhere = true;
	err = leave(v, c, &next, ra);
	if (!err && guess)
		c->mark = SHSTK_MARK_GUESS;
	return err;
}

/* A call to where no code is: its caller's call just happened. */
static int guess_wild_call(const struct view *v, struct cursor *c)
{
	const struct machine *m = v->m;
	struct regs next = c->regs;
	uint64_t ra;
	int err;

	if (m->ra_in_reg) {
		if (!known(c, m->ra))
			return -SHSTK_END_NO_RULE;
		ra = reg(c, m->ra);
	} else {
		err = read_word(v, reg(c, m->sp), &ra);
		if (err)
			return err;
		set_reg(&next, m->sp, reg(c, m->sp) + 8);
	}
	if (!is_return_address(v, ra))
		return -SHSTK_END_NO_RULE;
	err = leave(v, c, &next, ra);
	if (!err)
		c->mark = SHSTK_MARK_GUESS;
	return err;
}

static const uint8_t *code_bytes(void *arg, uint64_t pc, size_t *len)
{
	size_t before;

	return module_code(arg, pc, &before, len);
}

static bool code_covered(void *arg, uint64_t pc)
{
	return module_rule(arg, pc, true) != RULE_NONE;
}

/* What the code says about its return. */
static int guess_epilogue(const struct view *v, struct cursor *c,
			  struct module *mod)
{
	const struct code code = { code_bytes, code_covered, mod };
	struct cursor next = *c;
	bool lost_fp;
	uint64_t rule;
	int err;

	rule = epilogue_rule(v->m, &code, reg(c, REG_PC), c->innermost,
			     &lost_fp);
	if (rule == RULE_NONE)
		return -SHSTK_END_NO_RULE;
	err = step_rule(v, &next, rule);
	if (err)
		return err < 0 ? -SHSTK_END_NO_RULE : err;
	if (!is_return_address(v, reg(&next, REG_PC)))
		return -SHSTK_END_NO_RULE;
	if (lost_fp)
		next.regs.known &= ~(1ull << v->m->fp);
	next.mark = SHSTK_MARK_GUESS;
	*c = next;
	return 0;
}

/* In a stub of the linker the rule is known. */
static int step_stub(const struct view *v, struct cursor *c, struct module *mod)
{
	uint64_t rule = RULE_NONE;
	const uint8_t *code;
	size_t before, len;

	if (!v->m->stub_rule || !c->innermost)
		return -SHSTK_END_NO_RULE;
	code = module_code(mod, reg(c, REG_PC), &before, &len);
	if (code)
		rule = v->m->stub_rule(code, before, len);
	return rule == RULE_NONE ? -SHSTK_END_NO_RULE : step_rule(v, c, rule);
}

/* A frame record: the caller's fp, then the return address. */
static int guess_record(const struct view *v, struct cursor *c)
{
	const struct machine *m = v->m;
	struct regs next = c->regs;
	uint64_t fp = reg(c, m->fp), at = fp + m->record_off;
	uint64_t next_fp, ra;
	int err;

	if (!known(c, m->fp) || fp & 7 || at < reg(c, m->sp) ||
	    read_word(v, at, &next_fp) || read_word(v, at + 8, &ra))
		return -SHSTK_END_NO_RULE;
	if (!(ra & ~v->pac_mask) && !next_fp)
		return STEP_COMPLETE;
	if (!is_return_address(v, ra))
		return -SHSTK_END_NO_RULE;
	next.known = 0;
	set_reg(&next, m->fp, next_fp);
	/*
	 * x86 and riscv keep the record at the top of the frame. On arm64 it is at the
	 * bottom, and so is that of the caller: its sp is its fp, as compilers
	 * lay frames out that do not grow.
	 */
	if (!m->record_low)
		set_reg(&next, m->sp, at + 16);
	else
		set_reg(&next, m->sp, next_fp > fp ? next_fp : fp + 16);
	err = leave(v, c, &next, ra);
	if (!err) {
		c->mark = SHSTK_MARK_GUESS;
		c->sp_guessed = m->record_low;
	}
	return err;
}

/*
 * The return address is still in its register: after a call it would be in this
 * function, but it is in another module. As the caller's stack pointer serves,
 * of this one and the frame record, what leads on to a return address.
 */
static int guess_leaf(const struct view *v, struct cursor *c)
{
	const struct machine *m = v->m;
	const uint64_t sp[] = { reg(c, m->sp), reg(c, m->fp) };
	uint64_t ra = reg(c, m->ra) & ~v->pac_mask;
	unsigned int i;

	if (!m->ra_in_reg || !c->innermost || !known(c, m->ra) ||
	    !is_return_address(v, ra) ||
	    v->find(v->arg, ra - 1) == v->find(v->arg, reg(c, REG_PC)))
		return -SHSTK_END_NO_RULE;
	for (i = 0; i < ARRAY_SIZE(sp); i++) {
		struct cursor caller = *c, next;
		struct regs regs = c->regs;
		uint8_t mark;

		set_reg(&regs, m->sp, sp[i]);
		if ((i && !known(c, m->fp)) || leave(v, &caller, &regs, ra))
			continue;
		caller.mark = SHSTK_MARK_GUESS;
		caller.sp_guessed = true;
		next = caller;
		if (!cursor_step(v, &next, &mark) &&
		    is_return_address(v, reg(&next, REG_PC))) {
			*c = caller;
			return 0;
		}
	}
	return -SHSTK_END_NO_RULE;
}

/* Is this where the kernel starts the program, and nothing describes it? */
static bool is_entry(struct module *mod, uint64_t pc)
{
	uint64_t entry = mod->img.entry + mod->bias;

	return pc - entry < 64 && module_rule(mod, entry, true) == RULE_NONE;
}

/*
 * A return to the first instruction of a function that no call lies in front
 * of: whoever built this stack wants that function to run last, as makecontext()
 * does.
 */
static bool is_built(const struct view *v, struct module *mod, uint64_t pc)
{
	return module_rule(mod, pc, true) != RULE_NONE &&
	       !is_return_address(v, pc);
}

static int step_guess(const struct view *v, struct cursor *c,
		      struct module *mod)
{
	uint64_t pc = reg(c, REG_PC);
	int err;

	if (mod && mod->img.nload) {
		if (!c->exact && is_built(v, mod, pc))
			return STEP_COMPLETE;
		err = step_stub(v, c, mod);
		if (err == -SHSTK_END_NO_RULE)
			err = guess_epilogue(v, c, mod);
		if (err != -SHSTK_END_NO_RULE)
			return err;
		if (is_entry(mod, pc))
			return STEP_COMPLETE;
	}
	if (c->innermost && !v->is_code(v->arg, pc))
		return guess_wild_call(v, c);
	err = guess_leaf(v, c);
	return err == -SHSTK_END_NO_RULE ? guess_record(v, c) : err;
}

int cursor_step(const struct view *v, struct cursor *c, uint8_t *mark)
{
	uint64_t pc = reg(c, REG_PC);
	struct module *mod = v->find(v->arg, pc - !c->exact);
	uint64_t rule = RULE_NONE;

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
		return v->full ? step_row(v, c, mod) : step_rule(v, c, rule);
	case RULE_FULL:
		return step_row(v, c, mod);
	default:
		return step_guess(v, c, mod);
	}
}
