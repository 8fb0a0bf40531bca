/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * goswitch.h - from one stack of a Go program to the next.
 *
 * A goroutine leaves its stack for that of its thread (g0) when the runtime works for it
 * or C is called, and C that calls Go comes back to it. What lies on the other stack is
 * found through the goroutine's description (g) and the thread's (m). These are the
 * program's words, and may be wrong: nothing of them is used that does not agree with
 * the rest.
 */
#ifndef SHSTK_GOSWITCH_H
#define SHSTK_GOSWITCH_H

#include "cursor.h"

/* Places in g and m that are the same in all releases from 1.15 to 1.27. */
enum {
	GO_G_STACK_LO = 0,
	GO_G_STACK_HI = 8,
	GO_G_M = 0x30,
	GO_G_SCHED = 0x38,
	GO_SCHED_SP = 0, /* in g.sched */
	GO_SCHED_PC = 8,
	GO_SCHED_G = 16,
	GO_M_G0 = 0,
};

/**
 * struct gothread - a thread of a Go program
 * @m: its description.
 * @g0: of its own stack.
 * @curg: the goroutine it runs, or 0.
 * @curg_stack: stack of that.
 * @doubt: it runs one, whose description does not agree: @curg is 0.
 */
struct gothread {
	uint64_t m;
	uint64_t g0;
	uint64_t curg;
	struct range curg_stack;
	bool doubt;
};

/* A word of the program. False: it cannot be read. */
bool goswitch_word(const struct view *v, uint64_t addr, uint64_t *ret);

/* The thread that is unwound. False: it runs no Go, or that cannot be seen. */
bool goswitch_thread(const struct view *v, const struct cursor *c, struct gothread *t);

#define GOSWITCH_ORDINARY 2

/*
 * Leave a frame in a function that changes stacks. As cursor_step(), or
 * GOSWITCH_ORDINARY: it did not change any, the function's rule is right.
 */
int goswitch_step(const struct view *v, struct cursor *c, const struct module *mod);

/*
 * A heuristic found this frame, of Go. If the program itself says that its vdso was called from
 * there, it is no guess.
 */
void goswitch_confirm(const struct view *v, struct cursor *c);

#endif
