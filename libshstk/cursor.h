/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cursor.h - a frame of any program, and what every way to leave it needs.
 */
#ifndef SHSTK_CURSOR_H
#define SHSTK_CURSOR_H

#include "module.h"

/**
 * struct view - the program that is unwound
 * @m: its instruction set.
 * @pac_mask: bits of a return address that are no address.
 * @thread_pointer: of the thread that is unwound; 0: not known.
 * @full: recover every register, not only pc, sp and fp.
 * @mem: reads the stack, and what a walk along it needs.
 * @other: reads what lies elsewhere, other stacks too.
 * @go_tls: where below the thread pointer Go keeps its goroutine, 0 until it is found.
 * @remembers: it is the process itself: what its code says is kept (paths.h),
 * @gen: for rules of this generation.
 * @find: the module that has an address, or NULL.
 * @is_code: may the address be executed?
 * @arg: for @find and @is_code.
 * @shape: tells of frames of code that no file describes, or NULL,
 * @shape_arg: for it.
 * @made: bytes of code that no file has at an address, as module_code() gives those of files;
 *	NULL: they are not known,
 * @made_arg: for it. Valid until the next call.
 * @probe_return: where functions return to whose return is probed; 0: nobody looks.
 */
struct view {
	const struct machine *m;
	uint64_t pac_mask;
	uint64_t thread_pointer;
	bool full;
	struct memory mem;
	struct memory other;
	int32_t *go_tls;
	bool remembers;
	uint64_t gen;
	struct module *(*find)(void *arg, uint64_t pc);
	bool (*is_code)(void *arg, uint64_t pc);
	void *arg;
	shstk_shape_fn shape;
	void *shape_arg;
	const uint8_t *(*made)(void *arg, uint64_t pc, size_t *before, size_t *after);
	void *made_arg;
	uint64_t probe_return;
};

/**
 * struct cursor - one frame
 * @regs: its registers.
 * @exact: pc is where it stopped, not a return address.
 * @mark: SHSTK_MARK_* of the frame.
 * @innermost: nothing was called from here yet.
 * @ra_elsewhere: its return address is in another register than usual, or where an
 *	expression says.
 * @guessed: a heuristic found this frame, or one further in: what is read here may
 *	be no stack frame.
 * @go_g: what was in the register that Go keeps its goroutine in; it may be anything.
 * @go_g0_sp: where the thread's own stack goes on below the next call of Go by C, once
 *	one was left; or 0.
 * @probed: returns that are probed and were met.
 * @switched: the frame lies on another stack than the one that was left for it.
 */
struct cursor {
	struct regs regs;
	bool exact;
	bool innermost;
	uint8_t mark;
	bool ra_elsewhere;
	bool guessed;
	uint64_t go_g;
	uint64_t go_g0_sp;
	bool switched;
	uint8_t probed;
};

#define STEP_COMPLETE 1 /* this is the outermost frame */

/* DWARF number of the register that Go keeps its goroutine in. */
static inline unsigned int machine_go_g(const struct machine *m)
{
	return m->ra_in_reg ? 28 : 14;
}

static inline uint64_t cursor_reg(const struct cursor *c, unsigned int n)
{
	return c->regs.r[n];
}

static inline bool cursor_knows(const struct cursor *c, unsigned int n)
{
	return c->regs.known & 1ull << n;
}

static inline void cursor_set(struct regs *regs, unsigned int n, uint64_t v)
{
	regs->r[n] = v;
	regs->known |= 1ull << n;
}

static inline void cursor_guessed(struct cursor *c)
{
	c->mark = SHSTK_MARK_GUESS;
	c->guessed = true;
}

/* Read a word of the stack. 0, or negative: -enum shstk_end. */
static inline int cursor_read(const struct view *v, uint64_t addr, uint64_t *ret)
{
	if (addr & 7)
		return -SHSTK_END_BAD_STACK;
	return v->mem.read(v->mem.arg, addr, ret, 8) ? -SHSTK_END_READ : 0;
}

/* Does a register that is said to be saved at @slot hold that value itself again? */
static inline bool cursor_popped(const struct view *v, const struct cursor *c, uint64_t slot)
{
	return c->innermost && slot < cursor_reg(c, v->m->sp);
}

/*
 * Move to the caller, by return address @ra and its registers in @next. 0: done;
 * STEP_COMPLETE: there is none; negative: -enum shstk_end, no step outwards.
 */
int cursor_leave(const struct view *v, struct cursor *c, struct regs *next, uint64_t ra);

/* The same by @rule, of kind RULE_SP or RULE_FP. */
int cursor_step_rule(const struct view *v, struct cursor *c, uint64_t rule);

/*
 * Could a call have left this return address? Yes where it is in code that no file has: this may
 * be entered otherwise, as where HotSpot takes back what it compiled.
 */
bool is_after_call(const struct view *v, uint64_t ra);

/* The same, also of code that no file has, as far as its bytes are known. */
bool is_after_any_call(const struct view *v, uint64_t ra);

/* As module_code(), also of code that no file has. */
const uint8_t *view_code(const struct view *v, const struct module *mod, uint64_t pc,
			 size_t *before, size_t *after);

#endif
