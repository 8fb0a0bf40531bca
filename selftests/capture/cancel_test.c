// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cancel_test.c - no capture is a cancellation point: a thread whose cancellation is
 * pending goes through its first captures, of modules nobody has met, and dies where
 * it would have without.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "truth.h"

static uint64_t pcs[256];
static int entries, saved_errno;
static bool came_through;

static void plain(void)
{
	entries = shstk_capture(pcs, 256, NULL, NULL);
}

static void full_walk(void)
{
	struct shstk_opts opts = { .size = sizeof(opts), .sources = SHSTK_USE_WALK };

	/* The library looks at every module again. */
	shstk_modules_changed();
	entries = shstk_capture(pcs, 256, &opts, NULL);
}

static void on_signal(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	entries = shstk_capture_context(uc, pcs, 256, NULL, NULL);
}

static void in_handler(void)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &act, NULL);
	raise(SIGUSR1);
}

static void state(void)
{
	entries = shstk_thread_init() ? -1 : 2;
}

static void identity(void)
{
	uint64_t id;

	entries = shstk_capture_id(pcs, 256, NULL, &id);
}

static void status(void)
{
	struct shstk_stack stack;
	uint64_t now;

	/*
	 * Without shadow stacks these two calls fail, but they must not be cancellation points
	 * either.
	 */
	shstk_status_get(&now);
	if (!shstk_stack_map(4096, SHSTK_STACK_TOKEN, &stack))
		munmap((void *)(uintptr_t)stack.base, stack.size);
	entries = 2;
}

static void *body(void *arg)
{
	void (*capture)(void) = (void (*)(void))arg;

	pthread_cancel(pthread_self());
	errno = 77;
	capture();
	saved_errno = errno;
	came_through = true;
	pthread_testcancel();
	return NULL;
}

FIXTURE(cancel)
{
	int dummy;
};

FIXTURE_VARIANT(cancel)
{
	void (*capture)(void);
};

FIXTURE_VARIANT_ADD(cancel, capture){ .capture = plain };
FIXTURE_VARIANT_ADD(cancel, modules_again){ .capture = full_walk };
FIXTURE_VARIANT_ADD(cancel, handler){ .capture = in_handler };
FIXTURE_VARIANT_ADD(cancel, thread_init){ .capture = state };
FIXTURE_VARIANT_ADD(cancel, identity){ .capture = identity };
FIXTURE_VARIANT_ADD(cancel, control){ .capture = status };

FIXTURE_SETUP(cancel)
{
}
FIXTURE_TEARDOWN(cancel)
{
}

/* Each variant runs in a process of its own, in which the library has not met any module yet. */
TEST_F(cancel, is_left_pending)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(pthread_create(&thread, NULL, body, (void *)variant->capture), 0);
	ASSERT_EQ(pthread_join(thread, &result), 0);
	EXPECT_TRUE(came_through);
	EXPECT_EQ(result, PTHREAD_CANCELED);
	EXPECT_GE(entries, 2);
	EXPECT_EQ(saved_errno, 77);
}

TEST_HARNESS_MAIN
