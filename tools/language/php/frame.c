// SPDX-License-Identifier: GPL-2.0-or-later
/* frame.c - what a frame of PHP is. */
#include "tools/language/php/php.h"

/*
 * A function that is written in C runs in its own native frame, whether the interpreter's function
 * or other native code called it. In the second case it is not shown: it belongs inside the frames
 * of that code, of which nothing tells the place.
 */
unsigned int php_kind(const void *version, const struct language_frame *frame)
{
	const struct language_function *f = frame->function;
	const bool top = frame->entry->flags & PHP_CALL_TOP;

	(void)version;
	/* Generators and calls from native code have such frames, which are no calls. */
	if (frame->entry->id == LANGUAGE_NO_FUNCTION)
		return 0;
	if (f && f->begins_stack)
		return LANGUAGE_BEGIN;
	if (f && f->native)
		return top ? 0 : LANGUAGE_SHOWN;
	return LANGUAGE_SHOWN | (top ? LANGUAGE_LAST : 0);
}

static bool is_generator(const struct language_frames *frames, unsigned int i)
{
	return i < frames->nr && frames->frames[i].entry->flags & PHP_CALL_GENERATOR;
}

/*
 * A frame is complete before it becomes the innermost one, and is no more part of the list before
 * anything of it changes. That of a generator is not: it becomes the innermost one and gets its caller then,
 * so that it may have none, or the one that it had before. Who goes on with a generator does that where
 * lists are unsure; an exception is thrown into it where it may just have become the innermost one. What is checked
 * besides is that frames and native stack have the same calls of the interpreter (place.c).
 *
 * A fiber has a native stack of its own. Its frames end with one at which it begins, and those behind that are of who
 * goes on with it. So where PHP says that a fiber runs, there is such a frame among those that are known, and elsewhere
 * there is none.
 */
bool php_sound(const void *version, const struct language_frames *frames)
{
	(void)version;
	return !frames->unsure && !frames->base_word == !frames->begun &&
	       !(frames->published && is_generator(frames, 0)) &&
	       !is_generator(frames, frames->nr - 1);
}
