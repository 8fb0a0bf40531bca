// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * stats.c - reports the counters of this process: captures, modules, the rule cache.
 */
#include <errno.h>

#include "enter.h"
#include "modmap.h"
#include "modmap_jit.h"

SHSTK_API int shstk_get_stats(struct shstk_stats *stats)
{
	struct shstk_stats s = { .size = 0 };
	struct thread *t = thread_get();
	bool outermost = false;

	if (!stats || stats->size < 8)
		return -EINVAL;
	/* Enter as a capture does, so that no module is freed while it is read. */
	if (t)
		outermost = enter(t, (uintptr_t)__builtin_frame_address(0));
	s.size = stats->size;
	modmap_stats(&s);
	modmap_jit_stats(&s);
	thread_stats(&s);
	if (t)
		leave(t, outermost);
	memcpy(stats, &s, min(sizeof(s), (size_t)stats->size));
	return 0;
}
