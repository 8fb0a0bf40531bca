// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stack_read_twice.c - reads the stack of a living process above a copy that ended too soon, before
 * and after the sample, and continues the stack if both agree. See stack_read_twice.h.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/convert/stack_read_twice.h"
#include "tools/shstk.h"

#define MOST (1u << 20) /* bytes of a thread's stacks that are read, at most, but for one step */
#define STEP 16384 /* bytes read at a time; a read ends where a page is missing */
#define FIRST 65536 /* bytes of a stack that are read at first; more if it goes on behind them */
#define SMALL 4096
#define SAVED 256 /* bytes of registers that a function saves below its return address */
#define ALL_MOST (64u << 20) /* bytes that are kept for all threads together, at most */

void above_init(struct above *a, size_t *kept)
{
	*a = (struct above){ .kept = kept };
}

void above_deinit(struct above *a)
{
	*a->kept -= a->before.max + a->last.max;
	free(a->before.pieces);
	free(a->last.pieces);
	free(a->before.bytes);
	free(a->last.bytes);
	above_init(a, a->kept);
}

void above_forget(struct above *a)
{
	a->before.time = a->last.time = 0;
	a->before.nr = a->last.nr = 0;
}

static bool make_room(struct above_look *look, size_t size, size_t *kept)
{
	uint8_t *more;

	if (size <= look->max)
		return true;
	if (size - look->max > ALL_MOST - *kept)
		return false;
	more = realloc(look->bytes, size);
	if (!more)
		return false;
	*kept += size - look->max;
	look->bytes = more;
	look->max = size;
	return true;
}

/*
 * Adds at most @most bytes of the stack from @from on. @kept counts the bytes that are kept for all
 * threads.
 */
static void add_piece(struct above_look *look, const struct mappings *mappings, pid_t pid,
		      uint64_t from, size_t most, size_t *kept)
{
	size_t step = STEP - from % SMALL; /* so that steps end where pages do */
	size_t size = 0;

	if (!look->pieces)
		look->pieces = calloc(ABOVE_PIECES, sizeof(*look->pieces));
	if (!look->pieces || look->size >= MOST)
		return;
	most = most < MOST - look->size ? most : MOST - look->size;
	while (size < most && make_room(look, look->size + step, kept)) {
		if (!mappings_read(mappings, pid, from + size, look->bytes + look->size, step)) {
			size += step;
			look->size += step;
			step = step < STEP - SMALL ? SMALL : STEP;
		} else if (step > SMALL) {
			step = size ? SMALL : SMALL - from % SMALL;
		} else {
			break;
		}
	}
	if (!size)
		return;
	look->pieces[look->nr++] = (struct above_piece){ from, look->size - size, size };
	look->time = now_ns(CLOCK_MONOTONIC);
}

/* A stack with memory of its own, as large as another one. */
struct trial {
	struct unwound stack;
	void *memory;
};

static bool begin_trial(struct trial *t, const struct unwound *like)
{
	t->stack = (struct unwound){ .max = like->max };
	t->memory = malloc(like->max * (2 * sizeof(uint64_t) + 1));
	if (!t->memory)
		return false;
	t->stack.pcs = t->memory;
	t->stack.sps = t->stack.pcs + like->max;
	t->stack.marks = (uint8_t *)(t->stack.sps + like->max);
	return true;
}

/*
 * Unwinds the copy together with what lay elsewhere at @look. Returns whether that leads to the end
 * of the stack.
 */
static bool try_look(const struct above_look *look, struct mappings *mappings, pid_t pid,
		     const struct stack_copy *copy, struct unwound *ret)
{
	struct memory_piece pieces[ABOVE_PIECES];
	struct stack_copy whole = *copy;

	for (size_t i = 0; i < look->nr; i++)
		pieces[i] = (struct memory_piece){ look->pieces[i].addr,
						   look->bytes + look->pieces[i].at,
						   look->pieces[i].size };
	whole.more = pieces;
	whole.nr_more = look->nr;
	return !mappings_unwind(mappings, pid, &whole, ret) && ret->end == SHSTK_END_COMPLETE;
}

static bool same(const struct unwound *a, const struct unwound *b)
{
	return a->nr == b->nr && !memcmp(a->pcs, b->pcs, a->nr * sizeof(*a->pcs)) &&
	       !memcmp(a->sps, b->sps, a->nr * sizeof(*a->sps));
}

/*
 * Returns whether the callers that are not in the copy are on a stack at a lower address than their callees.
 * Then they are those of a runtime's fibers, which are short-lived, and may be of another one. What a signal
 * handler on a stack of its own has interrupted may lie lower, too.
 */
static bool leads_down(const struct unwound *whole, unsigned int copied)
{
	for (unsigned int i = copied ? copied : 1; i < whole->nr; i++)
		if (whole->sps[i] < whole->sps[i - 1] && !(whole->marks[i - 1] & SHSTK_MARK_SIGNAL))
			return true;
	return false;
}

/* What is not in the copy may have been called by others meanwhile, and then by these again. */
static void replace(struct unwound *stack, const struct unwound *by)
{
	const unsigned int copied = stack->nr;

	memcpy(stack->pcs, by->pcs, by->nr * sizeof(*by->pcs));
	memcpy(stack->sps, by->sps, by->nr * sizeof(*by->sps));
	memcpy(stack->marks, by->marks, by->nr);
	for (unsigned int i = copied; i < by->nr; i++)
		stack->marks[i] |= SHSTK_MARK_GUESS;
	stack->nr = by->nr;
	stack->end = by->end;
	stack->elsewhere = by->elsewhere;
}

/*
 * Returns the address from which to read another stack: a little below the address that was missed
 * there, as registers may be saved there.
 */
static uint64_t find_other(const struct unwound *stack)
{
	uint64_t at = (stack->missed & ~7ull) - SAVED;

	return at / SMALL == stack->missed / SMALL ? at : stack->missed & -(uint64_t)SMALL;
}

/*
 * Returns the address from which to read. If the stack goes on behind the copy this is the copy's
 * beginning, since later copies may end earlier.
 */
static uint64_t find_place(const struct mappings *mappings, const struct stack_copy *copy,
			   const struct unwound *stack)
{
	return stack->elsewhere ? find_other(stack) : mappings_sp(mappings, copy);
}

/*
 * Reads the stack again unless the last look came after the sample; the last look becomes the one
 * before.
 */
static void read_again(struct above *a, const struct mappings *mappings, pid_t pid, uint64_t time,
		       uint64_t sp)
{
	struct above_look old = a->before;

	if (a->last.time > time)
		return;
	a->before = a->last;
	a->last = old;
	a->last.size = a->last.nr = a->last.time = 0;
	add_piece(&a->last, mappings, pid, sp, FIRST, a->kept);
}

/*
 * Adds what lies at @from. If that is right behind what was added before, the stack is a large one:
 * as much again is read as there is of it.
 */
static void add_more(struct above_look *look, const struct mappings *mappings, pid_t pid,
		     uint64_t from, size_t *kept)
{
	const struct above_piece *p = &look->pieces[look->nr - 1];
	const bool behind = from - p->addr <= p->size;

	add_piece(look, mappings, pid, from, behind ? 2 * p->size : FIRST, kept);
}

/*
 * Unwinds the copy together with what lay elsewhere at the last look, which is extended as long as
 * the stack continues on stacks that are not in it. Returns whether that leads to the end.
 */
static bool try_last(struct above *a, struct mappings *mappings, pid_t pid,
		     const struct stack_copy *copy, struct unwound *ret)
{
	for (;;) {
		const size_t nr = a->last.nr;

		if (try_look(&a->last, mappings, pid, copy, ret))
			return true;
		if (ret->end != SHSTK_END_READ || !nr || nr == ABOVE_PIECES)
			return false;
		add_more(&a->last, mappings, pid, find_other(ret), a->kept);
		if (a->last.nr == nr)
			return false;
	}
}

/* Unwinds with both looks. Returns whether they lead to the same callers, which are in @last then. */
static bool try_both(struct above *a, struct mappings *mappings, pid_t pid, uint64_t time,
		     const struct stack_copy *copy, struct unwound *before, struct unwound *last)
{
	if (!try_last(a, mappings, pid, copy, last) || !a->before.time || a->before.time >= time)
		return false;
	return try_look(&a->before, mappings, pid, copy, before) && same(before, last);
}

bool above_continue(struct above *a, struct mappings *mappings, pid_t pid, uint64_t time,
		    const struct stack_copy *copy, struct unwound *stack)
{
	struct trial before, last;
	bool agree = false;

	if (copy->nr_more || mappings_has_jit(mappings))
		return false;
	read_again(a, mappings, pid, time, find_place(mappings, copy, stack));
	if (a->last.time <= time || !begin_trial(&before, stack))
		return false;
	if (begin_trial(&last, stack)) {
		agree = try_both(a, mappings, pid, time, copy, &before.stack, &last.stack) &&
			!leads_down(&last.stack, stack->nr);
		if (agree)
			replace(stack, &last.stack);
		a->deeper = !agree && last.stack.end == SHSTK_END_CAPACITY;
		free(last.memory);
	}
	free(before.memory);
	return agree;
}
