// SPDX-License-Identifier: GPL-2.0-or-later
/* frame.c - what a frame of CPython is, and whether several frames fit together. */
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

#define CHUNK_HEAD 24 /* bytes at the beginning of a piece of the stack of frames */
#define PAGE 4096

static unsigned int owner_of(const struct python_version *v, const struct language_entry *e)
{
	return e->flags >> (v->owner & 3) * 8 & 255;
}

/*
 * A frame before its first instruction of the source is not shown, as sys._getframe() does not: it
 * is a part of making a call. For a generator these instructions have no other meaning.
 */
unsigned int python_kind(const void *version, const struct language_frame *frame)
{
	const struct python_version *v = version;
	const struct language_entry *e = frame->entry;
	unsigned int owner = owner_of(v, e), kind = 0;

	if (owner > PYTHON_OWNER_FRAME_OBJECT)
		return LANGUAGE_ENTRY;
	if (!frame->function || owner == PYTHON_OWNER_GENERATOR || e->at >= frame->function->first)
		kind |= LANGUAGE_SHOWN;
	if (v->entry && e->flags >> (v->entry & 3) * 8 & 255)
		kind |= LANGUAGE_LAST;
	return kind;
}

/*
 * A thread's frames follow each other on a stack of their own: each one begins where its caller's
 * ends, or in a new piece of this stack. Frames of generators lie elsewhere. Where those in the
 * middle of a deep stack lie is not known.
 */
static bool follow_each_other(const struct python_version *v, const struct language_frames *f)
{
	uint64_t begin = 0;

	for (unsigned int i = 0; i < f->nr; i++) {
		const struct language_frame *frame = &f->frames[i];

		if (!frame->entry->addr) {
			begin = 0;
			continue;
		}
		if (owner_of(v, frame->entry) != PYTHON_OWNER_THREAD || !frame->function)
			continue;
		if (begin && begin % PAGE != CHUNK_HEAD &&
		    frame->entry->addr + frame->function->frame_size != begin)
			return false;
		begin = frame->entry->addr;
	}
	return true;
}

/*
 * Returns whether the innermost frame is the last one on the thread's stack of frames. One that has
 * ended is not; one that takes its place is the same by then.
 */
static bool is_last(const struct python_version *v, const struct language_frames *f)
{
	const struct language_frame *first = f->frames;

	return f->nr && first->function && owner_of(v, first->entry) == PYTHON_OWNER_THREAD &&
	       first->entry->addr + first->function->frame_size == f->base_word;
}

bool python_sound(const void *version, const struct language_frames *frames)
{
	const struct python_version *v = version;

	/* Where there is no cframe, what leads to the callers may be left of another call. */
	return follow_each_other(v, frames) &&
	       (!frames->unsure || (v->cframes && is_last(v, frames)));
}
