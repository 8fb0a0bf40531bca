// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symbolize_test.c - shstk_go_symbolize(), called by C as Go's runtime calls it.
 */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "libshstk/shstk_go_symbolize.h"

#define NOINLINE __attribute__((noinline))

struct symbolizer {
	uintptr_t pc;
	const char *file;
	uintptr_t lineno;
	const char *func;
	uintptr_t entry, more, data;
};

static uintptr_t here;
static int line_here, line_call;

/* Returns the address in its caller to which it returns. */
NOINLINE static uintptr_t call_address(void)
{
	return (uintptr_t)__builtin_return_address(0) - 1;
}

static inline __attribute__((always_inline)) void inlined(void)
{
	line_here = __LINE__ + 1;
	here = call_address();
}

NOINLINE static void around(void)
{
	line_call = __LINE__ + 1;
	inlined();
}

static bool ends_with(const char *text, const char *end)
{
	return text && strlen(text) >= strlen(end) &&
	       !strcmp(text + strlen(text) - strlen(end), end);
}

/* Returns the function that an address is in, without inlined ones. */
static struct symbolizer ask(uintptr_t pc)
{
	struct symbolizer arg = { .pc = pc };
	int i;

	shstk_go_symbolize(&arg);
	for (i = 0; arg.more && i < 100; i++)
		shstk_go_symbolize(&arg);
	return arg;
}

TEST(nothing_is_known_before_the_start)
{
	struct symbolizer arg = { .pc = (uintptr_t)around, .func = "unchanged", .more = 1 };

	shstk_go_symbolize(&arg);
	EXPECT_EQ(arg.func, NULL);
	EXPECT_EQ(arg.more, 0);
}

FIXTURE(names){};

FIXTURE_SETUP(names)
{
	ASSERT_EQ(shstk_go_symbolize_start(), 0);
	around();
}

FIXTURE_TEARDOWN(names)
{
}

TEST_F(names, further_starts_do_nothing)
{
	EXPECT_EQ(shstk_go_symbolize_start(), 0);
}

TEST_F(names, a_function_has_its_file_line_and_entry)
{
	struct symbolizer arg = ask((uintptr_t)around);

	EXPECT_STREQ(arg.func, "around");
	EXPECT_TRUE(ends_with(arg.file, "/selftests/go/symbolize_test.c")) TH_LOG("%s", arg.file);
	EXPECT_LT(line_call - 5, (int)arg.lineno);
	EXPECT_LE((int)arg.lineno, line_call);
	EXPECT_EQ(arg.entry, (uintptr_t)around);
	EXPECT_EQ(arg.data, 0);
}

TEST_F(names, what_is_inlined_comes_first)
{
	struct symbolizer arg = { .pc = here };

	shstk_go_symbolize(&arg);
	EXPECT_STREQ(arg.func, "inlined");
	EXPECT_EQ((int)arg.lineno, line_here);
	ASSERT_NE(arg.more, 0);
	shstk_go_symbolize(&arg);
	EXPECT_STREQ(arg.func, "around");
	EXPECT_EQ((int)arg.lineno, line_call);
	EXPECT_EQ(arg.more, 0);
	EXPECT_EQ(arg.data, 0);
}

TEST_F(names, a_library_is_looked_up_too)
{
	struct symbolizer arg = ask((uintptr_t)getpid);

	ASSERT_NE(arg.func, NULL);
	EXPECT_NE(strstr(arg.func, "getpid"), NULL) TH_LOG("%s", arg.func);
}

TEST_F(names, where_there_is_no_file_there_is_no_name)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t addresses[] = { 0, 1, (uintptr_t)page, (uintptr_t)&page, UINTPTR_MAX };

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct symbolizer arg = ask(addresses[i]);

		EXPECT_EQ(arg.func, NULL) TH_LOG("%#lx: %s", addresses[i], arg.func);
		EXPECT_EQ(arg.file, NULL);
		EXPECT_EQ(arg.entry, 0);
	}
}

static struct symbolizer from_handler;
static int errno_after;

static void on_signal(int sig)
{
	(void)sig;
	errno = 77;
	from_handler = ask((uintptr_t)around);
	errno_after = errno;
}

TEST_F(names, on_a_small_signal_stack)
{
	static char room[16384];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	ASSERT_EQ(sigaltstack(&stack, NULL), 0);
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	EXPECT_STREQ(from_handler.func, "around");
	EXPECT_EQ(errno_after, 77);
}

static void *ask_often(void *arg)
{
	long good = 0;

	(void)arg;
	for (int i = 0; i < 200; i++) {
		struct symbolizer a = ask(i % 2 ? (uintptr_t)around : (uintptr_t)ask_often);

		good += a.func && !strcmp(a.func, i % 2 ? "around" : "ask_often");
	}
	return (void *)good;
}

/* More threads than the library has places for. */
#define THREADS 100

TEST_F(names, many_threads_at_once)
{
	pthread_t threads[THREADS];
	void *good;

	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &good);
		EXPECT_EQ((long)good, 200);
	}
}

TEST_F(names, a_child_has_no_thread_and_does_not_wait)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(ask((uintptr_t)around).func ? 1 : 0);
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

static const char *while_locked;

static int ask_with_lock(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	while_locked = ask((uintptr_t)around).func;
	return 1;
}

/* A crash in the middle of something that holds a lock which the thread needs, too. */
TEST_F(names, a_lock_that_is_held_for_good_costs_seconds_and_no_more)
{
	const char *after = NULL;

	dl_iterate_phdr(ask_with_lock, NULL);
	EXPECT_EQ(while_locked, NULL);
	for (int i = 0; i < 1000 && !after; i++) {
		after = ask((uintptr_t)around).func;
		usleep(10000);
	}
	EXPECT_STREQ(after, "around");
}

TEST_HARNESS_MAIN
