/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * return_probes.h - finds the callers of functions whose return the kernel probes (uretprobes).
 *
 * The kernel replaces the return address of such a function by the address of its trampoline, in
 * the page that /proc/PID/maps calls [uprobes]; only the kernel knows the original address. The
 * stack slot of the return address is known, and so are the caller's stack pointer and frame
 * pointer.
 */
#ifndef SHSTK_RETURN_PROBES_H
#define SHSTK_RETURN_PROBES_H

#include "guess.h"

/* Where x86 kernels put the page if the place is free: it is the last page of user space. */
#define PROBED_PAGE_X86 0x7fffffffe000ull
#define PROBED_PAGE_SIZE 4096 /* no page is smaller */

/*
 * The most callers that are looked for in one trace: a search reads much code, and a stack may be made
 * of nothing but trampolines.
 */
#define PROBED_MAX 64

/**
 * probed_caller() - find the address that a function whose return is probed will return to
 * @v: the program.
 * @caller: the caller's registers, without the program counter.
 * @inner: an address in the function.
 *
 * The next return address on the stack leads to the caller's caller, and the call instruction in
 * front of that address tells which function the caller is. In the caller, this function looks
 * for a call instruction behind which the unwind rule has the caller's return address in just
 * that stack slot.
 *
 * Return: the return address; 0 if it is not certain.
 */
uint64_t probed_caller(const struct view *v, const struct cursor *caller, uint64_t inner);

/*
 * Steps from the trampoline to the caller's caller, where the caller is not known, or from a place
 * where an instruction is stepped to the caller of its function. That is found by its return address
 * on the stack or, where calls leave it in a register, in that. @step: tells whether a frame that was
 * found leads further. Returns the same values as cursor_step().
 */
int probed_leave(const struct view *v, struct cursor *c, step_fn step);

#endif
