/* SPDX-License-Identifier: GPL-2.0-or-later */
/* place.h - where an interpreter's frames belong among those of its native stack. */
#ifndef TOOLS_LANGUAGE_PLACE_H
#define TOOLS_LANGUAGE_PLACE_H

#include <limits.h>

#include "tools/language/language.h"

#define PLACE_LEFT_OUT INT_MIN /* stands for frames that are not known (struct language_frames) */

/**
 * struct native_stack - a native stack that was unwound
 * @pcs: its entries, innermost first.
 * @marks: SHSTK_MARK_* of each entry.
 * @sps: the stack pointer of each entry.
 * @nr: number of entries.
 * @complete: it was seen to its end.
 * @function: returns the address at which the function with an address begins, 0: it is not known. NULL: it
 *	never is.
 * @arg: first argument of @function.
 */
struct native_stack {
	const uint64_t *pcs;
	const uint8_t *marks;
	const uint64_t *sps;
	unsigned int nr;
	bool complete;
	uint64_t (*function)(void *arg, uint64_t pc);
	void *arg;
};

/**
 * place_frames() - find the place of each frame
 * @native: the native stack.
 * @language: the language.
 * @found: the interpreter.
 * @frames: what was read of it; @inner_sp, @outer_sp, @begun, @unsure and @published are set here, and @nr becomes
 *	less if the last ones are of another native stack, and @left_out 0 if it is one of these.
 * @order: receives the entries of the stack as it is to be shown, innermost first: the index of a
 *	native entry, ~ of that of a frame, or PLACE_LEFT_OUT. It has room for as many as both have
 *	together.
 *
 * The native frame in which the interpreter ran a row of frames is replaced by these. Each row has
 * something on the native stack that was put there when the interpreter was entered: a frame of its
 * own, or a mark. Its address tells the native frame. A function that has a native frame of its own
 * (LANGUAGE_NATIVE) follows that frame in @order, as its caller, if it is known which one that is. If all
 * frames lie on the native stack, those beyond where unwinding ended follow at the end.
 *
 * Return: number of entries in @order; 0 if not every frame has its place, or anything else tells
 * that frames and stack are not of one moment.
 */
unsigned int place_frames(const struct native_stack *native, const struct language *language,
			  const struct language_found *found, struct language_frames *frames,
			  int *order);

#endif
