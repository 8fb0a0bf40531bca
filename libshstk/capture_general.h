/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture_general.h - the general path of a capture, where there is no fast one: by the hardware
 * shadow stack, or by a walk that uses the memo.
 */
#ifndef SHSTK_CAPTURE_GENERAL_H
#define SHSTK_CAPTURE_GENERAL_H

#include "thread.h"

/*
 * Checks the call and makes the capture. Its large variables lie in scratch memory. Returns the
 * number of entries, or a negative errno.
 */
int capture_general(const struct call *c);

/*
 * Serves the call @c by the fastest path, from a frame further out than the caller's. It is for
 * code that places its own capture function in front of the library's. Returns what
 * capture_general() does.
 */
int capture_call(const struct call *c);

/*
 * Leaves the capture that enter_outermost() began, then serves the call in @t->call by
 * capture_general() and returns what that does.
 */
int capture_kept(struct thread *t);

#endif
