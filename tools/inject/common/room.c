// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * room.c - more stack for threads (room.h). Part of both agents, that of time and that of
 * allocations.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "room.h"

/*
 * Reads the attributes of a thread that is created without any. Returns false in C libraries that
 * do not tell.
 */
static bool take_default(pthread_attr_t *attr)
{
	static int (*get_default)(pthread_attr_t *);

	if (!get_default)
		*(void **)&get_default = dlsym(RTLD_DEFAULT, "pthread_getattr_default_np");
	return get_default && !get_default(attr);
}

/*
 * Returns whether the program provides the stack. The stack of another thread is never at the end
 * of the address space: if there is none, libc returns address and size whose sum is 0.
 */
static bool is_provided(const pthread_attr_t *attr)
{
	void *start = NULL;
	size_t size = 0;

	return !pthread_attr_getstack(attr, &start, &size) && (uintptr_t)start + size;
}

void room_begin(struct room *room, const pthread_attr_t *attr, size_t more)
{
	size_t size = 0;

	room->attr = attr;
	room->made = !attr && take_default(&room->copy);
	room->small = false;
	if (!attr && !room->made)
		return;
	/* The lists in the copy belong to @attr: they are only read. */
	if (attr)
		room->copy = *attr;
	if (pthread_attr_getstacksize(&room->copy, &size))
		return;
	room->small = size < ROOM_PLENTY;
	if (!is_provided(&room->copy) && size + more > size &&
	    !pthread_attr_setstacksize(&room->copy, size + more))
		room->attr = &room->copy;
}

void room_end(struct room *room)
{
	if (room->made)
		pthread_attr_destroy(&room->copy);
}
