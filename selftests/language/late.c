// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * late.c - a library that a program loads while its allocations are recorded. Only its unwind information
 * tells who has called its functions.
 */
#include <stdlib.h>
#include <string.h>

void *late_outer(size_t size);

static __attribute__((noinline)) void *late_inner(size_t size)
{
	char room[256];
	void *ret = malloc(size);

	memset(room, (int)size, sizeof(room));
	if (ret)
		memcpy(ret, room, size < sizeof(room) ? size : sizeof(room));
	return ret;
}

void *late_outer(size_t size)
{
	char *ret = late_inner(size);

	return ret ? ret + 1 : NULL;
}
