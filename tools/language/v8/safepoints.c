// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * safepoints.c - where calls of code of V8's middle compiler (Maglev) return to.
 *
 * What the last compiler keeps of its states has where each call returns to. That of the middle one has instead
 * where its code goes back to the interpreter. Both are in a table of all calls that follows the code (V8 calls it a
 * safepoint table): a head, then for each call where it returns to, the number of the place that goes back, plus 1,
 * where that is, plus 1, one byte, and registers, in as many bytes as the head says.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include "bpf/native.h"
#include "libshstk/unaligned.h"
#include "tools/language/v8/v8.h"

#define HEAD 16 /* bytes */
#define LENGTH_AT 4 /* offsets in the head */
#define SIZES_AT 8
#define HAS_EXITS 1 /* bit of the sizes */
#define REGISTERS_SHIFT 1 /* lowest bits of sizes, of three bits each */
#define PLACE_SHIFT 4
#define NUMBER_SHIFT 7
#define SIZE_MASK 7
#define SLOTS 1 /* bytes that say how many registers the call has put on the stack */

/**
 * struct call_table - a table of calls
 * @entries: its elements.
 * @nr: how many were copied.
 * @place: bytes of a place.
 * @number: bytes of a number.
 * @entry: bytes of an element.
 */
struct call_table {
	const uint8_t *entries;
	size_t nr;
	size_t place;
	size_t number;
	size_t entry;
};

/* Returns false if there is none that tells anything. */
static bool read_head(const uint8_t *bytes, size_t size, struct call_table *t)
{
	uint32_t sizes, length;

	if (size < HEAD)
		return false;
	length = get32(bytes + LENGTH_AT);
	sizes = get32(bytes + SIZES_AT);
	t->entries = bytes + HEAD;
	t->place = sizes >> PLACE_SHIFT & SIZE_MASK;
	t->number = sizes >> NUMBER_SHIFT & SIZE_MASK;
	t->entry = 2 * t->place + t->number + SLOTS + (sizes >> REGISTERS_SHIFT & SIZE_MASK);
	if (!(sizes & HAS_EXITS) || !t->place || !t->number || t->place > 4 || t->number > 4)
		return false;
	t->nr = (size - HEAD) / t->entry;
	t->nr = t->nr < length ? t->nr : length;
	return true;
}

static uint32_t read_number(const uint8_t *bytes, size_t size)
{
	uint32_t ret = 0;

	while (size--)
		ret = ret << 8 | bytes[size];
	return ret;
}

/* Takes a call, if it has a place that goes back to the interpreter. */
static void take_call(struct v8_code *c, const struct call_table *t, size_t i, uint64_t checks)
{
	const uint8_t *entry = t->entries + i * t->entry;
	const uint64_t number = read_number(entry + t->place, t->number);
	const uint64_t exit = read_number(entry + t->place + t->number, t->place);
	const uint64_t nr = number - 1 - checks;

	if (number <= checks || nr >= c->nr_returns || exit != c->exits + nr * V8_EXIT_BYTES + 1)
		return;
	c->returns[nr].offset = read_number(entry, t->place);
}

void v8_take_calls(struct v8_code *c, const uint8_t *bytes, size_t size, uint64_t checks)
{
	struct call_table t;
	uint32_t before = 0;

	for (size_t i = 0; i < c->nr_returns; i++)
		c->returns[i].offset = 0;
	if (read_head(bytes, size, &t))
		for (size_t i = 0; i < t.nr; i++)
			take_call(c, &t, i, checks);
	/* They are looked for in the order of their offsets. */
	for (size_t i = 0; i < c->nr_returns; i++) {
		if (c->returns[i].offset <= before)
			c->returns[i].nr = 0;
		else
			before = c->returns[i].offset;
		c->returns[i].offset = before;
	}
}
