// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * place_test.c - where functions stand that have native frames of their own, where a frame may have become the
 * innermost one just now, and where a native stack begins, with stacks of the test's own.
 *
 * A frame's flags are what it is (enum language_kind), and its function is the one in its number. The native
 * function at an address begins at the multiple of 16 in front of it.
 */
#include <string.h>

#include "libshstk/shstk.h"
#include "tools/language/place.h"

#include "kselftest_harness.h"

#define MOST 1024 /* entries */
#define RUN 0x10 /* the function that runs rows of frames */
#define CODE 0x1000 /* other native code */
#define MAP 0x2000 /* native functions that frames have */
#define EACH 0x2010
#define BEGIN 0x3000 /* stands for a frame at which a native stack begins */
#define NAMES 2

static const struct language_function functions[NAMES] = {
	{ .name = (char *)"map", .address = MAP },
	{ .name = (char *)"each", .address = EACH },
};

static struct language_entry entries[MOST];
static struct language_frame frames[MOST];
static uint64_t pcs[MOST], sps[MOST];
static uint8_t marks[MOST];
static int order[2 * MOST];
static unsigned int nr_frames, nr_natives, left_out;
static bool published, begun, unsure, folded; /* what the language was told */

static unsigned int kind(const void *version, const struct language_frame *frame)
{
	(void)version;
	return frame->entry->flags;
}

static bool sound(const void *version, const struct language_frames *of)
{
	(void)version;
	published = of->published;
	begun = of->begun;
	unsure = of->unsure;
	folded = of->left_out;
	return true;
}

static uint64_t begin_of(void *arg, uint64_t pc)
{
	(void)arg;
	return pc & ~15ull;
}

/* Returns what a frame of that function is; 0: one of Ruby that ends a row. */
static unsigned int kind_of(uint64_t function)
{
	if (!function)
		return LANGUAGE_SHOWN | LANGUAGE_LAST;
	return function == BEGIN ? LANGUAGE_BEGIN : LANGUAGE_NATIVE;
}

/* Adds a frame of Ruby that ends a row, or with the address of a function one of that. */
static void add_frame(uint64_t function)
{
	entries[nr_frames] = (struct language_entry){
		.addr = 1 + nr_frames,
		.flags = kind_of(function),
	};
	frames[nr_frames] =
		(struct language_frame){ &entries[nr_frames], &functions[function == EACH] };
	nr_frames++;
}

/* Adds a native frame: a return address in the function at that address. */
static void add_native(uint64_t function)
{
	sps[nr_natives] = nr_natives;
	pcs[nr_natives++] = function + 1;
}

/* Makes the stack with these functions, each the innermost first, 0 ends them. */
static void make(const uint64_t *native, const uint64_t *of_frames)
{
	nr_frames = nr_natives = 0;
	for (; *native; native++)
		add_native(*native);
	for (; *of_frames; of_frames++)
		add_frame(*of_frames == RUN ? 0 : *of_frames);
}

static unsigned int place_in(const struct language_found *found,
			     uint64_t (*function)(void *, uint64_t))
{
	static const struct language language = { .kind = kind, .sound = sound };
	const struct native_stack native = {
		.pcs = pcs,
		.marks = marks,
		.sps = sps,
		.nr = nr_natives,
		.function = function,
	};
	struct language_frames all = { .frames = frames, .nr = nr_frames, .left_out = left_out };

	return place_frames(&native, &language, found, &all, order);
}

static unsigned int place_by(uint64_t (*function)(void *, uint64_t))
{
	static const struct language_found found = {
		.run_start = RUN,
		.run_end = RUN + 16,
		.counted = true,
	};

	return place_in(&found, function);
}

static unsigned int place(void)
{
	return place_by(begin_of);
}

#define EXPECT_ORDER(...)                                             \
	do {                                                          \
		const int wanted[] = { __VA_ARGS__ };                 \
                                                                      \
		ASSERT_EQ(sizeof(wanted) / sizeof(*wanted), place()); \
		EXPECT_EQ(0, memcmp(wanted, order, sizeof(wanted)));  \
	} while (0)

#define LIST(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

TEST(each_stands_before_its_native_frame)
{
	make(LIST(CODE, EACH, CODE, MAP, CODE, RUN, CODE), LIST(EACH, MAP, RUN));
	EXPECT_ORDER(0, 1, ~0, 2, 3, ~1, 4, ~2, 6);
}

TEST(one_without_a_native_frame_is_not_shown)
{
	make(LIST(CODE, MAP, CODE, RUN), LIST(EACH, MAP, RUN));
	EXPECT_ORDER(0, 1, ~1, 2, ~2);
}

TEST(one_whose_native_function_is_called_otherwise_too_is_not_shown)
{
	make(LIST(EACH, CODE, EACH, MAP, RUN), LIST(EACH, MAP, RUN));
	EXPECT_ORDER(0, 1, 2, 3, ~1, ~2);
}

TEST(one_that_calls_itself_is_shown_each_time)
{
	make(LIST(EACH, CODE, EACH, MAP, EACH, RUN), LIST(EACH, EACH, MAP, EACH, RUN));
	EXPECT_ORDER(0, ~0, 1, 2, ~1, 3, ~2, 4, ~3, ~4);
}

TEST(none_is_shown_if_they_are_in_another_order)
{
	make(LIST(EACH, MAP, RUN), LIST(MAP, EACH, RUN));
	EXPECT_ORDER(0, 1, ~2);
}

TEST(each_is_looked_for_between_its_own_rows_only)
{
	make(LIST(MAP, RUN, EACH, MAP, RUN), LIST(EACH, RUN, MAP, RUN));
	EXPECT_ORDER(0, ~1, 2, 3, ~2, ~3);
}

TEST(outside_of_all_rows_they_are_shown_too)
{
	make(LIST(RUN, EACH, CODE), LIST(RUN, EACH));
	EXPECT_ORDER(~0, 1, ~1, 2);
	make(LIST(RUN, CODE), LIST(RUN, EACH));
	EXPECT_ORDER(~0, 1);
}

TEST(none_is_shown_where_functions_do_not_tell_where_they_begin)
{
	make(LIST(EACH, RUN), LIST(EACH, RUN));
	ASSERT_EQ(2, place_by(NULL));
	EXPECT_EQ(0, order[0]);
	EXPECT_EQ(~1, order[1]);
}

/* Those frames are copies of others, of which it is not known which function in C they have. */
TEST(none_is_shown_in_the_middle_of_a_deep_stack)
{
	make(LIST(EACH, RUN, EACH, RUN), LIST(EACH, RUN, EACH, RUN));
	entries[2].addr = 0;
	EXPECT_ORDER(0, ~0, ~1, 2, ~3);
}

TEST(none_is_shown_of_more_than_are_looked_at)
{
	make(LIST(CODE), LIST(MAP));
	nr_natives = nr_frames = 0;
	for (int i = 0; i < 40; i++) {
		add_native(EACH);
		add_frame(EACH);
	}
	add_native(RUN);
	add_frame(0);
	ASSERT_EQ(41, place());
	EXPECT_EQ(~40, order[40]);
	for (int i = 0; i < 40; i++)
		EXPECT_EQ(i, order[i]);
}

TEST(none_is_shown_among_more_native_frames_than_are_looked_at)
{
	nr_natives = nr_frames = 0;
	add_native(EACH);
	while (nr_natives < 600)
		add_native(CODE);
	add_native(RUN);
	add_frame(EACH);
	add_frame(0);
	ASSERT_EQ(601, place());
	EXPECT_EQ(1, order[1]);
	EXPECT_EQ(~1, order[600]);
}

/* ---- Where a frame becomes the innermost one ---- */

/* Returns what the language is told of a thread that has its program counter there. */
static bool is_published_at(const struct language_found *found, uint64_t pc)
{
	make(LIST(CODE, RUN), LIST(RUN));
	pcs[0] = pc;
	marks[0] = SHSTK_MARK_PC;
	place_in(found, NULL);
	marks[0] = 0;
	return published;
}

#define FIRST (CODE + 0x100)
#define SECOND (CODE + 0x800)
#define COLD (SECOND + 0x10)

static const struct language_found publishing = {
	.run_start = RUN,
	.run_end = RUN + 16,
	.cold_start = COLD,
	.cold_end = COLD + 0x10,
	.counted = true,
	.publishes = true,
	.publishing = { FIRST, SECOND },
	.nr_publishing = 2,
};

TEST(a_frame_may_be_the_innermost_one_since_just_now_shortly_behind_known_places)
{
	EXPECT_FALSE(is_published_at(&publishing, FIRST - 1));
	EXPECT_TRUE(is_published_at(&publishing, FIRST));
	EXPECT_TRUE(is_published_at(&publishing, FIRST + LANGUAGE_PUBLISHING_BYTES - 1));
	EXPECT_FALSE(is_published_at(&publishing, FIRST + LANGUAGE_PUBLISHING_BYTES));
	EXPECT_TRUE(is_published_at(&publishing, SECOND));
	EXPECT_FALSE(is_published_at(&publishing, RUN));
	/* The other part of the function that runs frames. */
	EXPECT_TRUE(is_published_at(&publishing, COLD - 1));
	EXPECT_FALSE(is_published_at(&publishing, COLD));
	EXPECT_TRUE(is_published_at(&publishing, COLD + 0x10));
}

TEST(if_places_are_not_known_it_may_be_so_anywhere_else)
{
	struct language_found found = publishing;

	found.nr_publishing = LANGUAGE_PUBLISHING + 1;
	EXPECT_TRUE(is_published_at(&found, FIRST - 1));
	EXPECT_FALSE(is_published_at(&found, RUN));
	EXPECT_FALSE(is_published_at(&found, COLD));
	found.publishes = false;
	EXPECT_FALSE(is_published_at(&found, FIRST));
}

TEST(what_a_signal_has_interrupted_counts_and_return_addresses_do_not)
{
	make(LIST(CODE, CODE, RUN), LIST(RUN));
	pcs[1] = FIRST;
	place_in(&publishing, NULL);
	EXPECT_FALSE(published);
	marks[1] = SHSTK_MARK_PC;
	place_in(&publishing, NULL);
	EXPECT_TRUE(published);
	marks[1] = 0;
}

/* ---- Native stacks that begin ---- */

TEST(frames_behind_the_one_at_which_the_native_stack_begins_are_of_another_one)
{
	make(LIST(CODE, RUN, CODE), LIST(RUN, BEGIN, RUN, RUN));
	EXPECT_ORDER(0, ~0, 2);
	EXPECT_TRUE(begun);
	make(LIST(CODE, RUN, CODE), LIST(RUN));
	EXPECT_ORDER(0, ~0, 2);
	EXPECT_FALSE(begun);
	make(LIST(CODE, CODE), LIST(BEGIN, RUN));
	EXPECT_EQ(0, place());
}

TEST(behind_frames_that_are_not_known_a_native_stack_may_have_begun_before)
{
	make(LIST(CODE, RUN, CODE), LIST(MAP, MAP, RUN, BEGIN, RUN));
	left_out = 1;
	place();
	EXPECT_FALSE(begun);
	EXPECT_TRUE(folded);
	left_out = 4;
	place();
	EXPECT_TRUE(begun);
	EXPECT_FALSE(folded);
	left_out = 0;
}

TEST(in_functions_that_go_on_with_another_stack_and_what_they_call_lists_are_unsure)
{
	static const struct language_found found = {
		.run_start = RUN,
		.run_end = RUN + 16,
		.switches = { { FIRST, SECOND } },
		.counted = true,
	};

	make(LIST(CODE, FIRST, RUN), LIST(RUN));
	place_in(&found, NULL);
	EXPECT_TRUE(unsure);
	pcs[1] = SECOND; /* the call is the last instruction */
	place_in(&found, NULL);
	EXPECT_TRUE(unsure);
	marks[1] = SHSTK_MARK_PC;
	place_in(&found, NULL);
	EXPECT_FALSE(unsure);
	marks[1] = 0;
	pcs[1] = FIRST;
	place_in(&found, NULL);
	EXPECT_FALSE(unsure);
}

TEST_HARNESS_MAIN
