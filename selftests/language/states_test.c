// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * states_test.c - which functions V8's machine code runs where its calls return, and at which bytecode code
 * of its first compiler is: each of its versions writes that down in another way.
 *
 * The machine code has inlined a function; the records are as bpf/native_walk.h makes them.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/native.h"
#include "tools/language/v8/v8.h"

#include "kselftest_harness.h"

#define OWN 7 /* numbers of functions */
#define INLINED 9
#define CODE 3 /* of the code itself */
#define EXITS 100 /* offset at which the code goes back to the interpreter */
#define CHECKS 2 /* places before those of calls */
#define CALL(n) (10 + 20 * (n)) /* where a call returns to */
#define EXIT(n) (EXITS + 4 * (CHECKS + (n)))
#define MOST_RETURNS 4

#define SIGNED(n) (2 * (n)) /* how a number is written that has a sign */
#define NAME(n) (2 * (n)) /* of an instruction of 10.2 */
#define TAKE(n) (36 + (n)) /* in 11.3 */

/* A state in each version: the bytes, and where the states of three calls begin. */
struct states {
	int major;
	int minor;
	uint8_t bytes[64];
	size_t size;
	uint8_t begins[MOST_RETURNS];
	unsigned int nr;
};

static const struct states old = {
	.major = 10,
	.minor = 2,
	.bytes = {
		/* Of two frames: the function at 5 has called the inlined one, which is at 3. */
		NAME(3), SIGNED(2), SIGNED(2), 0,
		NAME(18), SIGNED(5), SIGNED(1), SIGNED(4), 0, 0, NAME(22), SIGNED(40), NAME(24), 0x81, 1,
		NAME(18), SIGNED(3), SIGNED(0), SIGNED(2), 0, 0,
		/* Of two, one of which is none of a function. */
		NAME(3), SIGNED(2), SIGNED(2), 0,
		NAME(18), SIGNED(6), SIGNED(1), SIGNED(4), 0, 0,
		NAME(19), SIGNED(1), SIGNED(2), 0,
		/* Of one, which is not of the function itself. */
		NAME(3), SIGNED(1), SIGNED(1), 0,
		NAME(18), SIGNED(3), SIGNED(0), SIGNED(2), 0, 0,
	},
	.size = 45,
	.begins = { 0, 21, 35 },
	.nr = 3,
};

static const struct states newer = {
	.major = 11,
	.minor = 3,
	.bytes = {
		2, 0, SIGNED(2), SIGNED(2),
		23, SIGNED(5), SIGNED(1), SIGNED(4), 0, 0, 29, SIGNED(40), 31, 0x81, 1,
		24, SIGNED(3), SIGNED(0), SIGNED(2),
		/* The first frame and what follows it are those of the first state. */
		2, 19, SIGNED(2), SIGNED(2), TAKE(3), 25, SIGNED(1), SIGNED(2), 0,
		/* As the first one, but at another bytecode; a number tells how many are taken. */
		3, 28, SIGNED(2), SIGNED(2), 24, SIGNED(8), SIGNED(1), SIGNED(4), 35, 3,
		/* There is nothing to take from. */
		2, 0, SIGNED(2), SIGNED(2), TAKE(2),
	},
	.size = 43,
	.begins = { 0, 19, 28, 38 },
	.nr = 4,
};

static const struct states version_12_4 = {
	.major = 12,
	.minor = 4,
	.bytes = {
		/* The same in other numbers. */
		12, 0, SIGNED(2), SIGNED(2),
		0, SIGNED(5), SIGNED(1), SIGNED(4), 0, 0, 14, SIGNED(40), 33, 0x81, 1,
		1, SIGNED(3), SIGNED(0), SIGNED(2),
		12, 19, SIGNED(2), SIGNED(2), 40 + 3, 2, SIGNED(1), SIGNED(2), 0,
		13, 28, SIGNED(2), SIGNED(2), 1, SIGNED(8), SIGNED(1), SIGNED(4), 39, 3,
		12, 0, SIGNED(2), SIGNED(2), 40 + 2,
	},
	.size = 43,
	.begins = { 0, 19, 28, 38 },
	.nr = 4,
};

static const struct states version_13_6 = {
	.major = 13,
	.minor = 6,
	.bytes = {
		/* The third operand of a function is its bytecode. */
		14, 0, SIGNED(2), SIGNED(2),
		0, SIGNED(5), SIGNED(1), SIGNED(0), SIGNED(4), 0, 0, 20, SIGNED(40), 38, 0x81, 1,
		1, SIGNED(3), SIGNED(0), SIGNED(1), SIGNED(2),
		14, 21, SIGNED(2), SIGNED(2), 45 + 3, 2, SIGNED(1), SIGNED(2), 0,
		15, 30, SIGNED(2), SIGNED(2), 1, SIGNED(8), SIGNED(1), SIGNED(0), SIGNED(4), 44, 3,
		14, 0, SIGNED(2), SIGNED(2), 45 + 2,
	},
	.size = 46,
	.begins = { 0, 21, 30, 41 },
	.nr = 4,
};

static void put(uint8_t *to, uint32_t number)
{
	memcpy(to + 4, &number, sizeof(number));
}

/* Takes apart what is copied of code with these states. */
static void make(const struct states *s, struct language_function *ret)
{
	static struct language_code code;
	const uint64_t id = INLINED;
	uint8_t *to = code.table;

	code = (struct language_code){ .id = CODE, .got = { sizeof(id) } };
	memcpy(code.shorts[0], &id, sizeof(id));
	code.words[NATIVE_KIND] = NATIVE_MACHINE;
	code.words[NATIVE_CODE_FUNCTION] = OWN;
	code.words[NATIVE_CODE_INLINED] = 1;
	code.words[NATIVE_CODE_EXITS] = EXITS;
	code.words[NATIVE_CODE_CHECKS] = CHECKS;
	code.words[NATIVE_CODE_RETURNS] = (uint64_t)s->nr * NATIVE_RETURN_BYTES;
	code.words[NATIVE_CODE_STATES] = s->size;
	for (unsigned int i = 0; i < s->nr; i++, to += NATIVE_RETURN_BYTES) {
		put(to + 8, s->begins[i]);
		put(to + 16, CALL(i));
	}
	memcpy(to, s->bytes, s->size);
	if (v8_function(v8_version(s->major, s->minor), &code,
			(size_t)(to - (uint8_t *)&code) + s->size, ret))
		abort();
}

static void release(struct language_function *f)
{
	free(f->name);
	free(f->file);
	free(f->own);
}

/* Finds the functions at an offset. Returns their number. */
static unsigned int expand(const struct language_function *f, int at, unsigned int flags,
			   struct language_part parts[LANGUAGE_PARTS])
{
	const struct language_entry entry = { .id = CODE,
					      .at = at,
					      .flags = NATIVE_MACHINE | flags };
	const struct language_frame frame = { &entry, f };

	return v8_expand(&frame, parts, LANGUAGE_PARTS);
}

FIXTURE(states)
{
	const struct states *states;
	struct language_function f;
	struct language_part parts[LANGUAGE_PARTS];
};

FIXTURE_VARIANT(states)
{
	const struct states *states;
	int other; /* bytecode of the call in a state that differs */
};

FIXTURE_VARIANT_ADD(states, version_10_2){ &old, 6 };
FIXTURE_VARIANT_ADD(states, version_11_3){ &newer, 5 };
FIXTURE_VARIANT_ADD(states, version_12_4){ &version_12_4, 5 };
FIXTURE_VARIANT_ADD(states, version_13_6){ &version_13_6, 5 };

FIXTURE_SETUP(states)
{
	self->states = variant->states;
	make(self->states, &self->f);
}

FIXTURE_TEARDOWN(states)
{
	release(&self->f);
}

TEST_F(states, a_call_returns_to_an_inlined_function_and_its_callers)
{
	ASSERT_EQ(2, expand(&self->f, CALL(0), NATIVE_RETURN, self->parts));
	EXPECT_EQ(INLINED, self->parts[0].id);
	EXPECT_EQ(V8_BYTECODE - 3, self->parts[0].at);
	EXPECT_EQ(OWN, self->parts[1].id);
	EXPECT_EQ(V8_BYTECODE - 5, self->parts[1].at);
}

TEST_F(states, a_frame_of_no_function_is_left_out)
{
	ASSERT_EQ(1, expand(&self->f, CALL(1), NATIVE_RETURN, self->parts));
	EXPECT_EQ(OWN, self->parts[0].id);
	EXPECT_EQ(V8_BYTECODE - variant->other, self->parts[0].at);
}

TEST_F(states, a_call_returns_to_where_the_interpreter_goes_on)
{
	ASSERT_EQ(2, expand(&self->f, EXIT(0), NATIVE_RETURN, self->parts));
	EXPECT_EQ(INLINED, self->parts[0].id);
	/* It may already be under way: then the word on the stack is where another one begins. */
	ASSERT_EQ(1, expand(&self->f, EXIT(0), NATIVE_RETURN | NATIVE_BEHIND, self->parts));
	EXPECT_EQ(-1, self->parts[0].at);
}

TEST_F(states, elsewhere_nothing_is_told)
{
	const int places[] = { 0,
			       CALL(0) - 1,
			       CALL(0) + 1,
			       CALL(self->states->nr - 1),
			       EXITS,
			       EXIT(0) - 1,
			       EXIT(self->states->nr),
			       INT32_MAX,
			       -1 };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		ASSERT_EQ(1, expand(&self->f, places[i], NATIVE_RETURN, self->parts));
		EXPECT_EQ(OWN, self->parts[0].id);
		EXPECT_EQ(-1, self->parts[0].at);
	}
	ASSERT_EQ(1, expand(&self->f, CALL(0), 0, self->parts));
}

TEST(a_state_takes_what_an_earlier_one_has)
{
	static const struct states *const all[] = { &newer, &version_12_4, &version_13_6 };
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		make(all[i], &f);
		ASSERT_EQ(2, expand(&f, CALL(2), NATIVE_RETURN, parts));
		EXPECT_EQ(INLINED, parts[0].id);
		EXPECT_EQ(V8_BYTECODE - 3, parts[0].at);
		EXPECT_EQ(OWN, parts[1].id);
		EXPECT_EQ(V8_BYTECODE - 8, parts[1].at);
		release(&f);
	}
}

/* ---- The compiler between the first and the last one ---- */

/*
 * As V8 13.6 has it: a head, then where a call returns to, the number of its exit, where that is, and what is on the
 * stack. The third one has no exit, the exit of the fifth one is elsewhere.
 */
static const uint8_t calls[] = {
	17, 0,	0,	    0,		 5, 0, 0,  0,	       0x93,	    0, 0, 0,  6, 0, 0,
	0,  10, CHECKS + 1, EXIT(0) + 1, 0, 0, 30, CHECKS + 2, EXIT(1) + 1, 0, 0, 40, 0, 0, 0,
	0,  50, CHECKS + 3, EXIT(2) + 1, 0, 0, 70, CHECKS + 4, EXIT(3) + 2, 0, 0,
};

/* Takes apart code of that compiler, with so many bytes of these calls. */
static void make_middle(size_t size, struct language_function *ret)
{
	const struct states *s = &version_13_6;
	static struct language_code code;
	uint8_t *to = code.table + size;

	code = (struct language_code){ .id = CODE };
	code.words[NATIVE_KIND] = NATIVE_MACHINE;
	code.words[NATIVE_CODE_FUNCTION] = OWN;
	code.words[NATIVE_CODE_MIDDLE] = 1;
	code.words[NATIVE_CODE_EXITS] = EXITS;
	code.words[NATIVE_CODE_CHECKS] = CHECKS;
	code.words[NATIVE_CODE_BYTES] = size;
	code.words[NATIVE_CODE_RETURNS] = (uint64_t)s->nr * NATIVE_RETURN_BYTES;
	code.words[NATIVE_CODE_STATES] = s->size;
	memcpy(code.table, calls, size);
	for (unsigned int i = 0; i < s->nr; i++, to += NATIVE_RETURN_BYTES) {
		put(to + 8, s->begins[i]);
		put(to + 16, EXIT(i));
	}
	memcpy(to, s->bytes, s->size);
	if (v8_function(v8_version(s->major, s->minor), &code,
			(size_t)(to - (uint8_t *)&code) + s->size, ret))
		abort();
}

/* Returns at which bytecode of its function code is to which a call returns; -1: it is not known. */
static int returned_at(const struct language_function *f, int at)
{
	struct language_part parts[LANGUAGE_PARTS];
	const unsigned int nr = expand(f, at, NATIVE_RETURN, parts);

	if (!nr || parts[nr - 1].id != OWN)
		abort();
	return parts[nr - 1].at <= V8_BYTECODE ? V8_BYTECODE - parts[nr - 1].at : -1;
}

TEST(calls_of_the_middle_compiler_return_to_where_its_table_says)
{
	struct language_function f;

	make_middle(sizeof(calls), &f);
	EXPECT_EQ(5, returned_at(&f, 10));
	EXPECT_EQ(5, returned_at(&f, 30));
	EXPECT_EQ(-1, returned_at(&f, 40));
	EXPECT_EQ(8, returned_at(&f, 50));
	EXPECT_EQ(-1, returned_at(&f, 70));
	EXPECT_EQ(5, returned_at(&f, EXIT(0)));
	release(&f);
}

TEST(a_table_of_calls_that_was_cut_tells_of_those_it_has)
{
	struct language_function f;

	for (size_t size = 0; size < sizeof(calls); size++) {
		make_middle(size, &f);
		EXPECT_EQ(size < 16 + 5 ? -1 : 5, returned_at(&f, 10));
		EXPECT_EQ(size < 16 + 20 ? -1 : 8, returned_at(&f, 50));
		EXPECT_EQ(-1, returned_at(&f, 0));
		release(&f);
	}
}

TEST(a_bytecode_beyond_all_places_has_none)
{
	/* The largest number of 32 bits with a sign. */
	static const struct states far = {
		.major = 10,
		.minor = 2,
		.bytes = { NAME(3), SIGNED(1), SIGNED(1), 0, NAME(18), 0xfe, 0xff, 0xff, 0xff, 0x0f,
			   SIGNED(1), SIGNED(2), 0, 0 },
		.size = 14,
		.begins = { 0 },
		.nr = 1,
	};
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;

	make(&far, &f);
	ASSERT_EQ(1, expand(&f, CALL(0), NATIVE_RETURN, parts));
	EXPECT_EQ(OWN, parts[0].id);
	EXPECT_EQ(-1, parts[0].at);
	release(&f);
}

#define LONG \
	(NATIVE_STATES - 1) /* bytes of a state with as many instructions as there is room for */
#define LONG_RETURNS (NATIVE_RETURNS / NATIVE_RETURN_BYTES)

TEST(states_that_are_too_long_together_tell_nothing)
{
	static const uint8_t begin[] = { NAME(3), SIGNED(1), SIGNED(1), 0 };
	static const uint8_t end[] = { NAME(18), SIGNED(3), SIGNED(1), SIGNED(2), 0, 0 };
	static struct language_code code = { .id = CODE };
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;
	uint8_t *to = code.table;

	code.words[NATIVE_KIND] = NATIVE_MACHINE;
	code.words[NATIVE_CODE_FUNCTION] = OWN;
	code.words[NATIVE_CODE_EXITS] = 100000;
	code.words[NATIVE_CODE_RETURNS] = LONG_RETURNS * NATIVE_RETURN_BYTES;
	code.words[NATIVE_CODE_STATES] = LONG;
	for (unsigned int i = 0; i < LONG_RETURNS; i++, to += NATIVE_RETURN_BYTES)
		put(to + 16, CALL(i));
	memset(to, NAME(2), LONG);
	memcpy(to, begin, sizeof(begin));
	memcpy(to + LONG - sizeof(end), end, sizeof(end));
	ASSERT_EQ(0, v8_function(v8_version(10, 2), &code, (size_t)(to - (uint8_t *)&code) + LONG,
				 &f));
	ASSERT_EQ(1, expand(&f, CALL(0), NATIVE_RETURN, parts));
	EXPECT_EQ(V8_BYTECODE - 3, parts[0].at);
	ASSERT_EQ(1, expand(&f, CALL(LONG_RETURNS - 1), NATIVE_RETURN, parts));
	EXPECT_EQ(-1, parts[0].at);
	release(&f);
}

/* ---- Positions of instructions ---- */

#define NOTHING 0x90 /* an instruction */
#define CALLS 0xe8 /* another one, with four bytes more */
#define CODE_BYTES 60

/* The inlined call is at character 10. The first position is that of the function. */
static const struct v8_position positions[] = {
	{ .offset = 0, .at = 1, .call = -1 },	{ .offset = 4, .at = 10, .call = -1 },
	{ .offset = 10, .at = 20, .call = 0 },	{ .offset = 20, .at = 25, .call = 0 },
	{ .offset = 30, .at = 12, .call = -1 }, { .offset = 40, .at = 13, .call = -1 },
};

/* Returns what V8 has for a position. */
static uint64_t position_word(const struct v8_position *p)
{
	return (uint64_t)(p->at + 1) << 1 | (uint64_t)(p->call + 1) << 31;
}

/* Writes a number as V8 does in tables of positions. Returns the end. */
static uint8_t *write_number(uint8_t *to, int64_t number)
{
	uint64_t bits = (uint64_t)number << 1 ^ -(uint64_t)(number < 0);

	for (; bits >= 128; bits >>= 7)
		*to++ = (uint8_t)(bits | 128);
	*to++ = (uint8_t)bits;
	return to;
}

/* Writes a table of positions. Returns its end. */
static uint8_t *write_positions(uint8_t *to, const struct v8_position *p, size_t nr)
{
	int64_t offset = -1;
	uint64_t word = 0;

	for (size_t i = 0; i < nr; i++) {
		to = write_number(to, (int64_t)p[i].offset - offset);
		to = write_number(to, (int64_t)(position_word(&p[i]) - word));
		offset = p[i].offset;
		word = position_word(&p[i]);
	}
	return to;
}

/* Makes what is copied of code of @size bytes that has these positions. Returns where its instructions are copied to. */
static uint8_t *begin_positions(struct language_code *code, size_t size,
				const struct v8_position *p, size_t nr)
{
	const struct v8_position inlined = { .at = 10, .call = -1 };
	const uint64_t id = INLINED, word = position_word(&inlined);
	uint8_t *ret;

	*code = (struct language_code){ .id = CODE, .got = { sizeof(id), NATIVE_PART_BYTES } };
	memcpy(code->shorts[0], &id, sizeof(id));
	memcpy(code->shorts[1], &word, sizeof(word));
	code->words[NATIVE_KIND] = NATIVE_MACHINE;
	code->words[NATIVE_CODE_FUNCTION] = OWN;
	code->words[NATIVE_CODE_INLINED] = 1;
	code->words[NATIVE_CODE_EXITS] = size;
	code->words[NATIVE_CODE_SIZE] = size;
	ret = write_positions(code->table, p, nr);
	code->got[2] = (uint32_t)(ret - code->table);
	return ret;
}

/* Takes apart code of @size bytes, of which the first ones were copied. @calls: only calls have positions. */
static void make_positions(size_t size, bool calls, struct language_function *ret)
{
	static struct language_code code;
	uint8_t *to =
		begin_positions(&code, size, positions, sizeof(positions) / sizeof(*positions));

	code.words[NATIVE_CODE_BYTES] = CODE_BYTES;
	memset(to, NOTHING, CODE_BYTES);
	for (size_t i = 1; calls && i < sizeof(positions) / sizeof(*positions); i++)
		memcpy(to + positions[i].offset, (const uint8_t[]){ CALLS, 9, 0, 0, 0 }, 5);
	to += CODE_BYTES;
	if (v8_function(v8_version(11, 3), &code, (size_t)(to - (uint8_t *)&code), ret))
		abort();
}

TEST(what_is_between_two_positions_of_an_inlined_call_is_of_it)
{
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;

	/* Also if only the first bytes were copied. */
	for (size_t size = CODE_BYTES; size <= 2 * NATIVE_CODE;
	     size += 2 * NATIVE_CODE - CODE_BYTES) {
		make_positions(size, false, &f);
		ASSERT_EQ(2, expand(&f, 15, 0, parts));
		EXPECT_EQ(INLINED, parts[0].id);
		EXPECT_EQ(20, parts[0].at);
		EXPECT_EQ(OWN, parts[1].id);
		EXPECT_EQ(10, parts[1].at);
		ASSERT_EQ(1, expand(&f, 35, 0, parts));
		EXPECT_EQ(OWN, parts[0].id);
		EXPECT_EQ(12, parts[0].at);
		/* What returns there was called before it. */
		ASSERT_EQ(2, expand(&f, 20, NATIVE_RETURN, parts));
		EXPECT_EQ(20, parts[0].at);
		release(&f);
	}
}

TEST(between_positions_of_different_calls_and_behind_the_last_one_nothing_is_told)
{
	const int places[] = { 5, 9, 20, 25, 29, 40, 59 };
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;

	make_positions(CODE_BYTES, false, &f);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		ASSERT_EQ(2, expand(&f, places[i], 0, parts));
		EXPECT_EQ(CODE, parts[0].id);
		EXPECT_EQ(-1, parts[1].at);
	}
	release(&f);
}

TEST(where_only_calls_have_positions_other_instructions_are_not_told)
{
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;

	make_positions(CODE_BYTES, true, &f);
	for (int at = 0; at < CODE_BYTES; at++) {
		ASSERT_EQ(2, expand(&f, at, 0, parts));
		EXPECT_EQ(CODE, parts[0].id);
		EXPECT_EQ(-1, parts[1].at);
	}
	release(&f);
}

/* Code of the middle compiler: two of its operations are no instructions. */
static const struct v8_position operations[] = {
	{ .offset = 4, .at = 1, .call = -1 },	{ .offset = 4, .at = 1, .call = -1 },
	{ .offset = 10, .at = 20, .call = 0 },	{ .offset = 20, .at = 20, .call = 0 },
	{ .offset = 30, .at = 12, .call = -1 }, { .offset = 40, .at = 13, .call = -1 },
};

/* Takes apart code of that compiler that has the first @nr operations, but for the first @without. */
static void make_operations(size_t without, size_t nr, struct language_function *ret)
{
	static struct language_code code;
	const uint8_t *end = begin_positions(&code, CODE_BYTES, operations + without, nr - without);

	code.words[NATIVE_CODE_MIDDLE] = 1;
	if (v8_function(v8_version(13, 6), &code, (size_t)(end - (uint8_t *)&code), ret))
		abort();
}

TEST(code_of_the_middle_compiler_is_of_one_operation_after_the_other)
{
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;

	make_operations(0, 6, &f);
	for (int at = 10; at < 20; at++) {
		ASSERT_EQ(2, expand(&f, at, 0, parts));
		EXPECT_EQ(INLINED, parts[0].id);
		EXPECT_EQ(20, parts[0].at);
		EXPECT_EQ(OWN, parts[1].id);
		EXPECT_EQ(10, parts[1].at);
	}
	ASSERT_EQ(1, expand(&f, 30, 0, parts));
	EXPECT_EQ(OWN, parts[0].id);
	EXPECT_EQ(12, parts[0].at);
	/* A call that has no state is of the operation in front of where it returns to. */
	ASSERT_EQ(1, expand(&f, 40, NATIVE_RETURN, parts));
	EXPECT_EQ(12, parts[0].at);
	/* Between operations of two functions there are moves that may be of either; what is behind all is of any. */
	for (int at = 20; at < 30; at++) {
		ASSERT_EQ(2, expand(&f, at, 0, parts));
		EXPECT_EQ(CODE, parts[0].id);
		EXPECT_EQ(-1, parts[1].at);
	}
	ASSERT_EQ(2, expand(&f, 40, 0, parts));
	EXPECT_EQ(CODE, parts[0].id);
	release(&f);
}

TEST(code_of_the_middle_compiler_without_all_positions_is_not_told)
{
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;

	/* As it is if only calls have one, or none of an inlined function has. */
	for (size_t i = 0; i < 2; i++) {
		make_operations(i ? 0 : 1, i ? 2 : 6, &f);
		for (int at = 0; at < CODE_BYTES; at++) {
			ASSERT_EQ(2, expand(&f, at, 0, parts));
			EXPECT_EQ(CODE, parts[0].id);
			EXPECT_EQ(-1, parts[1].at);
		}
		release(&f);
	}
}

/* ---- Tables that were not copied whole ---- */

TEST(what_follows_a_table_of_positions_that_was_cut_has_none)
{
	static struct language_code code = { .id = OWN };
	const size_t size = NATIVE_TABLE - 1;
	struct language_entry entry = { .id = OWN, .at = 5, .flags = NATIVE_INTERPRETED };
	struct language_part parts[LANGUAGE_PARTS];
	struct language_function f;
	const struct language_frame frame = { &entry, &f };

	/* Each byte of code has the character of that number. */
	for (size_t i = 0; i < size; i++)
		code.table[i] = i % 2 ? 4 : 2;
	code.words[NATIVE_KIND] = NATIVE_INTERPRETED;
	code.got[2] = size;
	ASSERT_EQ(0, v8_function(v8_version(10, 2), &code,
				 offsetof(struct language_code, table) + size, &f));
	ASSERT_EQ(1, v8_expand(&frame, parts, LANGUAGE_PARTS));
	EXPECT_EQ(5, parts[0].at);
	entry.at = (int)size;
	ASSERT_EQ(1, v8_expand(&frame, parts, LANGUAGE_PARTS));
	EXPECT_EQ(-1, parts[0].at);
	release(&f);
}

/* ---- The first compiler ---- */

/* A bytecode of one byte, one of two whose operand a prefix makes twice as wide, and one of three. */
static const uint8_t bytecodes[] = { 14, 0, 11, 1, 2, 35, 3, 4 };

/* Four bytes of code come first. The second bytecode has none. */
static const uint8_t bytes_of_code[] = { 4, 5, 0, 0x82, 1 };

/* Takes apart what is copied of such code. */
static void make_baseline(const uint8_t *table, size_t table_size, size_t bytecodes_size,
			  const struct v8_version *version, struct language_function *ret)
{
	static struct language_code code;

	code = (struct language_code){ .id = CODE, .got = { 0, 0, (__u32)table_size } };
	code.words[NATIVE_KIND] = NATIVE_BASELINE;
	code.words[NATIVE_CODE_FUNCTION] = OWN;
	code.words[NATIVE_CODE_POSITIONS_LENGTH] = table_size;
	code.words[NATIVE_CODE_SIZE] = code.words[NATIVE_CODE_BYTES] = bytecodes_size;
	memcpy(code.table, table, table_size);
	memcpy(code.table + table_size, bytecodes, bytecodes_size);
	if (v8_function(version, &code,
			offsetof(struct language_code, table) + table_size + bytecodes_size, ret))
		abort();
}

/* Returns the bytecode at which code is; -1: it is not known. */
static int bytecode_at(const struct language_function *f, int at, unsigned int flags)
{
	const struct language_entry entry = { .id = CODE,
					      .at = at,
					      .flags = NATIVE_BASELINE | flags };
	const struct language_frame frame = { &entry, f };
	struct language_part parts[LANGUAGE_PARTS];

	if (v8_expand(&frame, parts, LANGUAGE_PARTS) != 1 || parts[0].id != OWN)
		abort();
	return parts[0].at <= V8_BYTECODE ? V8_BYTECODE - parts[0].at : parts[0].at;
}

TEST(code_of_the_first_compiler_is_of_one_bytecode_after_the_other)
{
	static const int versions[][2] = { { 10, 2 }, { 11, 3 }, { 12, 4 }, { 13, 6 } };
	struct language_function f;

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		make_baseline(bytes_of_code, sizeof(bytes_of_code), sizeof(bytecodes),
			      v8_version(versions[i][0], versions[i][1]), &f);
		EXPECT_EQ(-1, bytecode_at(&f, 0, 0));
		EXPECT_EQ(-1, bytecode_at(&f, 3, 0));
		EXPECT_EQ(0, bytecode_at(&f, 4, 0));
		EXPECT_EQ(0, bytecode_at(&f, 8, 0));
		EXPECT_EQ(5, bytecode_at(&f, 9, 0));
		EXPECT_EQ(5, bytecode_at(&f, 138, 0));
		release(&f);
	}
}

TEST(a_call_that_ends_the_code_of_a_bytecode_is_of_that_one)
{
	struct language_function f;

	make_baseline(bytes_of_code, sizeof(bytes_of_code), sizeof(bytecodes), v8_version(11, 3),
		      &f);
	EXPECT_EQ(-1, bytecode_at(&f, 4, NATIVE_RETURN));
	EXPECT_EQ(0, bytecode_at(&f, 5, NATIVE_RETURN));
	EXPECT_EQ(0, bytecode_at(&f, 9, NATIVE_RETURN));
	EXPECT_EQ(5, bytecode_at(&f, 10, NATIVE_RETURN));
	release(&f);
}

TEST(a_table_that_is_not_of_the_bytecode_tells_nothing)
{
	struct language_function f;

	for (size_t table = 0; table < sizeof(bytes_of_code); table++) {
		make_baseline(bytes_of_code, table, sizeof(bytecodes), v8_version(11, 3), &f);
		EXPECT_EQ(-1, bytecode_at(&f, 4, 0));
		release(&f);
	}
	for (size_t size = 0; size < sizeof(bytecodes); size++) {
		make_baseline(bytes_of_code, sizeof(bytes_of_code), size, v8_version(11, 3), &f);
		EXPECT_EQ(-1, bytecode_at(&f, 4, 0));
		release(&f);
	}
}

TEST_HARNESS_MAIN
