/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * return_probes.h - callers of functions whose return the kernel probes for somebody (uretprobes).
 *
 * The return address is replaced by that of the kernel's trampoline, in the page that maps call
 * [uprobes]; only the kernel knows what it was. Its place is known, and so are the caller's
 * stack pointer and frame pointer.
 */
#ifndef SHSTK_RETURN_PROBES_H
#define SHSTK_RETURN_PROBES_H

#include "guess.h"

/* Where x86 kernels put the page if nothing else is there: it is the last one. */
#define PROBED_PAGE_X86 0x7fffffffe000ull

/**
 * probed_caller() - where a function whose return is probed will return to
 * @v: the program.
 * @caller: the caller's registers but for the program counter.
 * @inner: an address in the function.
 *
 * The next return address on the stack is that of the caller's caller, and the call in front of
 * it says which function the caller is. What is looked for is a call in that function, behind
 * which its rule says that just this word is its return address.
 *
 * Return: the address; 0: it is not certain.
 */
uint64_t probed_caller(const struct view *v, const struct cursor *caller, uint64_t inner);

/*
 * Leave the trampoline, where the caller is not known: to the caller's caller, which is found by
 * its return address. Returns as cursor_step(). @step: tells whether that leads further.
 */
int probed_leave(const struct view *v, struct cursor *c, step_fn step);

#endif
