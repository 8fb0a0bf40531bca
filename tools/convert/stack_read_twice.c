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

#define MOST (1u << 20) /* bytes of a stack that are read, at most */
#define STEP 16384 /* bytes read at a time; a read ends where a page is missing */
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
	free(a->before.bytes);
	free(a->last.bytes);
	above_init(a, a->kept);
}

void above_forget(struct above *a)
{
	a->before.time = a->last.time = 0;
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

/* Reads the stack from @sp on to its end. @kept counts the bytes that are kept for all threads. */
static void take_look(struct above_look *look, const struct layout *layout, pid_t pid, uint64_t sp,
		      size_t *kept)
{
	size_t step = STEP - sp % SMALL; /* so that steps end where pages do */

	look->addr = sp;
	look->size = 0;
	while (look->size < MOST && make_room(look, look->size + step, kept)) {
		if (!layout_read(layout, pid, sp + look->size, look->bytes + look->size, step)) {
			look->size += step;
			step = step < STEP - SMALL ? SMALL : STEP;
		} else if (step > SMALL) {
			step = look->size ? SMALL : SMALL - sp % SMALL;
		} else {
			break;
		}
	}
	look->time = look->size ? now_ns(CLOCK_MONOTONIC) : 0;
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
 * Unwinds the copy together with what lay above it at @look. Returns whether that leads to the end
 * of the stack.
 */
static bool try_look(const struct above_look *look, struct layout *layout, pid_t pid,
		     const struct stack_copy *copy, struct unwound *ret)
{
	const struct memory_piece piece = { look->addr, look->bytes, look->size };
	struct stack_copy whole = *copy;

	whole.more = &piece;
	whole.nr_more = 1;
	return !layout_unwind(layout, pid, &whole, ret) && ret->end == SHSTK_END_COMPLETE;
}

static bool same(const struct unwound *a, const struct unwound *b)
{
	return a->nr == b->nr && !memcmp(a->pcs, b->pcs, a->nr * sizeof(*a->pcs)) &&
	       !memcmp(a->sps, b->sps, a->nr * sizeof(*a->sps));
}

static void replace(struct unwound *stack, const struct unwound *by)
{
	memcpy(stack->pcs, by->pcs, by->nr * sizeof(*by->pcs));
	memcpy(stack->sps, by->sps, by->nr * sizeof(*by->sps));
	memcpy(stack->marks, by->marks, by->nr);
	stack->nr = by->nr;
	stack->end = by->end;
	stack->elsewhere = by->elsewhere;
}

/*
 * Returns the address from which to read. If the stack goes on behind the copy this is the copy's
 * beginning, since later copies may end earlier. If it continues on another stack, it is a little
 * below the address that was missed there, as registers may be saved there.
 */
static uint64_t find_place(const struct layout *layout, const struct stack_copy *copy,
			   const struct unwound *stack)
{
	uint64_t at = (stack->missed & ~7ull) - SAVED;

	if (!stack->elsewhere)
		return layout_sp(layout, copy);
	return at / SMALL == stack->missed / SMALL ? at : stack->missed & -(uint64_t)SMALL;
}

/*
 * Reads the stack again unless the last look came after the sample; the last look becomes the one
 * before.
 */
static void look_again(struct above *a, const struct layout *layout, pid_t pid, uint64_t time,
		       uint64_t sp)
{
	struct above_look old = a->before;

	if (a->last.time > time)
		return;
	a->before = a->last;
	a->last = old;
	take_look(&a->last, layout, pid, sp, a->kept);
}

bool above_continue(struct above *a, struct layout *layout, pid_t pid, uint64_t time,
		    const struct stack_copy *copy, struct unwound *stack)
{
	struct trial before, last;
	bool proven = false;

	if (copy->nr_more || layout_has_jit(layout))
		return false;
	look_again(a, layout, pid, time, find_place(layout, copy, stack));
	if (!a->before.time || a->before.time >= time || a->last.time <= time ||
	    !begin_trial(&before, stack))
		return false;
	if (begin_trial(&last, stack)) {
		proven = try_look(&a->before, layout, pid, copy, &before.stack) &&
			 try_look(&a->last, layout, pid, copy, &last.stack) &&
			 same(&before.stack, &last.stack);
		if (proven)
			replace(stack, &last.stack);
		free(last.memory);
	}
	free(before.memory);
	return proven;
}
