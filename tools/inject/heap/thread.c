// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread.c - gives threads more stack, for what recording an allocation takes.
 */
#include <dlfcn.h>
#include <errno.h>

#include "../common/room.h"
#include "heap.h"

/* The bytes of two short stacks with their marks and stack pointers, a capture, and reading the maps. */
#define HEAP_NEED 10240

HOOK_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			    void *arg)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct room room;
	int ret;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	if (!is_on())
		return next(thread, attr, fn, arg);
	room_begin(&room, attr, HEAP_NEED);
	ret = next(thread, room.attr, fn, arg);
	/* There may be no memory for a larger stack than the program asked for. */
	if (ret == EAGAIN && room.attr != attr)
		ret = next(thread, attr, fn, arg);
	room_end(&room);
	return ret;
}
