// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * return_probes.c - finds the callers of functions whose return is probed; see return_probes.h.
 */
#include "return_probes.h"
#include "scratch.h"

#define WORDS 512 /* most words of the stack in which the next return address is looked for */
#define FUNCTIONS 4 /* most functions that are searched for a call */
#define FUNCTION_MAX 8192 /* most bytes of a function that are searched */
#define CALL_MAX 15 /* most bytes of a call instruction */

/* How well a call instruction fits the function that was called. */
enum fit {
	FIT_NOT, /* it calls another function */
	FIT_PERHAPS, /* it calls through a pointer or a stub of the linker */
	FIT_WELL, /* it calls this function */
};

/* Tells how well the call in front of @site fits the function @called. */
static enum fit fits(const struct view *v, uint64_t site, uint64_t called)
{
	uint64_t target = call_target(v, site);

	if (target && target == called)
		return FIT_WELL;
	return !target || call_is_forwarded(v, target) ? FIT_PERHAPS : FIT_NOT;
}

/*
 * Tells whether a function that is at return address @site with the registers of @c has its own
 * return address in the word at @slot.
 */
static bool returns_by(const struct view *v, const struct cursor *c, struct module *mod,
		       uint64_t site, uint64_t slot)
{
	uint64_t rule = module_rule(mod, site, false);
	unsigned int base = RULE_KIND(rule) == RULE_FP ? v->m->fp : v->m->sp;

	if ((RULE_KIND(rule) != RULE_SP && RULE_KIND(rule) != RULE_FP) || !(rule & RULE_RA_SAVED) ||
	    !cursor_knows(c, base))
		return false;
	return cursor_reg(c, base) + rule_cfa_off(rule) + rule_ra_off(rule) == slot;
}

/* Tells whether @site lies right behind a call instruction. */
static bool is_site(const struct view *v, const struct module *mod, uint64_t site)
{
	size_t before = 0, after = 0, n;
	const uint8_t *code = module_code(mod, site - 1, &before, &after);

	n = min(before, (size_t)CALL_MAX);
	return code && v->m->after_call(code - n, n + 1);
}

/* Returns the return address of the call in the function @fn that fits best, or 0. */
static uint64_t find_site(const struct view *v, const struct cursor *c, const struct range *fn,
			  uint64_t slot, uint64_t called)
{
	uint64_t end = min(fn->hi, fn->lo + FUNCTION_MAX), site, best = 0;
	struct module *mod = v->find(v->arg, fn->lo);
	enum fit best_fit = FIT_NOT;

	for (site = fn->lo + v->m->insn_align; mod && site < end && best_fit != FIT_WELL;
	     site += v->m->insn_align) {
		enum fit fit;

		if (!is_site(v, mod, site) || !returns_by(v, c, mod, site, slot))
			continue;
		fit = fits(v, site, called);
		if (fit > best_fit) {
			best_fit = fit;
			best = site;
		}
	}
	return best;
}

/* Finds the bounds of the function that contains @pc. Returns false if it finds none. */
static bool function_at(const struct view *v, uint64_t pc, struct range *fn)
{
	struct module *mod = v->find(v->arg, pc);

	return mod && module_function(mod, pc, fn);
}

uint64_t probed_caller(const struct view *v, const struct cursor *caller, uint64_t inner)
{
	uint64_t sp = cursor_reg(caller, v->m->sp);
	unsigned int i, functions = 0;
	struct range called, fn;

	if (!function_at(v, inner, &called))
		return 0;
	for (i = 0; i < WORDS && functions < FUNCTIONS; i++) {
		uint64_t word, target, site;

		if (cursor_read(v, sp + 8 * i, &word))
			return 0;
		target = word && is_after_call(v, word) ? call_target(v, word) : 0;
		if (!target || !function_at(v, target, &fn) || fn.lo != target)
			continue;
		functions++;
		site = find_site(v, caller, &fn, sp + 8 * i, called.lo);
		if (site)
			return site;
	}
	return 0;
}

/**
 * struct leave - the arguments of probed_leave()
 * @v: the program.
 * @c: the frame of the trampoline.
 * @step: tells whether a frame leads further.
 */
struct leave {
	const struct view *v;
	struct cursor *c;
	step_fn step;
};

struct leave_room {
	struct cursor frame, next;
	struct regs regs;
};

/*
 * Tells whether the call in front of @ra may have called the function that @pc is in. The answer
 * is yes where the target of the call is not known.
 */
static bool may_have_called(const struct view *v, uint64_t ra, uint64_t pc)
{
	uint64_t target = call_target(v, ra);
	struct range fn;

	if (!target || call_is_forwarded(v, target))
		return true;
	return function_at(v, pc - 1, &fn) && fn.lo == target;
}

/*
 * Tells whether @ra, from the word at @slot, is a return address that leads further. If so,
 * @room->frame is its frame.
 */
static bool try_return(const struct leave *l, struct leave_room *room, uint64_t slot, uint64_t ra)
{
	const struct view *v = l->v;
	uint64_t fp = cursor_reg(l->c, v->m->fp), saved;
	uint8_t mark;
	int err;

	room->frame = *l->c;
	room->regs = l->c->regs;
	cursor_set(&room->regs, v->m->sp, slot + 8);
	/* The unknown caller may have had a frame record. */
	if (!v->m->record_low && fp + v->m->record_off + 8 == slot &&
	    !cursor_read(v, fp + v->m->record_off, &saved))
		cursor_set(&room->regs, v->m->fp, saved);
	if (cursor_leave(v, &room->frame, &room->regs, ra))
		return false;
	cursor_guessed(&room->frame);
	room->next = room->frame;
	err = l->step(v, &room->next, &mark);
	return err == STEP_COMPLETE || (!err && is_after_call(v, cursor_reg(&room->next, REG_PC)) &&
					may_have_called(v, cursor_reg(&room->next, REG_PC), ra));
}

static int leave_in(void *mem, void *arg)
{
	const struct leave *l = arg;
	struct leave_room *room = mem;
	uint64_t sp = cursor_reg(l->c, l->v->m->sp), word;
	unsigned int i;

	if (l->c->innermost && l->v->m->ra_in_reg && cursor_knows(l->c, l->v->m->ra)) {
		word = cursor_reg(l->c, l->v->m->ra) & ~l->v->pac_mask;
		/* The word below the stack pointer stands for the register. */
		if (is_after_call(l->v, word) && try_return(l, room, sp - 8, word)) {
			*l->c = room->frame;
			return 0;
		}
	}
	for (i = 0; i < WORDS; i++) {
		if (cursor_read(l->v, sp + 8 * i, &word))
			break;
		if (!word || word == l->v->probe_return || !is_after_call(l->v, word) ||
		    !try_return(l, room, sp + 8 * i, word))
			continue;
		*l->c = room->frame;
		return 0;
	}
	return -SHSTK_END_BAD_PC;
}

int probed_leave(const struct view *v, struct cursor *c, step_fn step)
{
	struct leave leave = { v, c, step };

	return scratch_call(sizeof(struct leave_room), leave_in, &leave);
}
