/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_near.h - captures that meet the thread's last trace after a few new frames.
 */
#ifndef SHSTK_SOURCE_NEAR_H
#define SHSTK_SOURCE_NEAR_H

#include "enter.h"

/*
 * The call in @t->call, after enter_outermost(), which asks for nothing special: leave up to
 * MEMO_NEAR ordinary frames, then take the rest from the memo. If it is another case,
 * capture_kept() makes the capture. Returns the number of entries.
 */
int near_capture(struct thread *t);

#endif
