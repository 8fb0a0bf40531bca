/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_near.h - captures that meet the thread's last trace after a few new frames.
 */
#ifndef SHSTK_SOURCE_NEAR_H
#define SHSTK_SOURCE_NEAR_H

#include "enter.h"

/*
 * Makes the capture in @t->call, after enter_outermost(), if the call asks for nothing special:
 * steps out of up to MEMO_NEAR ordinary frames, then takes the rest from the memo. In any other
 * case it lets capture_kept() make the capture. Returns the number of entries.
 */
int near_capture(struct thread *t);

/*
 * Does the same for captures that may fill their arrays, before the memo's last trace ends. After one that
 * did, near_capture() leaves the next one to memo_repeat_cut(), and that to this function.
 */
int near_full(struct thread *t);

#endif
