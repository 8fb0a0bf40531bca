/* SPDX-License-Identifier: GPL-2.0-or-later */
/* awake.c - for random_test: markers are placed as if they were paid for. */
#include "awake.h"
#include "thread.h"

void stay_awake(void)
{
	if (thread_self)
		thread_self->marker.frames_to_pay = 0;
}
