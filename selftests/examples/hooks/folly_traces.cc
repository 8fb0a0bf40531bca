// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * folly_traces.cc - stacks as folly takes them with examples/hooks/folly.cc. No folly is needed: this
 * program calls the functions that folly looks for, as folly does.
 */
#include "traces.h"

extern "C" {
__attribute__((weak)) bool folly_debugging_have_proc_map_query();
__attribute__((weak)) void folly_debugging_backtrace_raw(void **pcs, unsigned *n, unsigned max);
}

/* Leaves the first entry out, which lies in the function that this is a part of. */
__attribute__((always_inline)) static inline int take(void **pcs, int max)
{
	void *all[MAX + 1];
	unsigned n = 0;

	if (!folly_debugging_backtrace_raw || !folly_debugging_have_proc_map_query())
		return 0;
	folly_debugging_backtrace_raw(all, &n, max + 1);
	n = n ? n - 1 : 0;
	memcpy(pcs, all + 1, n * sizeof(*pcs));
	return n;
}

__attribute__((noinline)) static int take_hook(void **pcs, int max)
{
	return take(pcs, max);
}

__attribute__((noinline)) static int take_five(void **pcs, int)
{
	return take(pcs, 5);
}

/* folly asks for none when it starts. */
static int take_none(void **pcs, int)
{
	unsigned n = 1;

	folly_debugging_backtrace_raw(pcs, &n, 0);
	return n;
}

static const struct way ways[] = {
	{ "libgcc", take_libgcc, nullptr, nullptr },
	{ "hook", take_hook, nullptr, nullptr },
	{ "five", take_five, nullptr, nullptr },
	{ "none", take_none, nullptr, nullptr },
	{},
};

int main(int argc, char **argv)
{
	print_ways(argc, argv, ways);
	return 0;
}
