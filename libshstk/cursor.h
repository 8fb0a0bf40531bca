/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cursor.h - one frame of any program (struct cursor), the program it belongs to (struct view), and
 * what every way to leave a frame needs.
 */
#ifndef SHSTK_CURSOR_H
#define SHSTK_CURSOR_H

#include "module.h"

/**
 * struct view - the program that is unwound
 * @m: the program's instruction set.
 * @pac_mask: the bits of a return address that are not part of the address.
 * @thread_pointer: thread pointer of the unwound thread; 0 if it is not known.
 * @full: recover every register, not only pc, sp and fp.
 * @leaves_stack: a rule may lead from a stack to a caller on another one at a lower address, as those of
 *	OCaml 5 do. Without it stack pointers only grow, on which the memo relies.
 * @mem: reads the stack, and what a walk along the stack needs.
 * @other: reads all other memory, which includes other stacks.
 * @go_tls: where Go keeps its goroutine, in words below the thread pointer; 0 until it is found.
 * @remembers: the program is this process, so what is learned from its code is kept (paths.h).
 * @gen: generation of the rules for which it is kept.
 * @find: returns the module that contains an address, or NULL.
 * @is_code: returns true if the address may be executed.
 * @arg: argument of @find and @is_code.
 * @shape: describes the frames of code that is in no file; or NULL.
 * @shape_arg: argument of @shape.
 * @generated: returns the bytes at an address of code that is in no file, like module_code() does
 *	for code of files. They are valid until the next call. NULL if such bytes are not known.
 * @generated_arg: argument of @generated.
 * @probe_return: address of the kernel's trampoline to which functions return whose return is
 *	probed; 0 if it is not known.
 */
struct view {
	const struct machine *m;
	uint64_t pac_mask;
	uint64_t thread_pointer;
	bool full;
	bool leaves_stack;
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
	const uint8_t *(*generated)(void *arg, uint64_t pc, size_t *before, size_t *after);
	void *generated_arg;
	uint64_t probe_return;
};

/**
 * struct lower_stacks - steps to stacks at lower addresses
 * @nr: number of such steps so far.
 * @kept: stack pointer of a caller to which one of them led. Each has another one, unless they lead round
 *	in a circle, so one that is kept comes again then.
 * @below: address of the frame that was left last by such a step. Until another stack is reached, frames lie
 *	below it; 0: there is no such address.
 */
struct lower_stacks {
	unsigned int nr;
	uint64_t kept;
	uint64_t below;
};

/**
 * struct cursor - one frame
 * @regs: the frame's registers.
 * @exact: pc is an interrupted program counter, not a return address.
 * @innermost: no function was called from this frame.
 * @mark: SHSTK_MARK_* of the frame.
 * @ra_elsewhere: the return address is in another register than usual, or where an expression says.
 * @guessed: a heuristic found this frame, or one further in, so the memory read here may be no
 *	stack frame.
 * @go_g: value of the register in which Go keeps its goroutine; it may be anything.
 * @go_g0_sp: stack pointer at which the thread's own stack (g0) goes on below the next call from C
 *	into Go; 0 before such a call was left.
 * @switched: the frame lies on another stack than the frame that was left for it.
 * @sp_kept: the rule that is used has the caller's stack pointer from memory, or from a register that is
 *	neither stack nor frame pointer.
 * @lower: what is known of the steps to stacks at lower addresses.
 * @probed_returns: number of probed returns whose caller was looked for so far.
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
	bool sp_kept;
	struct lower_stacks lower;
	uint8_t probed_returns;
};

#define STEP_COMPLETE 1 /* the cursor's frame is the outermost one */

/* Returns the DWARF number of the register in which Go keeps its goroutine. */
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

/* Reads a word of the stack. Returns 0 or -enum shstk_end. */
static inline int cursor_read(const struct view *v, uint64_t addr, uint64_t *ret)
{
	if (addr & 7)
		return -SHSTK_END_BAD_STACK;
	return v->mem.read(v->mem.arg, addr, ret, 8) ? -SHSTK_END_READ : 0;
}

/*
 * Returns true if a register whose rule says that it is saved at @slot was restored already: @slot
 * is below the innermost frame's stack pointer, so the register itself holds the value.
 */
static inline bool cursor_popped(const struct view *v, const struct cursor *c, uint64_t slot)
{
	return c->innermost && slot < cursor_reg(c, v->m->sp);
}

/*
 * Moves the cursor to the caller, whose return address is @ra and whose other registers are @next.
 * Returns 0, STEP_COMPLETE if there is no caller, or -enum shstk_end if the caller's frame does not
 * lie further out.
 */
int cursor_leave(const struct view *v, struct cursor *c, struct regs *next, uint64_t ra);

/*
 * Moves the cursor to the caller by @rule, of kind RULE_SP or RULE_FP. Returns what cursor_leave()
 * does, or -enum shstk_end.
 */
int cursor_step_rule(const struct view *v, struct cursor *c, uint64_t rule);

/*
 * Returns true if a call may have left the return address @ra: a call lies in front of it, or a
 * signal return trampoline begins there. It is true for all code that is in no file, because such
 * code may be entered in other ways, as where HotSpot takes back what it compiled.
 */
bool is_after_call(const struct view *v, uint64_t ra);

/*
 * Returns what is_after_call() does, but checks code that is in no file too, if its bytes are
 * known.
 */
bool is_after_any_call(const struct view *v, uint64_t ra);

/* Returns what module_code() does, also for code that is in no file. */
const uint8_t *view_code(const struct view *v, const struct module *mod, uint64_t pc,
			 size_t *before, size_t *after);

#endif
