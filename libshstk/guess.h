/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guess.h - leave a frame that nothing describes.
 */
#ifndef SHSTK_GUESS_H
#define SHSTK_GUESS_H

#include "cursor.h"

/* cursor_step() */
typedef int (*step_fn)(const struct view *v, struct cursor *c, uint8_t *mark);

/*
 * Move to the caller of the frame in @c, whose code is @mod's or, if that is NULL,
 * nobody's. @step: tells whether a guess leads further. Returns as cursor_step();
 * the caller's marks say that it was guessed.
 */
int guess_caller(const struct view *v, struct cursor *c, struct module *mod, step_fn step);

/*
 * The same of a function that a call just led to, where its rule is proven wrong: the rule may be
 * that of the code around it, as in LuaJIT's interpreter. -SHSTK_END_BAD_PC: it was no such call.
 */
int guess_helper(const struct view *v, struct cursor *c);

/* The target of the call in front of @ra; 0 if its code does not say. */
uint64_t call_target(const struct view *v, uint64_t ra);

/* Does the code at @target go elsewhere at once, as in a PLT? */
bool call_is_forwarded(const struct view *v, uint64_t target);

#endif
