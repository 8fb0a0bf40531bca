// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trap_test.c - at every instruction, from a signal handler: the trace from the
 * shadow stack against the one by software, both from the same context.
 *
 * The CPU traps behind each instruction of the code below: calls and returns,
 * another signal's handler from its first instruction to the one that returns
 * from it. x86 only: on arm64 a program cannot step itself.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch.h"
#include "../capture/tree.h"
#include "../capture/truth.h"
#include "kselftest.h"

#define MAX 128
#define TF 0x100
#define ROUNDS 3

static struct {
	unsigned long traps, hardware, wrong, signals;
} count;

static uint64_t hw[MAX], sw[MAX];
static uint8_t marks[MAX];
static volatile int sink;

static void compare(const void *context)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = { .size = sizeof(opts), .marks = marks };
	int n, w, i;

	n = shstk_capture_context(context, hw, MAX, &opts, &info);
	count.hardware += info.source == SHSTK_SOURCE_HARDWARE;
	for (i = 0; i < n; i++)
		if (marks[i] & SHSTK_MARK_SIGNAL)
			break;
	count.signals += i < n;
	opts = (struct shstk_opts){ .size = sizeof(opts), .sources = SHSTK_USE_WALK };
	w = shstk_capture_context(context, sw, MAX, &opts, NULL);
	/* Behind the end lie the frames from before it was switched on. */
	if (n > 0 && n <= w && !memcmp(hw, sw, n * sizeof(*hw)))
		return;
	if (count.wrong++ >= 4)
		return;
	ksft_print_msg("pc %#lx: hardware %d entries, software %d\n", (long)sw[0], n, w);
	for (i = 0; i < 10 && (i < n || i < w); i++)
		ksft_print_msg("  %#lx %#lx\n", i < n ? (long)hw[i] : 0, i < w ? (long)sw[i] : 0);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *regs = uc->uc_mcontext.gregs;
	uint16_t insn;

	(void)sig;
	(void)info;
	count.traps++;
	compare(context);
	/* Emulated CPUs may trap inside the kernel. */
	memcpy(&insn, (void *)regs[REG_RIP], sizeof(insn));
	if (insn == 0x050f)
		regs[REG_EFL] &= ~TF;
}

static inline __attribute__((always_inline)) void trap_on(void)
{
	__asm__ volatile("pushfq\n\torl %0, (%%rsp)\n\tpopfq" : : "i"(TF) : "memory", "cc");
}

static inline __attribute__((always_inline)) void trap_off(void)
{
	__asm__ volatile("pushfq\n\tandl %0, (%%rsp)\n\tpopfq" : : "i"(~TF) : "memory", "cc");
}

static void nothing(void *arg)
{
	(void)arg;
	sink++;
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static noinline void work(void)
{
	struct tree t = { .seed = 1, .visit = nothing };
	int numbers[] = { 5, 3, 9, 1 };

	tree_call(&t, 2);
	qsort(numbers, 4, sizeof(int), compare_ints);
	sink += numbers[0];
}

static void on_signal(int sig)
{
	/* The kernel delivers with it off. */
	trap_on();
	work();
	sink += sig;
}

static noinline void send_one(void)
{
	ss_syscall(__NR_kill, getpid(), SIGUSR1, 0, 0, 0);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	static struct truth t;
	long ret;
	int i;

	truth = &t;
	ret = ss_enable(SS_ENABLE);
	if (ret == -EOPNOTSUPP || ret == -ENOSYS)
		ksft_exit_skip("no shadow stacks: %s\n", strerror(-ret));
	ksft_print_header();
	ksft_set_plan(3);
	signal(SIGUSR1, on_signal);
	sigaction(SIGTRAP, &sa, NULL);
	for (i = 0; i < ROUNDS; i++) {
		trap_on();
		work();
		trap_off();
		send_one();
	}
	ksft_print_msg("%lu instructions, %lu by hardware, %lu with a signal frame, %lu differ\n",
		       count.traps, count.hardware, count.signals, count.wrong);
	ksft_test_result(count.traps > 500 && count.hardware == count.traps,
			 "every trace is from hardware\n");
	ksft_test_result(!count.wrong, "and is that of the software\n");
	ksft_test_result(count.signals > 100 && count.signals < count.traps,
			 "also in a handler, from its first instruction to its return\n");
	exit(ksft_cnt.ksft_fail ? 1 : 0);
}
