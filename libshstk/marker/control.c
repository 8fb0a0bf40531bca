// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * control.c - tells why there are no markers, takes markers back, and uses markers again.
 */
#include <errno.h>

#include "marker.h"

SHSTK_API int shstk_marker_status(void)
{
	const struct markers *m = markers_of(thread_self);

	if (!HAVE_TRAMPOLINE)
		return SHSTK_MARKER_MACHINE;
	if (native_ssp())
		return SHSTK_MARKER_HARDWARE;
	return m ? m->status : SHSTK_MARKER_NOT_ASKED;
}

#if HAVE_TRAMPOLINE
SHSTK_API void shstk_marker_withdraw(void)
{
	uint64_t sp = (uintptr_t)__builtin_frame_address(0);
	struct thread *t = thread_self;
	struct markers *m = markers_of(t);
	bool outermost;

	if (!m || !m->n)
		return;
	outermost = enter(t, sp);
	if (outermost)
		markers_take_back(m, sp);
	else
		markers_give_back(m, sp); /* this call interrupts a capture */
	leave(t, outermost);
}

SHSTK_API int shstk_marker_restart(void)
{
	struct markers *m = markers_of(thread_self);
	int status;

	shstk_marker_withdraw();
	if (m && m->status == SHSTK_MARKER_LEFT) {
		m->chunk = 0; /* addresses of the old trampolines may still lie somewhere */
		m->used = 0;
		m->status = SHSTK_MARKER_ON;
	}
	status = shstk_marker_status();
	return status == SHSTK_MARKER_ON || status == SHSTK_MARKER_NOT_ASKED ? 0 : -EOPNOTSUPP;
}
#else
SHSTK_API void shstk_marker_withdraw(void)
{
}

SHSTK_API int shstk_marker_restart(void)
{
	return -EOPNOTSUPP;
}
#endif

SHSTK_API uint64_t shstk_marker_resolve(uint64_t address)
{
	uint64_t pc = native_strip(address), ra = trampoline_resolve(pc);

	return ra == pc ? address : ra;
}

SHSTK_API const char *shstk_marker_name(int status)
{
	static const char *const name[] = {
		[SHSTK_MARKER_ON] = "on",
		[SHSTK_MARKER_NOT_ASKED] = "not asked for",
		[SHSTK_MARKER_HARDWARE] = "a hardware shadow stack is active",
		[SHSTK_MARKER_MACHINE] = "not on this machine",
		[SHSTK_MARKER_NO_ROOM] = "no room for one more thread",
		[SHSTK_MARKER_LEFT] = "marked frames were left without a return",
	};

	return status >= 0 && status < (int)ARRAY_SIZE(name) ? name[status] : "unknown";
}
