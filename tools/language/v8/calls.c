// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * calls.c - which instructions of V8's machine code have which position.
 *
 * V8 writes the positions of some instructions, and what follows may belong to any place: to another
 * function that is inlined there, too, as the code of one may have no position at all. But a call of
 * a function has one, and the instructions that prepare it follow that place without a branch, apart from
 * those that go back to the interpreter. So it is sure where the first call behind a position returns to, if
 * no branch ends or begins a block of instructions in between, and if each function that is inlined has a
 * position somewhere: V8 did not make any for those that have none.
 *
 * A program may have V8 write the positions of all that was made of something in the script, as Node.js does.
 * Then an instruction between two positions of the same inlined call is of that call. That it is so, shows code
 * itself: otherwise there is a call between any two positions.
 *
 * The middle compiler (Maglev) makes code of one operation after the other, and if positions are written, that of each
 * stands in front of its code. What is made between two operations, as moves of registers, has none. What operations
 * do seldom is made behind all of them.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include <string.h>

#include "bpf/native.h"
#include "libshstk/epilogue.h"
#include "libshstk/machine.h"
#include "libshstk/shstk.h"
#include "tools/language/v8/v8.h"

/**
 * struct block_marks - where blocks of instructions begin
 * @machine: the instruction set.
 * @code: the instructions.
 * @size: number of bytes.
 * @exits: offset of those that go back to the interpreter.
 * @begins: a bit for each offset.
 */
struct block_marks {
	const struct machine *machine;
	const uint8_t *code;
	size_t size;
	size_t exits;
	uint8_t begins[NATIVE_CODE / 8];
};

static void mark(struct block_marks *b, uint64_t at)
{
	if (at < b->size)
		b->begins[at / 8] |= 1u << at % 8;
}

static bool begins_block(const struct block_marks *b, size_t at)
{
	return b->begins[at / 8] >> at % 8 & 1;
}

/* Decodes the instruction at an offset. Returns false if that is not possible. */
static bool decode(const struct block_marks *b, size_t at, struct effect *e)
{
	*e = (struct effect){ .len = 0 };
	return b->machine->decode(b->code + at, b->size - at, at, e) && e->len &&
	       e->len <= b->size - at;
}

/* Marks where blocks begin. Returns false if not all of it can be told. */
static bool mark_blocks(struct block_marks *b)
{
	struct effect e;

	for (size_t at = 0; at < b->exits; at += e.len) {
		if (!decode(b, at, &e) || e.flow == FLOW_TAIL || e.flow == FLOW_UNSURE)
			return false;
		if (e.flow == FLOW_BRANCH || e.flow == FLOW_JUMP)
			mark(b, e.target);
		/* Going back to the interpreter ends no block. */
		if ((e.flow == FLOW_BRANCH && e.target < b->exits) || e.flow == FLOW_JUMP ||
		    e.flow == FLOW_RETURN || e.flow == FLOW_STOP)
			mark(b, at + e.len);
	}
	return true;
}

/*
 * Finds out where the first call behind each position returns to, unless that is in another block. The
 * positions are in the order of their offsets, or else some calls have none.
 */
static void find_returns(const struct block_marks *b, struct v8_code *c)
{
	struct v8_position *p = c->positions, *end = p + c->nr_positions;
	struct effect e;

	for (size_t at = 0; at < b->exits && decode(b, at, &e); at += e.len) {
		while (begins_block(b, at) && p < end && p->offset < at)
			p++;
		for (; e.flow == FLOW_CALL && p < end && p->offset <= at; p++)
			p->returns = at + e.len;
	}
}

/* Returns whether there is a position in each function that is inlined. */
static bool all_have_positions(const struct v8_code *c)
{
	bool seen[NATIVE_PARTS] = { false };

	if (c->nr_calls > NATIVE_PARTS)
		return false;
	for (size_t i = 0; i < c->nr_positions; i++)
		if (c->positions[i].call >= 0 && (size_t)c->positions[i].call < c->nr_calls)
			seen[c->positions[i].call] = true;
	for (size_t i = 0; i < c->nr_calls; i++)
		if (!seen[i])
			return false;
	return true;
}

/*
 * Returns whether not only calls have positions: there are two between which no instruction goes elsewhere, but
 * for branches. The first position is that of the function itself.
 */
static bool has_detail(const struct v8_code *c, const struct block_marks *b)
{
	const struct v8_position *p = c->positions, *end = p + c->nr_positions;
	bool gone = true;
	struct effect e;

	for (size_t at = 0; at < b->exits && decode(b, at, &e); at += e.len) {
		for (; p < end && p->offset <= at; p++) {
			if (!gone && p->offset == at)
				return true;
			gone = p->offset != at || p == c->positions;
		}
		gone |= e.flow != FLOW_NEXT && e.flow != FLOW_BRANCH;
	}
	return false;
}

/*
 * Returns whether each operation has a position, also one of which no instruction is made: two are at the same
 * offset then, as those of a function's arguments are. Calls are not.
 */
static bool has_operations(const struct v8_code *c)
{
	for (size_t i = 1; i < c->nr_positions; i++)
		if (c->positions[i].offset == c->positions[i - 1].offset)
			return true;
	return false;
}

void v8_find_operations(struct v8_code *c)
{
	c->detailed = has_operations(c) && all_have_positions(c);
}

void v8_find_calls(struct v8_code *c, const uint8_t *code, size_t size, size_t exits, bool whole)
{
	struct block_marks b = {
		.machine = machine_by_arch(SHSTK_ARCH_X86),
		.code = code,
		.size = size,
		.exits = exits < size ? exits : size,
	};

	if (!b.machine->decode || size >= NATIVE_CODE || !all_have_positions(c))
		return;
	c->detailed = has_detail(c, &b);
	if (whole && mark_blocks(&b))
		find_returns(&b, c);
}
