// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * throw_test.cc - shadow stacks that are switched on in the middle of a C++
 * program: exceptions through frames that were active before, also through
 * those of the C library.
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "libshstk/shstk.h"
#include "tools/inject/preload/ssp.h"

static unsigned int count;
static int err = 1, destroyed;

static void ok(bool good, const char *what)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++count, what);
	fflush(stdout);
}

struct guard {
	~guard()
	{
		destroyed++;
	}
};

static __attribute__((noinline)) void dive(int depth)
{
	guard g;

	if (depth) {
		dive(depth - 1);
	} else {
		if (!read_ssp())
			err = shstk_enable_here(SHSTK_HERE_UNAWARE);
		throw std::runtime_error("deep");
	}
	__asm__ volatile("" : : : "memory");
}

static int compare(const void *a, const void *b)
{
	guard g;

	dive(10);
	return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) bool sorted()
{
	int v[] = { 3, 1, 2 };

	destroyed = 0;
	try {
		qsort(v, 3, sizeof(int), compare);
	} catch (const std::runtime_error &) {
		return destroyed == 12;
	}
	return false;
}

int main()
{
	bool good;

	printf("TAP version 13\n");
	good = sorted();
	if (err == -EOPNOTSUPP) {
		ok(good, "thrown out of qsort() without shadow stacks");
		printf("1..%u\n", count);
		return 0;
	}
	ok(!err && read_ssp(), "switched on below qsort()");
	ok(good, "thrown through frames that were active before");
	ok(sorted() && sorted(), "and again, with frames made since");
	printf("1..%u\n", count);
	return 0;
}
