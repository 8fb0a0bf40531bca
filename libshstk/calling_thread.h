/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calling_thread.h - the calling thread as a program to unwind: which stack a frame lies on, what
 * words are on it, and which module contains an address.
 */
#ifndef SHSTK_CALLING_THREAD_H
#define SHSTK_CALLING_THREAD_H

#include "cursor.h"
#include "thread.h"

#define OWN_READS 32

/**
 * struct own_reads - what a step has read
 * @unknown: the step has read something else than whole words of the stack from @lowest on, or more
 *	than OWN_READS of them.
 * @lowest: stack pointer of the frame that the step leaves.
 * @n: number of elements of @word.
 * @word: the words that were read, each with its address.
 */
struct own_reads {
	bool unknown;
	uint64_t lowest;
	unsigned int n;
	struct {
		uint64_t addr, val;
	} word[OWN_READS];
};

/**
 * struct own - the calling thread, during one capture
 * @t: the state of the thread.
 * @stack: bounds of the stack that is walked; own_find_stack() sets them.
 * @outermost: the capture does not interrupt another capture of the thread.
 * @view: the thread as step.h sees it; own_view() sets it.
 * @reads: notes what is read by way of @view; NULL, as own_view() sets it, if nobody wants to know.
 */
struct own {
	struct thread *t;
	struct range stack;
	bool outermost;
	struct view view;
	struct own_reads *reads;
};

/* Does what own_find_stack() does for a stack that is not, or not yet, known as the thread's. */
bool own_look_up_stack(struct own *o, uint64_t sp);

/*
 * Sets @o->stack to the bounds of the stack that @sp lies in. The thread's own stack is looked up
 * once, other stacks each time. Returns false if no readable memory is there.
 */
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
 * Checks the thread's stack for SHSTK_CHECK_STACK: if a page from @sp outwards can't be read, or
 * the kernel can't tell, the stack is looked up again when it is needed. The bounds found then
 * end in front of the page that can't be read.
 */
void own_check_stack(struct thread *t, uint64_t sp);

/* Tells whether @pc lies in the code of a module. */
bool own_is_code(uint64_t pc);

/*
 * Fills @o->view with the calling thread as step.h sees it, and returns it. @full: every register
 * is to be recovered.
 */
const struct view *own_view(struct own *o, bool full);

/* Makes @cur a frame of which only pc, sp and fp are known. */
void own_cursor(struct cursor *cur, uint64_t pc, uint64_t sp, uint64_t fp);

#endif
