// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * guesses_test.c - frames that only a guess leaves are kept in the thread's last trace, and what is
 * kept is what a walk finds.
 *
 * The cost is counted in steps of the general walker, which the linker has pass by here.
 */
#include <alloca.h>
#include <stdint.h>
#include <string.h>

#include "cursor.h"
#include "shstk.h"

#include "kselftest_harness.h"

#define NOINLINE __attribute__((noinline, noclone))
#define ENTRIES 256
#define DEPTH 40
#define CAPTURES 20000

typedef long (*callback)(long x);
typedef long (*function)(callback f, long x);

long noinfo_frame(callback f, long x);
long noinfo_leave(callback f, long x);
long noinfo_push(callback f, long x);

int __real_cursor_step(const struct view *v, struct cursor *c, uint8_t *mark);
int __wrap_cursor_step(const struct view *v, struct cursor *c, uint8_t *mark);

static unsigned int steps;

int __wrap_cursor_step(const struct view *v, struct cursor *c, uint8_t *mark)
{
	steps++;
	return __real_cursor_step(v, c, mark);
}

/* A frame with unwind information, and one whose stack pointer is aligned at run time. */
static NOINLINE long described(callback f, long x)
{
	volatile long more = 1;

	return f(x) + more;
}

static NOINLINE long aligned(callback f, long x)
{
	_Alignas(64) volatile char room[64];
	volatile char *some = alloca((size_t)(x % 7 + 1) * 16);

	room[0] = some[0] = 1;
	return f(x) + room[0];
}

static const function functions[] = { noinfo_frame, noinfo_push, noinfo_leave, described, aligned };

#define KINDS (sizeof(functions) / sizeof(*functions))

struct trace {
	int n;
	uint64_t pcs[ENTRIES];
	uint8_t marks[ENTRIES];
	struct shstk_info info;
};

/* Captures from one place: the entries of two traces made here differ in the first one only. */
static NOINLINE void take(struct trace *t, uint32_t sources)
{
	struct shstk_opts opts = { .size = sizeof(opts), .sources = sources, .marks = t->marks };

	t->info = (struct shstk_info){ .size = sizeof(t->info) };
	t->n = shstk_capture(t->pcs, ENTRIES, &opts, &t->info);
}

static bool equal(const struct trace *a, const struct trace *b)
{
	size_t n = a->n - 2;

	return a->n > 2 && a->n == b->n && !memcmp(a->pcs + 2, b->pcs + 2, n * sizeof(*a->pcs)) &&
	       !memcmp(a->marks + 2, b->marks + 2, n) && a->info.end == b->info.end &&
	       a->info.guessed == b->info.guessed;
}

static struct {
	struct trace walked, kept;
	unsigned int first_steps, steps;
	int equal;
} seen;

static long again_and_again(long x)
{
	take(&seen.walked, SHSTK_USE_WALK);
	for (int i = 0; i < 8; i++) {
		steps = 0;
		take(&seen.kept, SHSTK_USE_MEMO | SHSTK_USE_WALK);
		if (!i)
			seen.first_steps = steps;
		seen.equal += equal(&seen.walked, &seen.kept);
	}
	seen.steps = steps;
	return x;
}

/* Calls itself through functions of kind @which, or of all kinds by turns, and then captures. */
static size_t which;

static NOINLINE long nest(long x)
{
	volatile long one = 1;
	function f = functions[which < KINDS ? which : (size_t)x % KINDS];

	return (x ? f(nest, x - 1) : again_and_again(x)) + one;
}

static void deep(struct __test_metadata *_metadata, size_t kind)
{
	which = kind;
	nest(DEPTH);
	EXPECT_EQ(seen.kept.info.end, SHSTK_END_COMPLETE);
	EXPECT_EQ(seen.equal, 8);
	/* The first capture left each of the frames that are no ordinary ones by such a step. */
	EXPECT_GE(seen.first_steps, DEPTH / 3);
	EXPECT_EQ(seen.steps, 0);
	EXPECT_GE(seen.kept.info.reused, seen.kept.n - 3);
}

TEST(frames_without_information_are_guessed_once)
{
	deep(_metadata, 1);
	EXPECT_GE(seen.kept.info.guessed, DEPTH);
}

TEST(frames_without_information_that_keep_a_record_are_guessed_once)
{
	deep(_metadata, 0);
	EXPECT_GE(seen.kept.info.guessed, DEPTH);
}

TEST(frames_of_all_kinds_are_left_once)
{
	deep(_metadata, KINDS);
}

/* ---- Random trees of calls ---- */

static struct {
	uint64_t random;
	int captures, differ, reused, guessed;
} tree;

static unsigned int draw(unsigned int n)
{
	tree.random = tree.random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(tree.random >> 33) % n;
}

static NOINLINE long branch(long x)
{
	static struct trace kept, walked;
	volatile long sum = x;

	while (tree.captures < CAPTURES && draw(16)) {
		if (x && draw(3)) {
			sum += functions[draw(KINDS)](branch, x - 1);
			continue;
		}
		take(&kept, SHSTK_USE_MEMO | SHSTK_USE_WALK);
		take(&walked, SHSTK_USE_WALK);
		tree.differ += !equal(&kept, &walked);
		tree.reused += kept.info.reused;
		tree.guessed += kept.info.guessed;
		tree.captures++;
	}
	return sum;
}

TEST(over_random_trees_of_calls_what_is_kept_is_what_a_walk_finds)
{
	tree.random = 31;
	while (tree.captures < CAPTURES)
		branch(DEPTH);
	EXPECT_EQ(tree.differ, 0);
	EXPECT_GE(tree.guessed, 4 * CAPTURES);
	EXPECT_GE(tree.reused, 4 * CAPTURES);
}

/* ---- Words that a guess looks at, and that no frame was returned to by ---- */

#ifdef __x86_64__
long stale_stray(callback f, uint64_t value);
long stale_part(callback f, uint64_t value);
long stale_pointer(callback f, uint64_t value);

static struct trace stale_kept, stale_walked;

static long take_both(long x)
{
	take(&stale_kept, SHSTK_USE_MEMO | SHSTK_USE_WALK);
	take(&stale_walked, SHSTK_USE_WALK);
	return x & 0;
}

/* Returns a return address that may be left over on the stack. */
static NOINLINE uint64_t old_address(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

TEST(a_word_that_changes_changes_the_guess_as_in_a_walk)
{
	long (*const f[])(callback f, uint64_t value) = { stale_stray, stale_part, stale_pointer };
	uint64_t (*volatile indirect)(void) = old_address;
	uint64_t local, value[] = { 0,
				    1,
				    -1,
				    old_address(),
				    indirect(),
				    (uintptr_t)take_both,
				    (uintptr_t)&local & -16,
				    0x7000 };
	const unsigned int values = sizeof(value) / sizeof(*value);
	int differ = 0;

	tree.random = 7;
	for (int i = 0; i < 3 * CAPTURES / 10; i++) {
		f[draw(3)](take_both, value[draw(values)]);
		differ += !equal(&stale_kept, &stale_walked);
	}
	EXPECT_EQ(differ, 0);
}
#endif

TEST_HARNESS_MAIN
