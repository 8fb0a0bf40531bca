// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * signal_test.c - captures in signal handlers: from the interrupted context,
 * nested, on an alternate stack, into a capture, left by longjmp; from wild
 * registers and corrupt stacks.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "tree.h"
#include "truth.h"

#define MAX 2000

/* Fewer rounds where sanitizers or emulation make everything slower. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(__aarch64__)
#define WILD_ROUNDS 4000
#else
#define WILD_ROUNDS 40000
#endif

static uint64_t pcs[MAX], inner[MAX];
static uint8_t marks[MAX];

FIXTURE(handler)
{
	struct truth truth;
};

FIXTURE_SETUP(handler)
{
	self->truth.n = 0;
	truth = &self->truth;
}

FIXTURE_TEARDOWN(handler)
{
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	sigaction(sig, &sa, NULL);
}

static void use_altstack(void)
{
	stack_t ss = { .ss_size = 256 << 10 };

	ss.ss_sp = malloc(ss.ss_size);
	sigaltstack(&ss, NULL);
}

/* Finds the truth in a trace. libc's frames decide at which entry it starts. */
static bool has_truth(const uint64_t *trace, int n)
{
	uint64_t want = truth->ra[truth->n - 1];
	int i;

	for (i = 0; i < n; i++) {
		if (trace[i] == want && truth_equal(trace, n, i))
			return true;
	}
	return false;
}

static struct {
	int count, good, good_self, marked, signal_marks;
	int end;
	uint64_t pc;
} seen;

static void on_signal(int sig, siginfo_t *si, void *uc)
{
	struct shstk_opts opts = OPTS(.marks = marks);
	struct shstk_info info = INFO();
	int i, n;

	(void)sig;
	(void)si;
	n = shstk_capture_context(uc, pcs, MAX, &opts, &info);
	seen.count++;
	seen.good += has_truth(pcs, n) && info.end == SHSTK_END_COMPLETE;
	seen.marked += n && marks[0] == SHSTK_MARK_PC;
	n = shstk_capture(inner, MAX, &opts, &info);
	seen.good_self += has_truth(inner, n) && info.end == SHSTK_END_COMPLETE;
	/* The entries are: handler, trampoline, interrupted pc, and so on. */
	for (i = 0; i + 1 < n; i++) {
		if (marks[i] & SHSTK_MARK_SIGNAL)
			seen.signal_marks += marks[i + 1] & SHSTK_MARK_PC && inner[i + 1] == pcs[0];
	}
}

static void raise_some(void)
{
	int i;

	for (i = 0; i < 3; i++)
		raise(SIGUSR1);
}

TEST_F(handler, the_interrupted_stack_is_complete)
{
	handle(SIGUSR1, on_signal, 0);
	truth_recurse(20, raise_some);
	EXPECT_EQ(seen.count, 3);
	EXPECT_EQ(seen.good, 3);
	EXPECT_EQ(seen.good_self, 3);
	EXPECT_EQ(seen.marked, 3);
	EXPECT_EQ(seen.signal_marks, 3);
}

TEST_F(handler, on_an_alternate_stack_the_trace_goes_on_through_the_thread)
{
	use_altstack();
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	truth_recurse(20, raise_some);
	EXPECT_EQ(seen.count, 3);
	EXPECT_EQ(seen.good, 3);
	EXPECT_EQ(seen.good_self, 3);
	EXPECT_EQ(seen.signal_marks, 3);
}

static void on_outer(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	(void)uc;
	raise(SIGUSR1);
}

static void raise_nested(void)
{
	raise(SIGUSR2);
}

TEST_F(handler, handlers_may_nest)
{
	use_altstack();
	handle(SIGUSR1, on_signal, 0);
	handle(SIGUSR2, on_outer, SA_ONSTACK);
	truth_recurse(20, raise_nested);
	EXPECT_EQ(seen.count, 1);
/* gcc 14's thread sanitizer passes the inner signal on with another context */
#ifndef __SANITIZE_THREAD__
	EXPECT_EQ(seen.good, 1);
#endif
	EXPECT_EQ(seen.good_self, 1);
}

/*
 * A timer interrupts captures at random instructions, and its handler captures
 * too. Both must be right, always.
 */
static volatile sig_atomic_t ticks, bad_ticks;

static void on_tick(int sig, siginfo_t *si, void *uc)
{
	static uint64_t trace[MAX];
	struct shstk_info info = INFO();

	(void)sig;
	(void)si;
	shstk_capture_context(uc, trace, MAX, NULL, &info);
	ticks++;
	if (info.end != SHSTK_END_COMPLETE) {
		bad_ticks++;
		printf("# at %#llx: %s\n", (unsigned long long)trace[0], shstk_end_name(info.end));
	}
}

static void start_ticks(int us)
{
	struct itimerval it = { { 0, us }, { 0, us } };

	handle(SIGALRM, on_tick, SA_RESTART);
	setitimer(ITIMER_REAL, &it, NULL);
}

static void stop_ticks(void)
{
	struct itimerval it = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &it, NULL);
}

static long visits, wrong;

static noinline void visit(void *arg)
{
	int n = shstk_capture(pcs, MAX, NULL, NULL);

	(void)arg;
	visits++;
	wrong += !truth_equal(pcs, n, 2);
}

TEST_F(handler, captures_interrupted_by_captures_are_right)
{
	struct tree t = { .visit = visit };
	struct timespec start, now;

	start_ticks(200);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		t.seed = visits;
		tree_call(&t, 12);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 3 || ticks <= 100);
	stop_ticks();
	printf("# %ld captures, %d interruptions\n", visits, (int)ticks);
	EXPECT_GT(ticks, 100);
	EXPECT_EQ(wrong, 0);
#ifndef __SANITIZE_THREAD__ /* the thread sanitizer passes signals on later, with an old context */
	EXPECT_EQ(bad_ticks, 0);
#endif
}

TEST_F(handler, any_instruction_of_libc_and_vdso_is_unwound_to_the_end)
{
	struct timespec start, now;
	char buf[64];
	long i = 0;

#ifdef __SANITIZE_THREAD__
	SKIP(return, "the sanitizer hands on signals later, with an old context");
#endif
	start_ticks(100);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		void *p = malloc(i % 5000);

		snprintf(buf, sizeof(buf), "%ld %f", i, i * 0.1);
		i += strtol(buf, NULL, 10) & 1;
		i++;
		free(p);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 2 || ticks <= 100);
	stop_ticks();
	printf("# %d interruptions\n", (int)ticks);
	EXPECT_GT(ticks, 100);
	EXPECT_EQ(bad_ticks, 0);
}

static sigjmp_buf away;
static int jumps;

static void on_jump(int sig, siginfo_t *si, void *uc)
{
	static uint64_t trace[MAX];

	(void)sig;
	(void)si;
	shstk_capture_context(uc, trace, MAX, NULL, NULL);
	jumps++;
	siglongjmp(away, 1);
}

static noinline void visit_until_jump(void)
{
	for (;;) {
		int n = shstk_capture(pcs, MAX, NULL, NULL);

		wrong += !truth_equal(pcs, n, 2);
	}
}

TEST_F(handler, captures_left_by_siglongjmp_do_no_harm)
{
	struct itimerval it = { { 0, 0 }, { 0, 300 } };
	struct shstk_info info = INFO();
	volatile int i;
	int n;

	handle(SIGALRM, on_jump, 0);
	for (i = 0; i < 500; i++) {
		truth->n = 0;
		if (!sigsetjmp(away, 1)) {
			setitimer(ITIMER_REAL, &it, NULL);
			truth_recurse(i % 40, visit_until_jump);
		}
	}
	EXPECT_EQ(jumps, 500);
	EXPECT_EQ(wrong, 0);
	/*
	 * The memo comes back to life: two captures that go without it, one that
	 * fills it, one that uses it; another two if it was filled in between.
	 */
	for (i = 0; i < 6 && info.source != SHSTK_SOURCE_MEMO; i++)
		n = shstk_capture(pcs, MAX, NULL, &info);
	EXPECT_GT(n, 1);
	EXPECT_EQ(info.source, SHSTK_SOURCE_MEMO);
	/*
	 * Soon the whole stack is reused; it takes several captures, as the harness has a frame of
	 * 160 KB.
	 */
	for (i = 0; i < 8; i++) {
		n = shstk_capture(pcs, MAX, NULL, &info);
		if (i >= 5)
			EXPECT_EQ(info.reused, n - 1);
	}
}

static uint64_t fault_trace[MAX];
static int fault_n;
static struct shstk_info fault_info;
static uint8_t fault_marks[MAX];

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	struct shstk_opts opts = OPTS(.marks = fault_marks);

	(void)sig;
	(void)si;
	fault_info = INFO();
	fault_n = shstk_capture_context(uc, fault_trace, MAX, &opts, &fault_info);
	siglongjmp(away, 1);
}

static void (*volatile nowhere)(void) = (void (*)(void))16;

static noinline void call_nowhere(void)
{
	TRUTH_ENTER();
	nowhere();
	NO_TAIL_CALL();
	TRUTH_LEAVE();
}

TEST_F(handler, a_call_to_a_bad_address_shows_its_caller)
{
	handle(SIGSEGV, on_fault, SA_NODEFER);
	handle(SIGBUS, on_fault, SA_NODEFER);
	if (!sigsetjmp(away, 1))
		truth_recurse(10, call_nowhere);
	ASSERT_GT(fault_n, 3);
	EXPECT_EQ(fault_trace[0], 16);
	EXPECT_EQ(fault_marks[1], SHSTK_MARK_GUESS);
	EXPECT_EQ(fault_info.guessed, 1);
	EXPECT_EQ(fault_info.end, SHSTK_END_COMPLETE);
	/* Entry 1 lies in call_nowhere(), and entry 2 is the address to which that returns. */
	EXPECT_TRUE(truth_equal(fault_trace, fault_n, 2));
}

static volatile long sink;

static void set_regs(ucontext_t *uc, uint64_t pc, uint64_t sp, uint64_t fp)
{
#ifdef __x86_64__
	uc->uc_mcontext.gregs[REG_RIP] = pc;
	uc->uc_mcontext.gregs[REG_RSP] = sp;
	uc->uc_mcontext.gregs[REG_RBP] = fp;
#else
	uc->uc_mcontext.pc = pc;
	uc->uc_mcontext.sp = sp;
	uc->uc_mcontext.regs[29] = fp;
#endif
}

/*
 * Registers of every wild kind, and a stack full of them. No outcome is right;
 * a crash is wrong.
 */
TEST_F(handler, wild_registers_and_corrupt_stacks_do_no_harm)
{
	struct tree rng = { .seed = 42 };
	size_t size = 64 << 10;
	uint64_t code[8], *stack, lo;
	ucontext_t uc;
	long i, ends[16] = { 0 };
	unsigned int k;

	stack = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(stack, MAP_FAILED);
	mprotect((char *)stack + size, 4096, PROT_NONE);
	lo = (uintptr_t)stack;
	getcontext(&uc);
	code[0] = (uintptr_t)&shstk_capture + 30;
	code[1] = (uintptr_t)&snprintf + 21;
	code[2] = (uintptr_t)&tree_call + 17;
	code[3] = (uintptr_t)&qsort + 40;
	code[4] = 0;
	code[5] = ~0ull;
	code[6] = lo;
	code[7] = (uintptr_t)&sink;
	for (i = 0; i < WILD_ROUNDS; i++) {
		struct shstk_info info = INFO();
		uint64_t reg[3];
		int n;

		for (k = 0; k < 40; k++) {
			uint32_t r = tree_random(&rng);

			stack[r % (size / 8)] = r & 1 ? code[r >> 3 & 7] + (r >> 6 & 63) :
							lo + (r >> 8) % (size + 64);
		}
		for (k = 0; k < 3; k++) {
			uint32_t r = tree_random(&rng);

			reg[k] = r & 1 ? lo + (r >> 4) % (size + 4200) :
				 r & 2 ? code[r >> 3 & 7] + (r >> 6 & 63) :
					 (uint64_t)r << (r & 31);
		}
		if (i & 1)
			reg[0] = code[i >> 1 & 3] + tree_random(&rng) % 200;
		if (i & 2)
			reg[1] &= ~7ull;
		set_regs(&uc, reg[0], reg[1], reg[2]);
		n = shstk_capture_context(&uc, pcs, MAX, NULL, &info);
		ASSERT_GE(n, 0);
		ASSERT_LE(n, MAX);
		ends[info.end]++;
	}
	for (k = 0; k < 16; k++) {
		if (ends[k])
			printf("# %ld: %s\n", ends[k], shstk_end_name(k));
	}
}

/* Writes over the saved words of live frames, captures, and puts the words back. */
static noinline __attribute__((no_sanitize("address"))) void corrupt_leaf(void)
{
	uint64_t *frame = __builtin_frame_address(0);
	struct tree rng = { .seed = 7 };
	int i, k;

	for (i = 0; i < 3000; i++) {
		int at = 2 + tree_random(&rng) % 60;
		uint64_t saved = frame[at];
		uint64_t values[] = { 0,
				      1,
				      ~0ull,
				      (uintptr_t)frame,
				      (uintptr_t)frame - 64,
				      (uintptr_t)&truth_recurse,
				      (uintptr_t)frame + (1 << 20),
				      1ull << 63,
				      saved + 8 };

		k = tree_random(&rng) % (sizeof(values) / sizeof(values[0]));
		frame[at] = values[k];
		shstk_capture(inner, MAX, NULL, NULL);
		frame[at] = saved;
		k = shstk_capture(pcs, MAX, NULL, NULL);
		wrong += !truth_equal(pcs, k, 2);
	}
}

TEST_F(handler, a_frame_that_was_overwritten_and_restored_is_read_anew)
{
	truth_recurse(30, corrupt_leaf);
	EXPECT_EQ(wrong, 0);
}

TEST_HARNESS_MAIN
