// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stale_test.c - functions that nothing describes, and whose stack holds anything:
 * zeros, ones, old return addresses, pointers. What is guessed there may be short,
 * but a trace that says it is complete has every frame, and where the code can be
 * followed it has. Of this thread, and as if it were another process.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "shstk.h"

#define NOINLINE __attribute__((noinline, noclone))
#define MAX 64

typedef int (*callback)(void);
typedef int (*function)(callback f, uint64_t value);

int stale_stray(callback f, uint64_t value);
int stale_part(callback f, uint64_t value);
int stale_leaf(callback f, uint64_t value);
int stale_pointer(callback f, uint64_t value);
int stale_record(callback f, uint64_t value);

extern const char stale_clone_glibc_at[], stale_clone_glibc_end[];
extern const char stale_clone_musl_at[], stale_clone_musl_end[];
extern const char stale_no_clone_at[];

struct trace {
	int n;
	uint64_t pcs[MAX];
	struct shstk_info info;
};

/* The trace that was taken inside of the function, and the trace outside of call(). */
static struct trace own, remote;
static uint64_t truth[MAX];
static int ntruth;
static struct shstk_space *space;

static void unwind_remote(const ucontext_t *uc)
{
	static const int order[] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
		REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};
	struct shstk_regs regs = { .size = sizeof(regs), .known = 0xffff };
	pid_t pid = getpid();

	for (unsigned int i = 0; i < 16; i++)
		regs.r[i] = uc->uc_mcontext.gregs[order[i]];
	regs.pc = uc->uc_mcontext.gregs[REG_RIP];
	remote.info = (struct shstk_info){ .size = sizeof(remote.info) };
	remote.n = shstk_unwind(space, &regs, shstk_read_process, &pid, remote.pcs, MAX, NULL,
				&remote.info);
}

static NOINLINE int take(void)
{
	volatile int zero = 0;
	ucontext_t uc;

	own.info = (struct shstk_info){ .size = sizeof(own.info) };
	own.n = shstk_capture(own.pcs, MAX, NULL, &own.info);
	getcontext(&uc);
	unwind_remote(&uc);
	return zero;
}

static void on_trap(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	own.info = (struct shstk_info){ .size = sizeof(own.info) };
	own.n = shstk_capture_context(uc, own.pcs, MAX, NULL, &own.info);
	unwind_remote(uc);
}

static NOINLINE int call(function f, uint64_t value)
{
	struct shstk_opts opts = { .size = sizeof(opts), .skip = 1 };
	volatile int r;

	ntruth = shstk_capture(truth, MAX, &opts, NULL);
	r = f(take, value);
	return r;
}

/* Returns whether the trace has @inner frames of the test and then the true ones. */
static bool is_true(const struct trace *t, int inner)
{
	return ntruth > 2 && t->n == inner + ntruth &&
	       !memcmp(t->pcs + inner, truth, ntruth * sizeof(*truth));
}

static bool is_whole(const struct trace *t, int inner)
{
	return is_true(t, inner) && t->info.end == SHSTK_END_COMPLETE && t->info.guessed == 1;
}

static bool is_honest(const struct trace *t, int inner)
{
	return t->info.end != SHSTK_END_COMPLETE || is_true(t, inner);
}

/* Returns an old return address: of a call of a described function, outside of this stack. */
static NOINLINE uint64_t old_address(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

FIXTURE(stale)
{
	uint64_t value;
};

FIXTURE_VARIANT(stale)
{
	const char *what;
};

#define CONTENT(name)                    \
	FIXTURE_VARIANT_ADD(stale, name) \
	{                                \
		.what = #name            \
	}

CONTENT(zeros);
CONTENT(ones);
CONTENT(minus_ones);
CONTENT(old_return_addresses);
CONTENT(pointers_to_functions);
CONTENT(pointers_to_the_stack);
CONTENT(pointers_to_data);
CONTENT(pointers_to_nothing);

static uint64_t content(const char *what)
{
	static uint64_t data[4];
	volatile uint64_t old = old_address();

	switch (*what) {
	case 'z':
		return 0;
	case 'o':
		return strcmp(what, "ones") ? old : 1;
	case 'm':
		return -1;
	default:
		what += strlen("pointers_to_");
	}
	return !strcmp(what, "functions") ? (uintptr_t)call :
	       !strcmp(what, "the_stack") ? (uintptr_t)&old & -16 :
	       !strcmp(what, "data")	  ? (uintptr_t)data :
					    0x7000;
}

FIXTURE_SETUP(stale)
{
	struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	self->value = content(variant->what);
	ASSERT_EQ(0, sigaction(SIGTRAP, &trap, NULL));
	ASSERT_EQ(0, shstk_space_create(SHSTK_ARCH_X86, &space));
	ASSERT_LT(0, shstk_space_add_pid(space, getpid()));
}

FIXTURE_TEARDOWN(stale)
{
	shstk_space_destroy(space);
}

/* The entries are: take(), the function, call(), and so on. */
TEST_F(stale, behind_a_call_that_does_not_return)
{
	call(stale_stray, self->value);
	EXPECT_TRUE(is_whole(&own, 3));
	EXPECT_TRUE(is_whole(&remote, 3));
}

TEST_F(stale, behind_such_a_call_with_the_same_alignment)
{
	call(stale_part, self->value);
	EXPECT_TRUE(is_whole(&own, 3));
	EXPECT_TRUE(is_whole(&remote, 3));
}

TEST_F(stale, interrupted)
{
	call(stale_leaf, self->value);
	EXPECT_TRUE(is_whole(&own, 2));
	EXPECT_TRUE(is_whole(&remote, 2));
}

TEST_F(stale, where_the_frame_pointer_is_none)
{
	call(stale_pointer, self->value);
	EXPECT_TRUE(is_honest(&own, 3));
	EXPECT_TRUE(is_honest(&remote, 3));
}

TEST(a_frame_record_of_zeros_ends_a_trace_where_the_code_keeps_one)
{
	ASSERT_EQ(0, shstk_space_create(SHSTK_ARCH_X86, &space));
	ASSERT_LT(0, shstk_space_add_pid(space, getpid()));
	call(stale_record, 0);
	EXPECT_EQ(2, own.n);
	EXPECT_EQ(SHSTK_END_COMPLETE, own.info.end);
	EXPECT_EQ(2, remote.n);
	EXPECT_EQ(SHSTK_END_COMPLETE, remote.info.end);
	shstk_space_destroy(space);
}

/* Unwinds as if the program were at @pc, where its system call has returned @result. */
static uint64_t unwind_at(const char *pc, uint64_t result)
{
	static uint64_t stack[64];
	const uint64_t caller = old_address();
	struct shstk_regs regs = { .size = sizeof(regs), .known = 0xffff };
	pid_t pid = getpid();

	for (unsigned int i = 0; i < 64; i++)
		stack[i] = caller;
	regs.pc = (uintptr_t)pc;
	regs.r[0] = result;
	regs.r[7] = (uintptr_t)stack;
	remote.info = (struct shstk_info){ .size = sizeof(remote.info) };
	remote.n = shstk_unwind(space, &regs, shstk_read_process, &pid, remote.pcs, 2, NULL,
				&remote.info);
	return caller;
}

FIXTURE(clone){};

FIXTURE_VARIANT(clone)
{
	const char *at, *end;
};

FIXTURE_VARIANT_ADD(clone, of_glibc){ stale_clone_glibc_at, stale_clone_glibc_end };
FIXTURE_VARIANT_ADD(clone, of_musl){ stale_clone_musl_at, stale_clone_musl_end };

FIXTURE_SETUP(clone)
{
	ASSERT_EQ(0, shstk_space_create(SHSTK_ARCH_X86, &space));
	ASSERT_LT(0, shstk_space_add_pid(space, getpid()));
}

FIXTURE_TEARDOWN(clone)
{
	shstk_space_destroy(space);
}

TEST_F(clone, gives_a_thread_no_caller)
{
	unwind_at(variant->at, 0);
	EXPECT_EQ(1, remote.n);
	EXPECT_EQ(SHSTK_END_COMPLETE, remote.info.end);
	EXPECT_EQ(0, remote.info.guessed);
}

TEST_F(clone, gives_its_creator_the_word_at_its_stack_pointer)
{
	static const uint64_t results[] = { 1234, -EAGAIN };

	for (unsigned int i = 0; i < 2; i++) {
		uint64_t caller = unwind_at(variant->at, results[i]);

		EXPECT_EQ(2, remote.n);
		EXPECT_EQ(caller, remote.pcs[1]);
		EXPECT_EQ(0, remote.info.guessed);
	}
}

TEST_F(clone, is_over_where_the_sides_part)
{
	unwind_at(variant->end, 0);
	EXPECT_NE(SHSTK_END_COMPLETE, remote.info.end);
}

TEST(a_system_call_that_returns_0_makes_no_thread)
{
	ASSERT_EQ(0, shstk_space_create(SHSTK_ARCH_X86, &space));
	ASSERT_LT(0, shstk_space_add_pid(space, getpid()));
	unwind_at(stale_no_clone_at, 0);
	EXPECT_EQ(2, remote.n);
	EXPECT_EQ(1, remote.info.guessed);
	shstk_space_destroy(space);
}

TEST_HARNESS_MAIN
