// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * plugin.cc - a library with a C++ library linked into it, for a program that has none. Then no
 * other object has the operators new and delete.
 */
#include <cstddef>
#include <new>

#define FN extern "C" __attribute__((noinline))

static void *volatile sink;

struct alignas(128) wide
{
	char bytes[256];
};

FN void plugin_new(void)
{
	sink = new char[1000];
}
FN void plugin_new_nothrow(void)
{
	sink = new (std::nothrow) char[500];
}
FN void plugin_new_aligned(void)
{
	sink = new wide;
}
FN void plugin_deletes(void)
{
	char *p = new char[77];
	wide *w = new wide[3];

	sink = p;
	sink = w;
	delete[] p;
	delete[] w;
}

static volatile size_t too_much = (size_t)1 << 60;

/* Returns how often there was no memory. */
FN int plugin_fails(void)
{
	int failed = 0;

	try {
		sink = new char[too_much];
	} catch (const std::bad_alloc &) {
		failed++;
	}
	try {
		sink = new wide[too_much / 256];
	} catch (const std::bad_alloc &) {
		failed++;
	}
	sink = new (std::nothrow) char[too_much];
	return failed + !sink;
}

/* Returns 0 if everything is right. */
extern "C" int plugin(void)
{
	plugin_new();
	plugin_new_nothrow();
	plugin_new_aligned();
	plugin_deletes();
	return plugin_fails() != 3;
}
