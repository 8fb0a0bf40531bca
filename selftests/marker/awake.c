/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * awake.c - for random_test: markers stay in use where the library would find out that
 * the memo is faster.
 */
#include "awake.h"
#include "thread.h"

void stay_awake(void)
{
	if (thread_self)
		thread_self->marker.dear = 0;
}
