/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calling_thread.h - the calling thread as a program to unwind: which stack a frame lies on, what
 * words are on it, and which module contains an address.
 */
#ifndef SHSTK_CALLING_THREAD_H
#define SHSTK_CALLING_THREAD_H

#include "cursor.h"
#include "thread.h"

#define STEP_READS 32

/**
 * struct step_reads - what a step has read
 * @unknown: the step has read something else than whole words of the stack from @lowest on, or more
 *	than STEP_READS of them.
 * @lowest: stack pointer of the frame that the step leaves.
 * @n: number of elements of @word.
 * @word: the words that were read, each with its address.
 */
struct step_reads {
	bool unknown;
	uint64_t lowest;
	unsigned int n;
	struct {
		uint64_t addr, val;
	} word[STEP_READS];
};

/**
 * struct calling_thread - the calling thread, during one capture
 * @t: the state of the thread.
 * @stack: bounds of the stack that is walked; calling_thread_find_stack() sets them.
 * @outermost: the capture does not interrupt another capture of the thread.
 * @view: the thread as step.h sees it; calling_thread_view() sets it.
 * @reads: notes what is read by way of @view; NULL, as calling_thread_view() sets it, if nobody
 *	wants to know.
 */
struct calling_thread {
	struct thread *t;
	struct range stack;
	bool outermost;
	struct view view;
	struct step_reads *reads;
};

/*
 * Does what calling_thread_find_stack() does for a stack that is not, or not yet, known as the
 * thread's.
 */
bool calling_thread_look_up_stack(struct calling_thread *o, uint64_t sp);

/*
 * Sets @o->stack to the bounds of the stack that @sp lies in. The thread's own stack is looked up
 * once, other stacks each time. Returns false if no readable memory is there.
 */
static inline bool calling_thread_find_stack(struct calling_thread *o, uint64_t sp)
{
	const struct thread *t = o->t;

	if (unlikely(!t->native_known || !range_has(&t->native, sp)))
		return calling_thread_look_up_stack(o, sp);
	o->stack.lo = t->native.lo;
	o->stack.hi = t->native.hi;
	return true;
}

/*
 * Checks the thread's stack for SHSTK_CHECK_STACK: if a page from @sp outwards can't be read, or
 * the kernel can't tell, the stack is looked up again when it is needed. The bounds found then
 * end in front of the page that can't be read.
 */
void calling_thread_check_stack(struct thread *t, uint64_t sp);

/* Tells whether @pc lies in the code of a module. */
bool calling_thread_is_code(uint64_t pc);

/*
 * Tells whether @pc, which is no code of a module, is the kernel's trampoline for probed returns
 * (return_probes.h). @o->view knows it from then on. The kernel is asked, unless system calls may be
 * forbidden.
 */
bool calling_thread_is_probe_return(struct calling_thread *o, uint64_t pc);

/*
 * Fills @o->view with the calling thread as step.h sees it, and returns it. @full: every register
 * is to be recovered.
 */
const struct view *calling_thread_view(struct calling_thread *o, bool full);

/* Makes @cur a frame of which only pc, sp and fp are known. */
void calling_thread_cursor(struct cursor *cur, uint64_t pc, uint64_t sp, uint64_t fp);

#endif
