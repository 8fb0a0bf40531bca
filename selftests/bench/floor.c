/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * floor.c - what merely reading the return addresses of a trace takes: the words
 * are loaded, one after the other or backwards in turn, and or-ed together. Nothing
 * is compared and nothing written. No source that reads every return address can
 * be faster than such loads are.
 *
 * Where the words lie is found out once for each place, with libunwind's cursor.
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <string.h>

#include "job.h"
#include "source.h"

/* Two words in one register, where the CPU has such. */
typedef uint64_t pair __attribute__((vector_size(16)));
typedef const uint64_t stack_word __attribute__((may_alias));

/**
 * struct place - where captures happen
 * @frame: of the function that captures.
 * @id: source_place then.
 * @n: number of @slot, a multiple of 8.
 * @slot: the return addresses, in bytes from @frame.
 * @backwards: this time.
 */
static struct {
	const char *frame;
	unsigned int id;
	int n;
	int32_t slot[MAX_PCS] __attribute__((aligned(8)));
	bool backwards;
} place;

/* The return address lies below the CFA, which is the caller's stack pointer. */
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

/* @slot: two distances. */
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
	__asm__ volatile("" : : "m"(a)); /* it is wanted */
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
