// SPDX-License-Identifier: GPL-2.0-or-later
extern "C" {
#include "work.h"
}

static volatile int caught;

__attribute__((noinline)) static void dive(int depth)
{
	if (!depth)
		throw depth;
	dive(depth - 1);
	caught = caught + 1;
}

extern "C" int cc_throw(int times)
{
	for (int i = 0; i < times; i++) {
		try {
			dive(10);
		} catch (int) {
			caught = caught + 1;
		}
	}
	return caught;
}
