// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stack_test.c - how much of the program's stack a capture takes: on a coroutine's
 * stack, also the first one of the process, in a handler, of code of all kinds.
 *
 * Each way runs twice on a stack full of a pattern, once with and once without the
 * capture; the difference of what was overwritten is what the capture took.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "truth.h"

#define STACK_BYTES (256 << 10)
#define PATTERN 0xa5
/* Code that is not optimised has larger frames: gcc 12 and -O0 take 3,248 bytes. */
#ifdef __OPTIMIZE__
#define NEED SHSTK_STACK_NEED
#else
#define NEED (3 * SHSTK_STACK_NEED)
#endif

static uint64_t pcs[256];
static ucontext_t outside, inside;
static void (*way)(void);
static bool with_capture, in_handler;
static int entries;

static void plain(void)
{
	if (with_capture)
		entries = shstk_capture(pcs, 256, NULL, NULL);
}

static void walk_all(void)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = { .size = sizeof(opts), .sources = SHSTK_USE_WALK };

	if (with_capture)
		entries = shstk_capture(pcs, 256, &opts, &info);
}

static void identity(void)
{
	uint64_t id;

	if (with_capture)
		entries = shstk_capture_id(pcs, 256, NULL, &id);
}

static void on_signal(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	if (with_capture)
		entries = shstk_capture_context(uc, pcs, 256, NULL, NULL);
}

static void handler(void)
{
	raise(SIGUSR1);
}

/* Captures in a function that the C library calls back. */
static int compare(const void *a, const void *b)
{
	if (in_handler) {
		in_handler = false;
		raise(SIGUSR1);
	}
	return *(const int *)a - *(const int *)b;
}

static void called_back(void)
{
	int number[] = { 3, 2, 1, 0 };

	in_handler = true;
	qsort(number, 4, sizeof(number[0]), compare);
}

static void on_stack(void)
{
	way();
}

/* Returns how many bytes of a fresh stack were changed. */
static size_t used(bool capture)
{
	uint8_t *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i = 0;

	if (stack == MAP_FAILED)
		return SIZE_MAX;
	memset(stack, PATTERN, STACK_BYTES);
	with_capture = capture;
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, on_stack, 0);
	swapcontext(&outside, &inside);
	while (i < STACK_BYTES && stack[i] == PATTERN)
		i++;
	munmap(stack, STACK_BYTES);
	return STACK_BYTES - i;
}

FIXTURE(stack)
{
	int dummy;
};

FIXTURE_VARIANT(stack)
{
	void (*way)(void);
	size_t more; /* bytes allowed beyond NEED */
};

FIXTURE_VARIANT_ADD(stack, capture){ .way = plain };
FIXTURE_VARIANT_ADD(stack, walk){ .way = walk_all };
FIXTURE_VARIANT_ADD(stack, identity){ .way = identity, .more = 128 };
FIXTURE_VARIANT_ADD(stack, handler){ .way = handler };
FIXTURE_VARIANT_ADD(stack, callback){ .way = called_back };

FIXTURE_SETUP(stack)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &act, NULL);
	way = variant->way;
}

FIXTURE_TEARDOWN(stack)
{
}

/*
 * The harness runs each variant in a process of its own, so the first capture here is the first of
 * its process.
 */
TEST_F(stack, is_left_to_the_program)
{
	size_t without, most = 0;

	used(false); /* this run makes the loader bind what is bound at the first call */
	without = used(false);
	for (int i = 0; i < 10; i++) {
		size_t now = used(true);

		ASSERT_NE(now, SIZE_MAX);
		if (now > most)
			most = now;
	}
	EXPECT_GE(entries, 2);
	TH_LOG("%zu bytes", most - without);
	EXPECT_LE(most - without, NEED + variant->more);
}

TEST_HARNESS_MAIN
