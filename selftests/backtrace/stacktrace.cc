// SPDX-License-Identifier: GPL-2.0-or-later
/* stacktrace.cc - prints C++23's std::stacktrace at several depths, twice each. */
#include <cstdint>
#include <iostream>
#include <stacktrace>

#include <dlfcn.h>

static void print(const std::stacktrace &trace)
{
	for (const auto &entry : trace) {
		std::uintptr_t pc = entry.native_handle();
		Dl_info info;

		if (dladdr((void *)pc, &info) && info.dli_fname)
			std::cout << ' ' << info.dli_fname << '+'
				  << pc - (std::uintptr_t)info.dli_fbase;
		else
			std::cout << " ?";
	}
	std::cout << '\n';
}

__attribute__((noinline)) static int deep(int n)
{
	if (n)
		return deep(n - 1) + 1;
	for (int i = 0; i < 2; i++)
		print(std::stacktrace::current());
	return 0;
}

int main()
{
	for (int n = 0; n < 200; n += 20)
		deep(n);
}
