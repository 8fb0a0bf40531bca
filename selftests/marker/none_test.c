// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * none_test.c - a library that was built without markers: their functions are there and
 * say so, the stack stays as it is, and captures are by the other sources.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "shstk.h"

static int failed, points;

static void point(bool ok, const char *what)
{
	failed += !ok;
	printf("%sok %d %s\n", ok ? "" : "not ", ++points, what);
}

/* Three captures at one place: none is by a marker, and they are equal. */
static __attribute__((noinline)) bool captures_are_equal(unsigned int depth)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[256], before = 0, id = 0;
	volatile unsigned int i;
	bool ok = true;

	if (depth) {
		ok = captures_are_equal(depth - 1);
		__asm__ volatile("" : : : "memory");
		return ok;
	}
	for (i = 0; i < 3; i++) {
		int n = shstk_capture(pcs, 256, NULL, &info);

		if (n <= 0)
			return false;
		ok &= info.source != SHSTK_SOURCE_MARKER && info.end == SHSTK_END_COMPLETE;
		id = shstk_trace_id(pcs, (unsigned int)n);
		ok &= !i || id == before;
		before = id;
	}
	return ok && shstk_capture_id(pcs, 256, NULL, &id) > 0 && id != 0;
}

int main(void)
{
	uint64_t address = (uint64_t)(uintptr_t)main;

	printf("TAP version 13\n1..6\n");
	point(shstk_markers_set(SHSTK_MARKERS_THREAD, 1) == -EOPNOTSUPP, "not for a thread");
	point(shstk_markers_set(SHSTK_MARKERS_PROCESS, 1) == -EOPNOTSUPP, "not for the process");
	point(!shstk_markers_set(SHSTK_MARKERS_PROCESS, 0) && shstk_markers_set(5, 1) == -EINVAL &&
		      shstk_markers_set(0, 7) == -EINVAL,
	      "off is allowed, nonsense is not");
	point(shstk_markers_status() == SHSTK_MARKERS_MACHINE, "the status says why");
	point(captures_are_equal(60), "captures are by other sources");
	shstk_markers_withdraw();
	point(shstk_markers_resolve(address) == address, "no address is a marker");
	return failed != 0;
}
