// SPDX-License-Identifier: GPL-2.0-or-later
/* place.c - puts an interpreter's frames among those of its native stack. See place.h. */
#include <string.h>

#include "libshstk/shstk.h"
#include "tools/language/place.h"

#define MAX_CALLS 32 /* functions with native frames of their own in a window that are placed */
#define MAX_WINDOW 512 /* native entries of a window that are looked at for them */

/* A frame whose function has a native frame of its own: the indices of both. */
struct native_call {
	unsigned int frame;
	unsigned int native;
};

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
 * @calls: the calls of native functions in this window: between two rows, inside of all, or outside of all.
 * @nr_calls: number of @calls.
 * @next_call: index of the first of them that is not in the order yet.
 * @window_end: index of the first native entry behind the window.
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
	struct native_call calls[MAX_CALLS];
	unsigned int nr_calls;
	unsigned int next_call;
	unsigned int window_end;
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
	return language_runs_at(p->found,
				p->native->pcs[i] - !(p->native->marks[i] & SHSTK_MARK_PC));
}

/* Returns whether code is part of a function that goes on with another native stack. */
static bool switches_at(const struct language_found *found, uint64_t pc)
{
	for (unsigned int i = 0; i < LANGUAGE_SWITCHES; i++)
		if (pc >= found->switches[i].start && pc < found->switches[i].end)
			return true;
	return false;
}

/* Returns whether a thread is where the interpreter's lists may be in the middle of a change. */
static bool is_unsure(const struct native_stack *native, const struct language_found *found)
{
	for (unsigned int i = 0; i < native->nr; i++) {
		const bool exact = native->marks[i] & SHSTK_MARK_PC;

		if (exact && native->pcs[i] >= found->unsure_start &&
		    native->pcs[i] < found->unsure_end)
			return true;
		if (switches_at(found, native->pcs[i] - !exact))
			return true;
	}
	return false;
}

/* Returns whether a frame may have become the innermost one just before an instruction. */
static bool follows_publishing(const struct language_found *found, uint64_t pc)
{
	if (language_runs_at(found, pc))
		return false;
	if (found->nr_publishing > LANGUAGE_PUBLISHING)
		return true;
	for (unsigned int i = 0; i < found->nr_publishing; i++)
		if (pc - found->publishing[i] < LANGUAGE_PUBLISHING_BYTES)
			return true;
	return false;
}

/* Returns whether the thread, or what a signal has interrupted, is where a frame becomes the innermost one. */
static bool is_published(const struct native_stack *native, const struct language_found *found)
{
	for (unsigned int i = 0; found->publishes && i < native->nr; i++)
		if (native->marks[i] & SHSTK_MARK_PC && follows_publishing(found, native->pcs[i]))
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

/* ---- Functions with native frames of their own ---- */

/* Returns the address of the native function of frame @i; 0: it has none. */
static uint64_t native_function_of(const struct placing *p, unsigned int i)
{
	return kind_of(p, i) & LANGUAGE_NATIVE ? p->frames->frames[i].function->address : 0;
}

/* Returns whether a frame ends the window that begins at frame @p->next: it belongs to a row. */
static bool ends_window(const struct placing *p, unsigned int i)
{
	return i == p->frames->nr || kind_of(p, i) & (LANGUAGE_SHOWN | LANGUAGE_LAST);
}

/*
 * Finds the frames in the window that have native functions. Returns false if there are none, or too many;
 * or if they are copies, in the middle of a deep stack, of which functions may differ.
 */
static bool list_calls(struct placing *p)
{
	p->nr_calls = p->next_call = 0;
	for (unsigned int i = p->next; !ends_window(p, i); i++) {
		if (!p->frames->frames[i].entry->addr)
			return false;
		if (!native_function_of(p, i))
			continue;
		if (p->nr_calls == MAX_CALLS)
			return false;
		p->calls[p->nr_calls++].frame = i;
	}
	return p->nr_calls;
}

/* Returns where the function of native entry @i begins; 0: it is not known. */
static uint64_t begin_of(const struct native_stack *native, unsigned int i)
{
	return native->function(native->arg, native->pcs[i] - !(native->marks[i] & SHSTK_MARK_PC));
}

/* Returns how many calls in the window from number @from on are of that function. */
static unsigned int count_calls(const struct placing *p, unsigned int from, uint64_t function)
{
	unsigned int ret = 0;

	for (unsigned int k = from; k < p->nr_calls; k++)
		ret += native_function_of(p, p->calls[k].frame) == function;
	return ret;
}

/*
 * Finds the native frame of call @k among @nr native frames, of which @begins tells where their functions
 * begin. A native function may also be called as any other one: so a call counts only if there are as many
 * frames as native frames of its function. Returns false if it does not.
 */
static bool find_native_frame(const struct placing *p, unsigned int k, const uint64_t *begins,
			      unsigned int nr, unsigned int *ret)
{
	const uint64_t function = native_function_of(p, p->calls[k].frame);
	/* As many of the same function lie inside of it as frames do. */
	const unsigned int inside = count_calls(p, 0, function) - count_calls(p, k, function);
	unsigned int found = 0;

	for (unsigned int i = 0; i < nr; i++)
		if (begins[i] == function && found++ == inside)
			*ret = i;
	return found == count_calls(p, 0, function);
}

/*
 * Finds the native frames of all calls in the window, which begins at native entry @begin. Removes calls
 * that have none. Returns false if they are not in the same order.
 */
static bool find_native_frames(struct placing *p, unsigned int begin)
{
	const unsigned int nr_natives = p->window_end - begin;
	uint64_t begins[MAX_WINDOW];
	struct native_call found[MAX_CALLS];
	unsigned int nr = 0, at = 0;

	for (unsigned int i = 0; i < nr_natives; i++)
		begins[i] = begin_of(p->native, begin + i);
	for (unsigned int k = 0; k < p->nr_calls; k++) {
		if (!find_native_frame(p, k, begins, nr_natives, &at))
			continue;
		if (nr && begin + at <= found[nr - 1].native)
			return false;
		found[nr++] = (struct native_call){ p->calls[k].frame, begin + at };
	}
	memcpy(p->calls, found, nr * sizeof(*found));
	p->nr_calls = nr;
	return true;
}

/* Begins the window of native entries that begins with entry @i. */
static void begin_window(struct placing *p, unsigned int i)
{
	if (!p->native->function || !list_calls(p)) {
		p->nr_calls = 0;
		return;
	}
	for (p->window_end = i; p->window_end < p->native->nr && !in_run(p, p->window_end);)
		p->window_end++;
	if (p->window_end - i > MAX_WINDOW || !find_native_frames(p, i))
		p->nr_calls = 0;
}

/* Adds native entry @i, and behind it the function whose frame it is. */
static void add_native(struct placing *p, unsigned int i)
{
	const struct native_call *call = &p->calls[p->next_call];

	p->order[p->nr++] = (int)i;
	if (p->next_call == p->nr_calls || call->native != i)
		return;
	p->order[p->nr++] = ~(int)call->frame;
	p->next_call++;
}

/* ---- Rows ---- */

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
		add_native(p, i);
		return may_lack_row(p) || !in_run(p, i);
	}
	if (!mark_fits(p) || !add_row(p, end))
		return false;
	p->mark++;
	begin_window(p, i + 1);
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

	while (p->found->counted && i < p->frames->nr && !(kind_of(p, i) & ~LANGUAGE_NATIVE))
		i++;
	return i == p->frames->nr;
}

/*
 * Leaves out frames of another native stack, which are behind that at which this one begins. Behind frames that are
 * not known it may be that of a stack farther out: this one may begin in between.
 */
static void end_at_begin(const struct placing *p, struct language_frames *frames)
{
	unsigned int i = 0;

	while (i < frames->nr && !(kind_of(p, i) & LANGUAGE_BEGIN))
		i++;
	frames->begun = i < frames->nr && (!frames->left_out || i < frames->left_out);
	frames->nr = i;
	if (frames->left_out >= i)
		frames->left_out = 0;
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
	frames->published = is_published(native, found);
	if (!native->nr)
		return 0;
	end_at_begin(&p, frames);
	if (!frames->nr)
		return 0;
	frames->inner_sp = native->sps[0];
	frames->outer_sp = native->sps[native->nr - 1];
	if (!language->sound(found->version, frames))
		return 0;
	begin_window(&p, 0);
	for (unsigned int i = 0; i < native->nr; i++)
		if (!place_entry(&p, i))
			return 0;
	if (found->target.native && !add_callers(&p))
		return 0;
	return all_placed(&p) ? p.nr : 0;
}
