/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * room.h - gives a thread more stack than the program asked for, for the agent's code.
 */
#ifndef INJECT_ROOM_H
#define INJECT_ROOM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define ROOM_PLENTY 65536 /* bytes; a smaller stack that the program chose is small */

/**
 * struct room - the attributes of a thread that is about to be created
 * @attr: attributes to use: @copy, or the program's own.
 * @copy: the program's attributes with more stack.
 * @small: with the program's own attributes the stack would be small.
 * @made: @copy has to be destroyed.
 */
struct room {
	const pthread_attr_t *attr;
	pthread_attr_t copy;
	bool small;
	bool made;
};

/*
 * Computes attributes with @more bytes of stack than @attr has, unless the program provides the
 * stack itself. The guard and everything else stay as they are.
 */
void room_begin(struct room *room, const pthread_attr_t *attr, size_t more);
void room_end(struct room *room);

#endif
