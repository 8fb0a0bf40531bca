/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * goswitch.h - steps from one stack of a Go program to another.
 *
 * A goroutine leaves its stack for the stack of its thread (g0) when the runtime works for
 * it or when it calls C; C code that calls Go returns to the goroutine's stack. The frames
 * on the other stack are found through the description of the goroutine (g) and the one of
 * the thread (m). They are in the program's memory and may be wrong: a value is used only if
 * it agrees with the others.
 */
#ifndef SHSTK_GOSWITCH_H
#define SHSTK_GOSWITCH_H

#include "cursor.h"

/* Offsets of members of g and m that are the same in all releases from Go 1.15 to 1.27. */
enum {
	GO_G_STACK_LO = 0,
	GO_G_STACK_HI = 8,
	GO_G_M = 0x30,
	GO_G_SCHED = 0x38,
	GO_SCHED_SP = 0, /* GO_SCHED_*: from the start of g.sched */
	GO_SCHED_PC = 8,
	GO_SCHED_G = 16,
	GO_M_G0 = 0,
};

/**
 * struct gothread - a thread of a Go program
 * @m: address of the thread's description.
 * @g0: address of the description of its own stack, g0.
 * @curg: address of the description of the goroutine that it runs, or 0.
 * @curg_stack: bounds of the stack of @curg.
 * @doubt: it runs a goroutine, but the descriptions do not agree; then @curg is 0.
 */
struct gothread {
	uint64_t m;
	uint64_t g0;
	uint64_t curg;
	struct range curg_stack;
	bool doubt;
};

/* Reads a word of the program. Returns false if it can't be read. */
bool goswitch_word(const struct view *v, uint64_t addr, uint64_t *ret);

/*
 * Finds the description of the thread that is unwound. Returns false if the thread does not run Go,
 * or that can't be seen.
 */
bool goswitch_thread(const struct view *v, const struct cursor *c, struct gothread *t);

#define GOSWITCH_ORDINARY 2 /* the function did not change stacks */

/*
 * Steps out of a frame of a function that changes stacks. Returns the same values as
 * cursor_step(), or GOSWITCH_ORDINARY if the function did not change stacks and its rule is
 * right.
 */
int goswitch_step(const struct view *v, struct cursor *c, const struct module *mod);

/*
 * Removes the mark of a guess from @c, a frame that a heuristic found, if it is Go code and the
 * program itself has noted that it called the vdso from there.
 */
void goswitch_confirm(const struct view *v, struct cursor *c);

#endif
