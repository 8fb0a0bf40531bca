// SPDX-License-Identifier: GPL-2.0-or-later
/* place.c - puts an interpreter's frames among those of its native stack. See place.h. */
#include "libshstk/shstk.h"
#include "tools/language/place.h"

/**
 * struct placing - the state of placing
 * @native: the native stack.
 * @language: the language.
 * @found: the interpreter.
 * @frames: what was read of it.
 * @order: the entries so far.
 * @nr: number of @order.
 * @next: index of the first frame that has no place yet.
 * @mark: index of the first mark that has no place yet.
 */
struct placing {
	const struct native_stack *native;
	const struct language *language;
	const struct language_found *found;
	const struct language_frames *frames;
	int *order;
	unsigned int nr;
	unsigned int next;
	unsigned int mark;
};

/* Returns whether an address lies between the innermost and the outermost known native frame. */
static bool on_native_stack(const struct native_stack *native, uint64_t addr)
{
	return addr >= native->sps[0] && addr < native->sps[native->nr - 1];
}

/* Returns what a frame is. One on the native stack is an entry, even if it is not made whole yet. */
static unsigned int kind_of(const struct placing *p, unsigned int i)
{
	const struct language_frames *f = p->frames;

	if (i && i == f->left_out)
		return 0;
	if (!p->found->counted && !p->found->target.native &&
	    on_native_stack(p->native, f->frames[i].entry->addr))
		return LANGUAGE_ENTRY;
	return p->language->kind(p->found->version, &f->frames[i]);
}

/*
 * Finds the next row of frames, which end at index *@end. Returns the address of what was put on the
 * native stack for it, or that of its last frame if rows are counted; 0: there is no such row.
 */
static uint64_t next_row(const struct placing *p, unsigned int *end)
{
	const struct language_frames *f = p->frames;

	for (unsigned int i = p->next; i < f->nr; i++) {
		unsigned int kind = kind_of(p, i);

		*end = i + 1;
		if (kind & LANGUAGE_ENTRY || (kind & LANGUAGE_LAST && p->found->counted))
			return f->frames[i].entry->addr;
		if (kind & LANGUAGE_LAST)
			return p->mark < f->nr_marks ? f->marks[p->mark].addr : 0;
	}
	return 0;
}

/* Adds the frames up to index @end. Returns false if one has no known function. */
static bool add_row(struct placing *p, unsigned int end)
{
	for (; p->next < end; p->next++) {
		if (p->next && p->next == p->frames->left_out)
			p->order[p->nr++] = PLACE_LEFT_OUT;
		if (!(kind_of(p, p->next) & LANGUAGE_SHOWN))
			continue;
		if (!p->frames->frames[p->next].function)
			return false;
		p->order[p->nr++] = ~(int)p->next;
	}
	return true;
}

/*
 * Returns whether the mark for the next row tells the frame at which that row begins. It is the one
 * from which the row inside it was called, too.
 */
static bool mark_fits(const struct placing *p)
{
	const struct language_frames *f = p->frames;

	return !f->nr_marks || (p->mark < f->nr_marks && p->next < f->nr &&
				f->marks[p->mark].id == f->frames[p->next].entry->addr);
}

static bool in_run(const struct placing *p, unsigned int i)
{
	const struct language_found *found = p->found;
	uint64_t pc = p->native->pcs[i] - !(p->native->marks[i] & SHSTK_MARK_PC);

	return (pc >= found->run_start && pc < found->run_end) ||
	       (pc >= found->cold_start && pc < found->cold_end);
}

/* Returns whether a thread is where the interpreter's lists may be in the middle of a change. */
static bool is_unsure(const struct native_stack *native, const struct language_found *found)
{
	for (unsigned int i = 0; i < native->nr; i++)
		if (native->marks[i] & SHSTK_MARK_PC && native->pcs[i] >= found->unsure_start &&
		    native->pcs[i] < found->unsure_end)
			return true;
	return false;
}

/* Returns whether native entry @i is where the row was run that next_row() gave @at for. */
static bool is_place(const struct placing *p, unsigned int i, uint64_t at)
{
	const uint64_t *sps = p->native->sps;

	if (!at || p->found->counted)
		return at && in_run(p, i);
	return i + 1 < p->native->nr && at >= sps[i] && at < sps[i + 1];
}

/*
 * Returns whether the interpreter may have run in the next native entry without a row of frames: inside
 * the innermost row, where it may have been entered just now; and outside the outermost one, where a
 * greenlet or another interpreter was begun, whose frames do not lead on to those of its beginner.
 */
static bool may_lack_row(const struct placing *p)
{
	return !p->found->counted && (!p->next || p->next == p->frames->nr);
}

/*
 * Puts native entry @i, or the row of frames that it ran, into the order. Returns false if stack and
 * frames are not of one moment.
 */
static bool place_entry(struct placing *p, unsigned int i)
{
	unsigned int end = 0;

	if (!is_place(p, i, next_row(p, &end))) {
		p->order[p->nr++] = (int)i;
		return may_lack_row(p) || !in_run(p, i);
	}
	if (!mark_fits(p) || !add_row(p, end))
		return false;
	p->mark++;
	return true;
}

/*
 * Adds the frames that lie on the native stack beyond where unwinding it ended, as code without unwind
 * information lies between. They are its callers. Returns false if one lies elsewhere.
 */
static bool add_callers(struct placing *p)
{
	const struct native_stack *native = p->native;

	for (unsigned int i = p->next; i < p->frames->nr; i++)
		if (p->frames->frames[i].entry->addr < native->sps[native->nr - 1])
			return false;
	return add_row(p, p->frames->nr);
}

/* Returns whether every frame has its place. One that is not shown needs none if rows are counted. */
static bool all_placed(const struct placing *p)
{
	unsigned int i = p->next;

	while (p->found->counted && i < p->frames->nr && !kind_of(p, i))
		i++;
	return i == p->frames->nr;
}

unsigned int place_frames(const struct native_stack *native, const struct language *language,
			  const struct language_found *found, struct language_frames *frames,
			  int *order)
{
	struct placing p = {
		.native = native,
		.language = language,
		.found = found,
		.frames = frames,
		.order = order,
	};

	frames->unsure = is_unsure(native, found);
	if (!native->nr || !frames->nr)
		return 0;
	frames->inner_sp = native->sps[0];
	frames->outer_sp = native->sps[native->nr - 1];
	if (!language->sound(found->version, frames))
		return 0;
	for (unsigned int i = 0; i < native->nr; i++)
		if (!place_entry(&p, i))
			return 0;
	if (found->target.native && !add_callers(&p))
		return 0;
	return all_placed(&p) ? p.nr : 0;
}
