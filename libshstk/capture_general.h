/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture_general.h - the general way to capture, where no fast one applies: by the hardware
 * shadow stack, or by a walk that uses the memo.
 */
#ifndef SHSTK_CAPTURE_GENERAL_H
#define SHSTK_CAPTURE_GENERAL_H

#include "thread.h"

/*
 * Check the call and make the capture. Returns the number of entries, or a negative errno. Its
 * large variables lie in scratch memory.
 */
int capture_general(const struct call *c);

/*
 * The call @c by the fastest way that serves it, from a frame further out than the caller's: for
 * code that puts a capture of its own in front of the library's.
 */
int capture_call(const struct call *c);

/* As capture_general() for the call in @t->call, after enter_outermost(): that capture is left first. */
int capture_kept(struct thread *t);

#endif
