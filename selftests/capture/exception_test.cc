// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * exception_test.cc - C++ exceptions leave captured frames: captures in
 * destructors, handlers and afterwards see the true stack. Prints KTAP.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

extern "C" {
#include "truth.h"
}

__thread struct truth *truth;

static uint64_t pcs[4096];
static long captures, wrong, caught, destroyed, reused;
static unsigned int seed = 1;

static unsigned int rnd()
{
	return (seed = seed * 1103515245 + 12345) >> 16 & 0x7fff;
}

/*
 * Captures and compares with the truth. Its caller must be the function that noted the newest
 * return address.
 */
static noinline void check()
{
	struct shstk_info info = {};
	int n;

	info.size = sizeof(info);
	n = shstk_capture(pcs, 4096, nullptr, &info);
	captures++;
	reused += info.reused > 0;
	if (!truth_equal(pcs, n, 2) || info.end != SHSTK_END_COMPLETE)
		wrong++;
}

struct level {
	int at;

	explicit level(void *ra)
		: at(truth->n)
	{
		truth->ra[truth->n++] = truth_strip(ra);
	}
	/*
	 * Runs while the exception passes through the frame, and is inlined, so that it runs as the
	 * frame's own code.
	 */
	__attribute__((always_inline)) ~level()
	{
		destroyed++;
		truth->n = at;
	}
};

static noinline int throwing(int depth)
{
	level l(__builtin_return_address(0));
	int ret = 0;

	check();
	if (!depth)
		throw std::runtime_error("leaf");
	if (rnd() % 3 == 0) {
		try {
			ret = throwing(depth - 1);
			NO_TAIL_CALL();
		} catch (const std::exception &) {
			caught++;
			check();
			if (rnd() % 2)
				throw;
		}
	} else {
		ret = throwing(depth - 1);
		NO_TAIL_CALL();
	}
	check();
	return ret + 1;
}

static jmp_buf back;
static void (*volatile jump_deeper)(int);

static noinline void jumping(int depth)
{
	truth->ra[truth->n++] = truth_strip(__builtin_return_address(0));
	check();
	if (!depth)
		longjmp(back, 1);
	jump_deeper(depth - 1);
	NO_TAIL_CALL();
}

static void point(int n, bool ok, const char *name)
{
	std::printf("%sok %d %s\n", ok ? "" : "not ", n, name);
	if (!ok)
		std::exit(1);
}

int main()
{
	static struct truth t;
	/* longjmp() may change automatic variables. */
	static int i;

	truth = &t;
	std::printf("TAP version 13\n1..2\n");
	for (i = 0; i < 3000; i++) {
		truth->n = 0;
		try {
			throwing(i % 20);
		} catch (const std::exception &) {
			caught++;
		}
	}
	std::printf("# %ld captures, %ld caught, %ld destroyed, %ld reused\n", captures, caught,
		    destroyed, reused);
	point(1,
	      captures > 10000 && caught > 3000 && destroyed > 10000 && reused > captures / 2 &&
		      !wrong,
	      "captures before, in and after exceptions are right");
	captures = 0;
	jump_deeper = jumping;
	for (i = 0; i < 3000; i++) {
		truth->n = 0;
		if (!setjmp(back))
			jumping(i % 20);
	}
	point(2, captures > 10000 && !wrong, "captures around longjmp are right");
	return 0;
}
