// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * names.cc - works in a function whose name has default arguments of templates.
 *
 *  names SECONDS
 */
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

static volatile unsigned int sink;

__attribute__((noinline)) static void count_words(const std::map<std::string, std::vector<int> > &,
						  double seconds)
{
	clock_t end = clock() + seconds * CLOCKS_PER_SEC;

	while (clock() < end)
		for (int i = 0; i < 10000; i++)
			sink = sink + i;
}

int main(int argc, char **argv)
{
	count_words({}, argc > 1 ? atof(argv[1]) : 0);
	return 0;
}
