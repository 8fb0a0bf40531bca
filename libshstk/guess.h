/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* guess.h - leaves a frame that no unwind information describes. */
#ifndef SHSTK_GUESS_H
#define SHSTK_GUESS_H

#include "cursor.h"

/* The type of cursor_step(). */
typedef int (*step_fn)(const struct view *v, struct cursor *c, uint8_t *mark);

/*
 * Moves the cursor to the caller of its frame. @mod is the module of the frame's code, or NULL if
 * no module has it. @step is called to find out whether a guess leads further. Returns what
 * cursor_step() does; the caller's marks say that it was guessed.
 */
int guess_caller(const struct view *v, struct cursor *c, struct module *mod, step_fn step);

/*
 * Moves the cursor to the caller of a function that was just called, and whose rule is proven
 * wrong: it may be the rule of the code around the function, as in LuaJIT's interpreter. Returns
 * what cursor_leave() does, or -SHSTK_END_BAD_PC if the function was not just called.
 */
int guess_helper(const struct view *v, struct cursor *c);

/* Returns the target of the call in front of @ra, or 0 if its code does not say. */
uint64_t call_target(const struct view *v, uint64_t ra);

/* Returns true if the code at @target only jumps elsewhere, like an entry of a PLT. */
bool call_is_forwarded(const struct view *v, uint64_t target);

#endif
