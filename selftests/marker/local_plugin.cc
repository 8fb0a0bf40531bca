// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * local_plugin.cc - a library that throws exceptions through frames that were marked.
 */

static int destroyed;

struct counted {
	~counted()
	{
		destroyed++;
	}
};

static __attribute__((noinline)) int down(void (*fn)(), int depth)
{
	counted c;

	fn();
	if (!depth)
		throw 1;
	return down(fn, depth - 1) + 1;
}

static __attribute__((noinline)) int between(void (*fn)(), int depth)
{
	return down(fn, depth) + 1;
}

/* Returns the number of frames that the exception left, less one. */
extern "C" int throwing(void (*fn)(), int depth)
{
	destroyed = 0;
	try {
		between(fn, depth);
	} catch (int) {
		fn();
		return destroyed - 1;
	}
	return -1;
}
