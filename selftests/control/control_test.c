// SPDX-License-Identifier: GPL-2.0-only
/*
 * control_test.c - the control calls where there are shadow stacks. Every case
 * runs in a child of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "selftests/control/child.h"
#include "tools/inject/preload/ssp.h"

#define NEED_HARDWARE()                                                   \
	do {                                                              \
		if (!have())                                              \
			SKIP(return, "no shadow stacks on this machine"); \
	} while (0)

/* What switching on with SHSTK_STATUS_WRITE gives: riscv has no such bit. */
#ifdef __riscv
#define NO_WRITE (100 + EOPNOTSUPP)
#else
#define NO_WRITE 0
#endif

static int check_status(uint64_t wanted)
{
	uint64_t status;

	return !shstk_status_get(&status) && status == wanted;
}

static int on_only(void)
{
	return !check_status(SHSTK_STATUS_ENABLE) || !read_ssp();
}

static int write_too(void)
{
	return !check_status(SHSTK_STATUS_ENABLE | SHSTK_STATUS_WRITE);
}

static int drop_write(void)
{
	return shstk_status_set(SHSTK_STATUS_ENABLE) || !check_status(SHSTK_STATUS_ENABLE);
}

static int switch_off(void)
{
	return shstk_status_set(0) || !check_status(0) || read_ssp();
}

TEST(status_is_what_was_set)
{
	NEED_HARDWARE();
	EXPECT_TRUE(check_status(0));
	EXPECT_EQ(0, in_child(SHSTK_STATUS_ENABLE, on_only));
	EXPECT_EQ(NO_WRITE, in_child(SHSTK_STATUS_ENABLE | SHSTK_STATUS_WRITE, write_too));
	EXPECT_EQ(NO_WRITE, in_child(SHSTK_STATUS_ENABLE | SHSTK_STATUS_WRITE, drop_write));
	EXPECT_EQ(0, in_child(SHSTK_STATUS_ENABLE, switch_off));
	EXPECT_EQ(0, in_child(0, nothing));
#ifndef __aarch64__
	EXPECT_EQ(100 + EOPNOTSUPP, in_child(SHSTK_STATUS_ENABLE | SHSTK_STATUS_PUSH, nothing));
#endif
}

static int off_and_on(void)
{
	int err = shstk_status_set(0);

	if (err)
		return 1;
	err = shstk_status_set(SHSTK_STATUS_ENABLE);
	/* x86 and riscv let it be switched on again: then there is no way to return. */
	_exit(err == 0 ? 50 : err == -EALREADY ? 60 : 2);
}

TEST(switching_on_again)
{
	NEED_HARDWARE();
#ifndef __aarch64__
	EXPECT_EQ(50, in_child(SHSTK_STATUS_ENABLE, off_and_on));
#else
	EXPECT_EQ(60, in_child(SHSTK_STATUS_ENABLE, off_and_on));
#endif
}

static int locked(void)
{
	uint64_t write = SHSTK_STATUS_WRITE;

#ifdef __riscv
	if (shstk_status_lock(SHSTK_STATUS_ENABLE | write) != -EOPNOTSUPP)
		return 6;
	write = 0;
#endif
	if (shstk_status_lock(SHSTK_STATUS_ENABLE | write))
		return 1;
	if (shstk_status_set(SHSTK_STATUS_ENABLE))
		return 2; /* no change */
	if (shstk_status_set(0) != -EBUSY)
		return 3;
	if (write && shstk_status_set(SHSTK_STATUS_ENABLE | write) != -EBUSY)
		return 4;
	return shstk_status_lock(SHSTK_STATUS_ENABLE) ? 5 : 0;
}

TEST(locked_bits_are_busy)
{
	NEED_HARDWARE();
	EXPECT_EQ(0, in_child(SHSTK_STATUS_ENABLE, locked));
}

/* Switching ------------------------------------------------------------- */

static uint64_t seen_ssp;

static __attribute__((noinline)) int sum(int n)
{
	return n ? n + sum(n - 1) : 0;
}

static void on_other(void *arg)
{
	seen_ssp = read_ssp();
	*(int *)arg += sum(20);
}

static int call_other(void)
{
	struct shstk_stack s;
	int total = 0;

	if (shstk_stack_map(5000, SHSTK_STACK_TOKEN, &s))
		return 1;
	if (s.size != 8192 || s.token != s.base + 8192 - 8)
		return 2;
	for (int i = 0; i < 3; i++) {
		if (shstk_stack_call(s.token, on_other, &total))
			return 3;
		/* riscv: on_other() need not have pushed */
		if (seen_ssp < s.base || seen_ssp > s.base + s.size)
			return 4;
	}
	return total == 630 && !munmap((void *)s.base, s.size) ? 0 : 5;
}

static int call_bad_token(void)
{
	struct shstk_stack s;
	int total = 0;

	if (shstk_stack_map(4096, 0, &s) || s.token)
		return 1;
	shstk_stack_call(s.base + 4096 - 8, on_other, &total);
	return 2;
}

TEST(functions_run_on_another_shadow_stack)
{
	NEED_HARDWARE();
	EXPECT_EQ(0, in_child(SHSTK_STATUS_ENABLE, call_other));
	EXPECT_EQ(200 + SIGSEGV, in_child(SHSTK_STATUS_ENABLE, call_bad_token));
	EXPECT_EQ(-EOPNOTSUPP, shstk_stack_call(4096, NULL, NULL));
}

static int with_marker(void)
{
	struct shstk_stack s;
	int err = shstk_stack_map(4096, SHSTK_STACK_TOKEN | SHSTK_STACK_MARKER, &s), total = 0;

#ifdef __aarch64__
	if (err || s.token != s.base + 4096 - 16)
		return 1;
	if (*(uint64_t *)(s.base + 4096 - 8))
		return 2;
	return shstk_stack_call(s.token, on_other, &total) ? 3 : total != 210;
#else
	(void)total;
	return err == -EOPNOTSUPP ? 0 : 4;
#endif
}

TEST(end_markers)
{
	NEED_HARDWARE();
	EXPECT_EQ(0, in_child(SHSTK_STATUS_ENABLE, with_marker));
}

/* Late enabling ---------------------------------------------------------- */

#ifdef __riscv

/* Which functions will pop, and so need an entry, can't be told from outside. */
TEST(late_enabling_is_refused)
{
	NEED_HARDWARE();
	EXPECT_EQ(-EOPNOTSUPP, shstk_enable_here(SHSTK_HERE_UNAWARE));
	EXPECT_TRUE(check_status(0));
}

#else

static volatile int here_err; /* raise() is a leaf function to gcc */

static __attribute__((noinline)) int dive(int n)
{
	int ret;

	if (n) {
		ret = dive(n - 1) + 1;
	} else {
		here_err = shstk_enable_here(SHSTK_HERE_UNAWARE);
		ret = 0;
	}
	__asm__ volatile("" : : : "memory");
	return ret;
}

/* The harness itself goes on with it: back to it and out of the process. */
TEST(switched_on_in_deep_frames_all_return)
{
	NEED_HARDWARE();
	ASSERT_EQ(40, dive(40));
	ASSERT_EQ(0, here_err);
	ASSERT_NE(0ull, read_ssp());
	EXPECT_TRUE(check_status(SHSTK_STATUS_ENABLE));
	EXPECT_EQ(210, sum(20));
	EXPECT_EQ(-EALREADY, shstk_enable_here(SHSTK_HERE_UNAWARE));
}

TEST(refused_where_longjmp_would_break)
{
	NEED_HARDWARE();
	EXPECT_EQ(-EPERM, shstk_enable_here(0));
	EXPECT_TRUE(check_status(0));
}

static int compare(const void *a, const void *b)
{
	if (!read_ssp())
		dive(2);
	return *(const int *)a - *(const int *)b;
}

TEST(switched_on_in_a_callback_of_libc)
{
	int v[] = { 5, 3, 9, 1, 7 };

	NEED_HARDWARE();
	here_err = 1;
	qsort(v, 5, sizeof(int), compare);
	EXPECT_EQ(0, here_err);
	EXPECT_NE(0ull, read_ssp());
	EXPECT_EQ(1, v[0]);
	EXPECT_EQ(9, v[4]);
}

static void *thread(void *arg)
{
	if (read_ssp())
		return NULL;
	if (dive(10) != 10 || here_err || !read_ssp())
		return NULL;
	return arg;
}

static void *heir(void *arg)
{
	return read_ssp() ? arg : NULL;
}

TEST(threads_are_separate_and_inherit)
{
	pthread_t t;
	void *ret;

	NEED_HARDWARE();
	ASSERT_EQ(0, pthread_create(&t, NULL, thread, &seen_ssp));
	pthread_join(t, &ret);
	EXPECT_EQ(&seen_ssp, ret);
	EXPECT_EQ(0ull, read_ssp());
	dive(1);
	ASSERT_NE(0ull, read_ssp());
	ASSERT_EQ(0, pthread_create(&t, NULL, heir, &seen_ssp));
	pthread_join(t, &ret);
	EXPECT_EQ(&seen_ssp, ret);
}

static void on_usr1(int sig)
{
	(void)sig;
	dive(3);
}

TEST(switched_on_in_a_signal_handler)
{
	NEED_HARDWARE();
	here_err = 1;
	signal(SIGUSR1, on_usr1);
	raise(SIGUSR1);
#ifdef __x86_64__
	EXPECT_EQ(0, here_err);
	EXPECT_NE(0ull, read_ssp());
	raise(SIGUSR1);
	EXPECT_EQ(-EALREADY, here_err);
#else
	EXPECT_EQ(-ENODATA, here_err);
	EXPECT_EQ(0ull, read_ssp());
#endif
}

#endif

TEST_HARNESS_MAIN
