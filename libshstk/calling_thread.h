/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calling_thread.h - the calling thread as the unwinder sees it: which stack a frame lies on, what
 * is on it, and which module has an address.
 */
#ifndef SHSTK_CALLING_THREAD_H
#define SHSTK_CALLING_THREAD_H

#include "cursor.h"
#include "thread.h"

/**
 * struct own - the calling thread, during one capture
 * @t: its state.
 * @stack: bounds of the stack that is walked.
 * @outermost: the capture interrupts no other one.
 * @view: see own_view().
 */
struct own {
	struct thread *t;
	struct range stack;
	bool outermost;
	struct view view;
};

/* own_find_stack() for a stack that the thread does not know yet, or that is not its own. */
bool own_look_up_stack(struct own *o, uint64_t sp);

/* The stack @sp lies in: the thread's own is looked up once, others each time. */
static inline bool own_find_stack(struct own *o, uint64_t sp)
{
	const struct thread *t = o->t;

	if (unlikely(!t->native_known || !range_has(&t->native, sp)))
		return own_look_up_stack(o, sp);
	o->stack.lo = t->native.lo;
	o->stack.hi = t->native.hi;
	return true;
}

/*
 * The thread's stack is looked up again if a page of it from @sp outwards can't be read,
 * or the kernel can't say so: what is then found ends in front of that page. See
 * SHSTK_CHECK_STACK.
 */
void own_check_stack(struct thread *t, uint64_t sp);

/* Is @pc in a module's code? */
bool own_is_code(uint64_t pc);

/* What step.h wants to know, in @o->view. @full: every register is to be recovered. */
const struct view *own_view(struct own *o, bool full);

/* A frame of which three registers are known. */
void own_cursor(struct cursor *cur, uint64_t pc, uint64_t sp, uint64_t fp);

#endif
