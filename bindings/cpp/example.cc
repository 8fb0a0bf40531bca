// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints the functions of its own stack.
 *
 *   c++ -g -o example example.cc $(pkg-config --cflags --libs libshstk-symbolize libshstk)
 */
#include <shstk.hpp>

[[gnu::noinline]] static void inner()
{
	auto trace = shstk::trace<64>::capture();
	shstk::symbolizer names;

	for (const shstk::frame &frame : names.frames(trace))
		std::puts(to_string(frame).c_str());
}

int main()
{
	inner();
	return 0;
}
