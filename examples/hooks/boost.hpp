/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * boost.hpp - a boost::stacktrace::stacktrace that libshstk took.
 *
 *   c++ -O2 -o PROGRAM PROGRAM.cc $(pkg-config --cflags --libs libshstk) -ldl
 *
 * PROGRAM.cc includes this file, and says shstk_stacktrace() instead of
 * boost::stacktrace::stacktrace(): all that Boost.Stacktrace does with such an object, its names
 * among it, it does with this one.
 */
#ifndef SHSTK_BOOST_HPP
#define SHSTK_BOOST_HPP

#include <boost/stacktrace.hpp>
#include <shstk.h>

/* Returns the stack of the caller: entry 0 is the return address into it. */
__attribute__((noinline)) inline boost::stacktrace::stacktrace shstk_stacktrace()
{
	uint64_t pcs[1024]; /* Boost takes no more of a dump. */
	int n = shstk_capture(pcs, 1024, nullptr, nullptr);

	/* Entry 0 of the capture lies in this function. */
	return boost::stacktrace::stacktrace::from_dump(pcs + 1,
							n < 1 ? 0 : (n - 1) * sizeof(*pcs));
}

#endif
