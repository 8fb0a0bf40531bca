// SPDX-License-Identifier: GPL-2.0-or-later
/* frame.c - what a frame of V8 is, and which functions it runs. */
#include "bpf/native.h"
#include "tools/language/v8/v8.h"

/* Each frame that was read is one of JavaScript, and has a native frame of its own. */
unsigned int v8_kind(const void *version, const struct language_frame *frame)
{
	(void)version;
	(void)frame;
	return LANGUAGE_SHOWN | LANGUAGE_ENTRY;
}

/* What is checked is that each frame lies in a native one, in the same order (place.c). */
bool v8_sound(const void *version, const struct language_frames *frames)
{
	(void)version;
	(void)frames;
	return true;
}

/* Returns the position of code at an offset, or NULL. */
static const struct v8_position *find_position(const struct v8_code *c, int64_t at)
{
	size_t lo = 0, hi = c->nr_positions;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->positions[mid].offset <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &c->positions[lo - 1] : NULL;
}

int32_t v8_character(const struct v8_code *c, int64_t at)
{
	const struct v8_position *p = find_position(c, at);

	return p ? p->at : -1;
}

/* Returns the position of the call that returns to an offset, or NULL. */
static const struct v8_position *find_call(const struct v8_code *c, int64_t at)
{
	const struct v8_position *p = find_position(c, at - 1);

	return p && p->returns == at ? p : NULL;
}

/*
 * Returns the position in front of an instruction that is surely of the same inlined call, or NULL. Behind the last
 * one of the table, nothing is sure. The compiler may have moved an instruction of another line there.
 */
static const struct v8_position *find_between(const struct v8_code *c, int64_t at)
{
	const struct v8_position *p = c->detailed ? find_position(c, at) : NULL;

	return p && p + 1 < c->positions + c->nr_positions && p[1].call == p->call ? p : NULL;
}

/*
 * Finds the functions of machine code whose call has position @p, the innermost first. Returns their
 * number; 0: it is not known. A call that is inlined is in one that comes before it in the table, or
 * else there may be a circle.
 */
static unsigned int expand_call(const struct v8_code *c, const struct v8_position *p,
				struct language_part *parts, unsigned int max)
{
	int32_t position = p->at, call = p->call;
	unsigned int nr = 0;

	while (call >= 0 && nr + 1 < max) {
		if ((size_t)call >= c->nr_calls || c->calls[call].call >= call)
			return 0;
		parts[nr++] = (struct language_part){ c->calls[call].function, position };
		position = c->calls[call].at;
		call = c->calls[call].call;
	}
	if (call >= 0)
		return 0;
	parts[nr++] = (struct language_part){ c->function, position };
	return nr;
}

/* Finds the functions of machine code where a call returns, the innermost first. Returns their number. */
static unsigned int expand_return(const struct v8_code *c, const struct v8_return *r,
				  struct language_part *parts)
{
	for (unsigned int i = 0; i < r->nr; i++) {
		const struct v8_frame *f = &c->frames[r->first + r->nr - 1 - i];

		parts[i] = (struct language_part){ f->function, -1 };
		/* The largest number has no place. */
		if (f->bytecode >= 0 && f->bytecode < INT32_MAX)
			parts[i].at = V8_BYTECODE - f->bytecode;
	}
	return r->nr;
}

/*
 * Finds the functions of machine code. Where it is not known which of the inlined ones runs, the code
 * itself stands for it, and its own function is the caller.
 */
static unsigned int expand_machine(const struct v8_code *c, const struct language_entry *e,
				   struct language_part *parts, unsigned int max)
{
	const bool called = e->flags & NATIVE_RETURN;
	const struct v8_return *r = called ? v8_find_return(c, e->at, e->flags & NATIVE_BEHIND) :
					     NULL;
	const struct v8_position *p = called ? find_call(c, e->at) : NULL;
	unsigned int nr = 0;

	if (!p)
		p = find_between(c, (int64_t)e->at - called);
	if (r && r->nr && r->nr <= max)
		return expand_return(c, r, parts);
	if (p)
		return expand_call(c, p, parts, max);
	if (max < 2)
		return 0;
	if (c->nr_calls)
		parts[nr++] = (struct language_part){ e->id, -1 };
	parts[nr++] = (struct language_part){ c->function, -1 };
	return nr;
}

/*
 * Finds the function of code of the first compiler. A call may return to the first instruction of the next
 * bytecode.
 */
static unsigned int expand_baseline(const struct v8_code *c, const struct language_entry *e,
				    struct language_part *part)
{
	const int32_t bytecode = v8_character(c, (int64_t)e->at - !!(e->flags & NATIVE_RETURN));

	*part = (struct language_part){ c->function, bytecode < 0 ? -1 : V8_BYTECODE - bytecode };
	return 1;
}

unsigned int v8_expand(const struct language_frame *frame, struct language_part *parts,
		       unsigned int max)
{
	const struct language_entry *e = frame->entry;
	const struct v8_code *c = frame->function->own;

	if (!max || c->machine != ((e->flags & 15) == NATIVE_MACHINE) ||
	    (c->baseline && (e->flags & 15) != NATIVE_BASELINE))
		return 0;
	if (c->baseline)
		return expand_baseline(c, e, parts);
	if (c->machine)
		return expand_machine(c, e, parts, max);
	parts[0] = (struct language_part){ e->id, e->flags == NATIVE_INTERPRETED ?
							  v8_character(c, e->at) :
							  -1 };
	return 1;
}
