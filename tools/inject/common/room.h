/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * room.h - more stack for a thread than the program asked for: what the agent's code takes of it.
 */
#ifndef INJECT_ROOM_H
#define INJECT_ROOM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define ROOM_PLENTY 65536 /* bytes; a smaller stack of the program's own is small */

/**
 * struct room - the attributes of a thread that is about to be made
 * @attr: what it is to be made with: @copy, or the program's own.
 * @copy: the program's, with more stack.
 * @small: it would be a small stack with the program's own.
 * @made: @copy is to be destroyed.
 */
struct room {
	const pthread_attr_t *attr;
	pthread_attr_t copy;
	bool small;
	bool made;
};

/*
 * With @more bytes of stack than @attr says, if the program does not provide the stack itself. Its
 * guard and all else stay.
 */
void room_begin(struct room *room, const pthread_attr_t *attr, size_t more);
void room_end(struct room *room);

#endif
