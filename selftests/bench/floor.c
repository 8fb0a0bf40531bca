/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * floor.c - measures the time to only read the return addresses of a trace. The words are loaded
 * one after the other, in alternating directions, and or-ed together. Nothing is compared and
 * nothing is written. No source that reads every return address can be faster than these loads.
 *
 * libunwind's cursor finds, once for each place, where the words lie.
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <string.h>

#include "job.h"
#include "source.h"

/* Two words in one register, if the CPU has such registers. */
typedef uint64_t pair __attribute__((vector_size(16)));
typedef const uint64_t stack_word __attribute__((may_alias));

/**
 * struct place - the place where captures happen
 * @frame: frame address of the function that captures.
 * @id: value of source_place when the words were found.
 * @n: number of words in @slot, a multiple of 8.
 * @slot: where the return addresses lie, in bytes from @frame.
 * @backwards: the words are read backwards this time.
 */
static struct {
	const char *frame;
	unsigned int id;
	int n;
	int32_t slot[MAX_PCS] __attribute__((aligned(8)));
	bool backwards;
} place;

/*
 * Finds where the return addresses lie: each lies just below the CFA, which is the caller's stack
 * pointer.
 */
static void find_place(const char *frame)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t ip, sp;
	int n = 0;

	if (unw_getcontext(&context) || unw_init_local(&cursor, &context))
		return;
	while (n < MAX_PCS && unw_step(&cursor) > 0) {
		if (unw_get_reg(&cursor, UNW_REG_IP, &ip) || unw_get_reg(&cursor, UNW_REG_SP, &sp))
			break;
		sp -= sizeof(uint64_t);
		if (sp >= (uintptr_t)frame && *(stack_word *)sp == ip)
			place.slot[n++] = (int32_t)(sp - (uintptr_t)frame);
	}
	place.n = n & ~7;
	place.frame = frame;
	place.id = source_place;
}

/* Loads the two words whose distances from @frame are at @slot. */
static inline __attribute__((always_inline)) pair load_two(const char *frame, const int32_t *slot)
{
	int64_t two;

	memcpy(&two, slot, sizeof(two));
	return (pair){ *(stack_word *)(frame + (int32_t)two),
		       *(stack_word *)(frame + (two >> 32)) };
}

static inline __attribute__((always_inline)) void load_eight(const char *frame, const int32_t *slot,
							     pair *a, pair *b)
{
	*a |= load_two(frame, slot);
	*b |= load_two(frame, slot + 2);
	*a |= load_two(frame, slot + 4);
	*b |= load_two(frame, slot + 6);
}

int floor_capture(uint64_t *pcs, int max)
{
	const char *frame = __builtin_frame_address(0);
	pair a = { 0, 0 }, b = { 0, 0 };
	int i;

	(void)pcs;
	(void)max;
	if (place.frame != frame || place.id != source_place)
		find_place(frame);
	place.backwards = !place.backwards;
	if (place.backwards)
		for (i = place.n - 8; i >= 0; i -= 8)
			load_eight(frame, place.slot + i, &a, &b);
	else
		for (i = 0; i < place.n; i += 8)
			load_eight(frame, place.slot + i, &a, &b);
	a |= b;
	__asm__ volatile("" : : "m"(a)); /* keeps the compiler from dropping the loads */
	return place.n;
}

const char *floor_load(void)
{
#ifdef __x86_64__
	return NULL;
#else
	return "on x86-64 only";
#endif
}
