// SPDX-License-Identifier: GPL-2.0-or-later
/* frame.c - what a frame of Ruby is. */
#include "tools/language/ruby/ruby.h"

#define NEAR (64u << 20) /* bytes from where a native stack begins to the end of its row, at most */
#define FIBER_ROOM 4096 /* bytes between that and the outermost native frame of a fiber, at most */
#define MAIN_ROOM (8u << 20) /* the same of the main thread: arguments and environment lie there */

/* Returns whether a frame only stands behind all others. That of the main thread has a function. */
static bool is_outermost(const struct language_frame *frame)
{
	return (frame->entry->flags & RUBY_FRAME_KIND) == RUBY_FRAME_OUTERMOST;
}

/*
 * A function that is written in C runs in a native frame of its own. Nothing that Ruby has says which one that
 * is; place.c finds it by the address of the function's machine code.
 */
unsigned int ruby_kind(const void *version, const struct language_frame *frame)
{
	const uint32_t flags = frame->entry->flags;

	(void)version;
	if (is_outermost(frame))
		return 0;
	if (flags & RUBY_FRAME_C)
		return frame->function && frame->function->address ? LANGUAGE_NATIVE : 0;
	return LANGUAGE_SHOWN | (flags & RUBY_FRAME_FINISH ? LANGUAGE_LAST : 0);
}

/*
 * Each call from C code enters the interpreter. Until a frame is marked that way, it is not known
 * whether it runs.
 */
static bool is_called(const struct language_frame *frame, const struct language_frame *caller)
{
	return frame->entry->flags & (RUBY_FRAME_C | RUBY_FRAME_FINISH) ||
	       !(caller->entry->flags & RUBY_FRAME_C);
}

/*
 * Returns whether the frames are of the native stack on which the thread is: where fibers are switched, it is
 * on the next one's stack already, and still has the context of the one before. Behind where the stack of a
 * thread or fiber begins, its row of frames lies; that of the main thread lies elsewhere. The outermost native
 * frames of a thread lie behind the row. From 3.3 on rows of threads lie elsewhere, too, and some native frames
 * of a thread lie behind where its stack is said to begin.
 */
static bool is_of_stack(const struct ruby_version *v, const struct language_frames *f)
{
	const uint64_t last = f->frames[f->nr - 1].entry->addr, begin = f->base_word;

	if (v->rows_elsewhere && f->outer_sp > begin)
		return f->inner_sp < begin;
	if (last - begin < NEAR && f->outer_sp > last)
		return f->inner_sp < begin;
	return f->outer_sp <= begin &&
	       begin - f->outer_sp < (last - begin < NEAR ? FIBER_ROOM : MAIN_ROOM);
}

/* The row of frames ends with one that is none of a function. */
bool ruby_sound(const void *version, const struct language_frames *frames)
{
	const struct language_frame *f = frames->frames;

	for (unsigned int i = 0; i + 1 < frames->nr; i++)
		if (!is_called(&f[i], &f[i + 1]))
			return false;
	return frames->nr && is_outermost(&f[frames->nr - 1]) && is_of_stack(version, frames);
}
