// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * marker_control.c - switch markers on and off, say why they are not on, take them back.
 */
#include <errno.h>

#include "source_marker.h"

#if HAVE_TRAMPOLINE
struct marker_switch marker_switch;

SHSTK_API int shstk_markers_set(unsigned int scope, unsigned int on)
{
	struct thread *t = thread_get();
	struct markers *m;

	if (scope > SHSTK_MARKERS_PROCESS || on > 1)
		return -EINVAL;
	if (native_ssp())
		return on ? -EOPNOTSUPP : 0;
	if (!t)
		return -ENOMEM;
	m = &t->marker;
	if (scope == SHSTK_MARKERS_PROCESS)
		store_relaxed(&marker_switch.on, on);
	else
		m->asked = on ? 1 : 2;
	/* Threads look at their own switch again. */
	__atomic_add_fetch(&marker_switch.epoch, 1, __ATOMIC_RELAXED);
	shstk_markers_withdraw();
	if (on && m->status == SHSTK_MARKERS_LEFT) {
		m->chunk = 0; /* the old ones may still be somewhere */
		m->used = 0;
		m->status = SHSTK_MARKERS_NOT_ASKED;
	}
	return marker_status(m) == SHSTK_MARKERS_NO_ROOM && on ? -EOPNOTSUPP : 0;
}

SHSTK_API int shstk_markers_status(void)
{
	struct thread *t = thread_self;

	if (native_ssp())
		return SHSTK_MARKERS_HARDWARE;
	if (!t)
		return load_relaxed(&marker_switch.on) ? SHSTK_MARKERS_ON : SHSTK_MARKERS_NOT_ASKED;
	return marker_status(&t->marker);
}

SHSTK_API void shstk_markers_withdraw(void)
{
	struct thread *t = thread_self;
	uint64_t sp = (uintptr_t)__builtin_frame_address(0);
	bool outermost;

	if (!t || !t->marker.n)
		return;
	outermost = enter(t, sp);
	if (outermost)
		marker_take_back(t, sp);
	else
		marker_give_back(t, sp); /* a capture is interrupted */
	leave(t, outermost);
}
#else
SHSTK_API int shstk_markers_set(unsigned int scope, unsigned int on)
{
	if (scope > SHSTK_MARKERS_PROCESS || on > 1)
		return -EINVAL;
	return on ? -EOPNOTSUPP : 0;
}

SHSTK_API int shstk_markers_status(void)
{
	return SHSTK_MARKERS_MACHINE;
}

SHSTK_API void shstk_markers_withdraw(void)
{
}
#endif

SHSTK_API uint64_t shstk_markers_resolve(uint64_t address)
{
	uint64_t pc = native_strip(address), ra = trampoline_resolve(pc);

	return ra == pc ? address : ra;
}

SHSTK_API const char *shstk_markers_name(int status)
{
	static const char *const name[] = {
		[SHSTK_MARKERS_ON] = "on",
		[SHSTK_MARKERS_NOT_ASKED] = "not asked for",
		[SHSTK_MARKERS_HARDWARE] = "a hardware shadow stack is active",
		[SHSTK_MARKERS_MACHINE] = "not on this machine",
		[SHSTK_MARKERS_NO_ROOM] = "no room for one more thread",
		[SHSTK_MARKERS_LEFT] = "marked frames were left without a return",
	};

	return status >= 0 && status < (int)ARRAY_SIZE(name) ? name[status] : "unknown";
}
