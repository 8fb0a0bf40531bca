// SPDX-License-Identifier: GPL-2.0-or-later
/* boost_traces.cc - stacks of Boost.Stacktrace, its own and those of examples/hooks/boost.hpp. */
#include "boost.hpp"
#include "traces.h"

static int entries_of(const boost::stacktrace::stacktrace &trace, void **pcs, int max)
{
	int n = 0;

	for (const boost::stacktrace::frame &frame : trace) {
		if (n < max)
			pcs[n++] = const_cast<void *>(frame.address());
	}
	return n;
}

__attribute__((noinline)) static int take_plain(void **pcs, int max)
{
	return entries_of(boost::stacktrace::stacktrace(1, max), pcs, max);
}

/* Leaves the first entry out, which lies here. */
__attribute__((noinline)) static int take_hook(void **pcs, int max)
{
	void *all[MAX + 1];
	int n = entries_of(shstk_stacktrace(), all, max + 1);

	n = n > 0 ? n - 1 : 0;
	memcpy(pcs, all + 1, n * sizeof(*pcs));
	return n;
}

static const struct way ways[] = {
	{ "libgcc", take_libgcc, nullptr, nullptr },
	{ "plain", take_plain, nullptr, nullptr },
	{ "hook", take_hook, nullptr, nullptr },
	{},
};

int main(int argc, char **argv)
{
	print_ways(argc, argv, ways);
	return 0;
}
