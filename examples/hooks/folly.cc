// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * folly.cc - stacks for folly's getStackTrace(), by libshstk.
 *
 *   c++ -O2 -o PROGRAM PROGRAM.cc folly.cc $(pkg-config --cflags --libs libshstk)
 *   FOLLY_FB_UNWINDER_ENABLED=1 ./PROGRAM
 *
 * PROGRAM.cc is linked with folly of July 2026 or later, which looks for the two functions below
 * when the program starts. They serve getStackTrace(), getStackTraceSafe() and getStackTraceHeap().
 */
#include <shstk.h>

#include <algorithm>
#include <cstring>

/* Traces are cut after this many entries. folly's own callers want 100. */
static constexpr unsigned room = 256;

extern "C" {
bool folly_debugging_have_proc_map_query();
void folly_debugging_backtrace_raw(void **pcs, unsigned *n, unsigned max);
}

/* folly asks whether its hook can be used on this system. A capture needs nothing of the system. */
bool folly_debugging_have_proc_map_query()
{
	return true;
}

/*
 * Fills @pcs with at most @max return addresses, the first of which lies in the caller, and sets @n. A
 * stack that cannot be followed to its end gives none: folly then walks by libunwind.
 */
void folly_debugging_backtrace_raw(void **pcs, unsigned *n, unsigned max)
{
	struct shstk_info info = {};
	uint64_t all[room + 1];
	int got;

	info.size = sizeof(info);
	/* Entry 0 lies in this function, so it is left out. */
	got = shstk_capture(all, std::min(max, room) + 1, nullptr, &info) - 1;
	if (info.end != SHSTK_END_COMPLETE && info.end != SHSTK_END_CAPACITY)
		got = 0;
	*n = std::max(got, 0);
	memcpy(pcs, all + 1, *n * sizeof(*pcs));
}
