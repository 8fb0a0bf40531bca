// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * states.c - which functions V8's machine code runs where its calls return.
 *
 * What machine code was made for may change while it has called. Then the interpreter goes on when the
 * call returns. So for each such call V8 keeps a state: the frames that the interpreter would
 * have, the outermost first, with their functions and bytecodes, and the values of their variables. A
 * state is a row of instructions with operands (V8 calls it a translation). Since 11.3 a state may take
 * instructions from an earlier one, each in its place.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include "bpf/native.h"
#include "libshstk/unaligned.h"
#include "tools/language/v8/v8.h"

/* So many instructions are read of all states of some code: each one may be as long as all of them together. */
#define MOST_INSTRUCTIONS 131072

/* An instruction: what it is (enum v8_state_flags), and its first operands. */
struct instruction {
	unsigned int flags;
	uint32_t operands[2];
};

/**
 * struct state_reader - reads the instructions of a state
 * @v: the version.
 * @bytes: all states.
 * @size: number of bytes.
 * @at: offset of the next instruction.
 * @earlier: offset of an instruction of the earlier state; @size: there is none.
 * @behind: so many instructions of the earlier state are passed before one is taken.
 * @taken: so many of the next instructions are taken from there.
 * @left: so many instructions may still be read.
 */
struct state_reader {
	const struct v8_version *v;
	const uint8_t *bytes;
	size_t size;
	size_t at;
	size_t earlier;
	size_t behind;
	uint32_t taken;
	unsigned int *left;
};

static bool read_number(const struct state_reader *s, size_t *at, uint32_t *ret)
{
	return v8_number(s->bytes, s->size, at, ret);
}

/* Returns what a number is whose lowest bit is its sign. */
static int32_t with_sign(uint32_t number)
{
	return number & 1 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
}

static bool read_instruction(const struct state_reader *s, size_t *at, struct instruction *ret)
{
	uint32_t name, operand;

	*ret = (struct instruction){ 0 };
	if (!*s->left || !read_number(s, at, &name))
		return false;
	--*s->left;
	if (s->v->signed_names)
		name = (uint32_t)with_sign(name);
	if (name >= s->v->nr_states)
		return false;
	ret->flags = s->v->states[name];
	for (unsigned int i = 0; i < (ret->flags & V8_STATE_OPERANDS); i++) {
		if (!read_number(s, at, &operand))
			return false;
		if (i < 2)
			ret->operands[i] = operand;
	}
	return true;
}

/*
 * Reads how many instructions are taken from the earlier state, if that is what comes next: an instruction
 * with that number, or a byte which is larger than any instruction's by it.
 */
static bool read_taken(struct state_reader *s)
{
	const uint8_t name = s->at < s->size ? s->bytes[s->at] : 0;

	if (name >= s->v->nr_states && !s->v->signed_names) {
		s->taken = name - s->v->nr_states;
		s->at++;
	} else if (!s->v->signed_names && s->v->states[name] & V8_STATE_TAKE) {
		s->at++;
		if (!read_number(s, &s->at, &s->taken))
			return false;
	} else {
		return true;
	}
	return s->taken;
}

/* Passes the instructions of the earlier state in whose place there were others. */
static bool pass_earlier(struct state_reader *s)
{
	struct instruction passed;

	for (; s->behind; s->behind--)
		if (!read_instruction(s, &s->earlier, &passed))
			return false;
	return true;
}

/* Reads the next instruction. Returns false if there is none. */
static bool read_next(struct state_reader *s, struct instruction *ret)
{
	if (!s->taken && !read_taken(s))
		return false;
	if (s->taken) {
		s->taken--;
		return pass_earlier(s) && read_instruction(s, &s->earlier, ret);
	}
	s->behind++;
	return read_instruction(s, &s->at, ret);
}

/* Begins to read the state at an offset. Returns the number of its frames; 0: there is none. */
static uint32_t begin_state(struct state_reader *s, const struct v8_copied_states *c, size_t at,
			    unsigned int *left)
{
	struct instruction begin;

	*s = (struct state_reader){
		.v = c->version,
		.bytes = c->states,
		.size = c->states_size,
		.at = at,
		.earlier = c->states_size,
		.left = left,
	};
	if (!read_next(s, &begin) || !(begin.flags & V8_STATE_BEGIN))
		return 0;
	if (s->v->signed_names)
		return (uint32_t)with_sign(begin.operands[0]);
	if (begin.operands[0] && begin.operands[0] <= at)
		s->earlier = at - begin.operands[0];
	return (uint32_t)with_sign(begin.operands[1]);
}

/* Takes the frame of a function apart. Functions that are inlined come first among V8's constants. */
static struct v8_frame make_frame(const struct v8_copied_states *c, const struct instruction *i)
{
	const uint32_t function = (uint32_t)with_sign(i->operands[1]);

	return (struct v8_frame){
		.function = function < c->nr_ids ? get64(c->ids + (size_t)8 * function) : c->own,
		.bytecode = with_sign(i->operands[0]),
	};
}

/*
 * Reads the state at an offset. Returns how many functions it has, which are written to @ret unless that is
 * NULL; 0: it is not known. @left: how many instructions may be read, which becomes less.
 */
static unsigned int read_state(const struct v8_copied_states *c, size_t at, unsigned int *left,
			       struct v8_frame *ret)
{
	struct state_reader s;
	struct instruction i;
	uint32_t frames = begin_state(&s, c, at, left);
	unsigned int nr = 0;

	if (frames > LANGUAGE_PARTS)
		return 0;
	while (frames && read_next(&s, &i)) {
		frames -= !!(i.flags & V8_STATE_FRAME);
		if (!(i.flags & V8_STATE_FUNCTION))
			continue;
		if (!nr && make_frame(c, &i).function != c->own)
			return 0;
		if (ret)
			ret[nr] = make_frame(c, &i);
		nr++;
	}
	return frames ? 0 : nr;
}

size_t v8_returns(const struct v8_copied_states *c, struct v8_return *returns,
		  struct v8_frame *frames)
{
	unsigned int left = MOST_INSTRUCTIONS;
	size_t ret = 0;

	for (size_t i = 0; i < c->nr_returns; i++) {
		const uint8_t *entry = c->returns + i * NATIVE_RETURN_BYTES;
		const unsigned int nr =
			read_state(c, get32(entry + 12), &left, frames ? frames + ret : NULL);

		if (returns)
			returns[i] = (struct v8_return){ get32(entry + 20), (uint32_t)ret, nr };
		ret += nr;
	}
	return ret;
}

const struct v8_return *v8_find_return(const struct v8_code *c, int64_t at, bool left)
{
	const uint64_t exit = (uint64_t)at - c->exits;
	size_t lo = 0, hi = c->nr_returns;

	/* The call will return to the code that goes back, as the function is already known to be replaced. */
	if (at >= 0 && (uint64_t)at >= c->exits)
		return left || exit % V8_EXIT_BYTES || exit / V8_EXIT_BYTES >= c->nr_returns ?
			       NULL :
			       &c->returns[exit / V8_EXIT_BYTES];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->returns[mid].offset < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->nr_returns && c->returns[lo].offset == at ? &c->returns[lo] : NULL;
}
