// SPDX-License-Identifier: GPL-2.0-or-later
/* frame.c - what a frame of Ruby is. */
#include "tools/language/ruby/ruby.h"

/* Returns whether a frame only stands behind all others. That of the main thread has a function. */
static bool is_outermost(const struct language_frame *frame)
{
	return (frame->entry->flags & RUBY_FRAME_KIND) == RUBY_FRAME_OUTERMOST;
}

/*
 * A function that is written in C runs in its own native frame. The place of that among the frames of
 * the interpreter is not known if C code called it, so its frame is not shown.
 */
unsigned int ruby_kind(const void *version, const struct language_frame *frame)
{
	const uint32_t flags = frame->entry->flags;

	(void)version;
	if (flags & RUBY_FRAME_C || is_outermost(frame))
		return 0;
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

/* The row of frames ends with one that is none of a function. */
bool ruby_sound(const void *version, const struct language_frames *frames)
{
	const struct language_frame *f = frames->frames;

	(void)version;
	for (unsigned int i = 0; i + 1 < frames->nr; i++)
		if (!is_called(&f[i], &f[i + 1]))
			return false;
	return frames->nr && is_outermost(&f[frames->nr - 1]);
}
