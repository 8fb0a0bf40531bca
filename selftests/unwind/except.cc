// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * except.cc - C++ exceptions: thrown over several frames with destructors, rethrown, caught by
 * value and by reference, thrown through a C callback, from a constructor, inside a handler, and in
 * a destructor that catches its own.
 */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

static volatile int alive, total;

struct counted {
	counted()
	{
		alive = alive + 1;
	}
	~counted()
	{
		alive = alive - 1;
	}
};

struct careful {
	~careful()
	{
		try {
			throw 3;
		} catch (int x) {
			total = total + x;
		}
	}
};

struct unborn {
	counted a;
	unborn()
	{
		throw std::runtime_error("unborn");
	}
};

__attribute__((noinline)) static int deep(int n)
{
	counted c;
	std::string s(n + 20, 'x');

	if (n == 0)
		throw std::out_of_range(s);
	return deep(n - 1) + s.size();
}

static int thrower(const void *, const void *)
{
	counted c;

	throw 5L;
}

__attribute__((noinline)) static void again()
{
	try {
		careful k;
		deep(2);
	} catch (const std::logic_error &) {
		counted c;
		throw;
	}
}

static void throw_and_catch(const std::runtime_error &e)
{
	try {
		throw e.what();
	} catch (const char *what) {
		total = total + what[1];
	}
}

int main()
{
	int v[3] = { 3, 2, 1 };

	try {
		deep(3);
	} catch (const std::exception &e) {
		total = total + e.what()[0];
	}
	try {
		again();
	} catch (std::out_of_range &e) {
		total = total + 1;
	}
	try {
		qsort(v, 3, sizeof(v[0]), thrower);
	} catch (long x) {
		total = total + x;
	}
	try {
		unborn u;
	} catch (const std::runtime_error &e) {
		throw_and_catch(e);
	}
	try {
		std::vector<int> w(2);
		total = total + w.at(9);
	} catch (...) {
		total = total + 1;
	}
	std::printf("%d %d\n", total, alive);
	return alive;
}
