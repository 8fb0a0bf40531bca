// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * step_test.c - at every instruction, the shadow stack against the software
 * unwinder, both from outside: a child with shadow stacks on is stepped by ptrace.
 *
 * Here the hardware is the truth. What the unwinder says beyond it are the frames
 * from before shadow stacks were turned on.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "step.h"
#include "../capture/tree.h"
#include "../capture/truth.h"
#include "kselftest.h"

#define MAX 256
#define STEPS 2000 /* emulators step slowly */

static uint64_t hw[MAX], sw[MAX];
static uint8_t hw_marks[MAX];

/*
 * The child.
 */

static volatile int sink;

static void on_signal(int sig)
{
	sink += sig;
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

static noinline void work(int round)
{
	struct tree t = { .seed = round, .visit = nothing };
	int numbers[] = { 5, 3, 9, 1, 7, 2 };
	char buf[64];

	raise(SIGUSR1);
	tree_call(&t, 3);
	qsort(numbers, 6, sizeof(int), compare_ints);
	snprintf(buf, sizeof(buf), "%d %s %p", round, "text", (void *)buf);
	sink += strlen(buf);
	free(malloc(round * 100));
}

static void child(void)
{
	static struct truth t;
	int i;

	truth = &t;
	signal(SIGUSR1, on_signal);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	if (ss_enable(SS_ENABLE))
		ss_syscall(__NR_exit_group, 1, 0, 0, 0, 0);
	raise(SIGSTOP);
	for (i = 1;; i++)
		work(i);
}

/*
 * The parent.
 */

static struct {
	long steps, wrong, guessed, gaps, entries;
} count;

/* True: equal as far as the shadow stack goes. */
static bool same(int n, int w)
{
	int i, k;

	for (i = 0, k = 0; i < n; i++, k++) {
		if (hw_marks[i] & SHSTK_MARK_GAP) {
			k++; /* the interrupted pc */
			count.gaps++;
		}
		if (k >= w || hw[i] != sw[k])
			return false;
	}
	return true;
}

static void check(struct shstk_space *space, pid_t pid, uint64_t end)
{
	struct shstk_shadow shadow = { .size = sizeof(shadow) };
	struct shstk_opts opts = OPTS(.marks = hw_marks);
	struct shstk_info info = INFO();
	struct shstk_regs regs;
	static int said;
	int n, w, i;

	if (shstk_shadow_get(pid, &shadow) || shadow.end != end || step_regs(pid, &regs)) {
		count.wrong++;
		return;
	}
	n = shstk_unwind_shadow(&shadow, shstk_read_process, &pid, hw, MAX, &opts, NULL);
	w = shstk_unwind(space, &regs, shstk_read_process, &pid, sw, MAX, NULL, &info);
	count.steps++;
	count.entries += n;
	count.guessed += info.guessed > 0;
	if (same(n, w))
		return;
	count.wrong++;
	if (said++ >= 5)
		return;
	ksft_print_msg("pc %#llx: hardware %d entries, unwinder %d, %s\n",
		       (unsigned long long)regs.pc, n, w, shstk_end_name(info.end));
	for (i = 0; i < n && i < 8; i++)
		ksft_print_msg("  %#llx %#llx\n", (unsigned long long)hw[i],
			       i < w ? (unsigned long long)sw[i] : 0);
}

int main(void)
{
	struct shstk_shadow shadow = { .size = sizeof(shadow) };
	struct shstk_space *space;
	int status, sig = 0;
	pid_t pid;

	ksft_print_header();
	ksft_set_plan(4);
	ksft_test_result(shstk_shadow_get(getpid(), NULL) == -EINVAL &&
				 shstk_shadow_get(getpid(), &shadow) == -ESRCH,
			 "bad arguments and untraced threads are refused\n");
	pid = fork();
	if (!pid)
		child();
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status))
		ksft_exit_fail_msg("the child cannot enable shadow stacks\n");
	shstk_space_create(
#ifdef __x86_64__
		SHSTK_ARCH_X86,
#else
		SHSTK_ARCH_ARM64,
#endif
		&space);
	shstk_space_add_pid(space, pid);
	ksft_test_result(!shstk_shadow_get(pid, &shadow) && shadow.end > shadow.ssp,
			 "a stopped thread's shadow stack is found\n");
	while (count.steps < STEPS) {
		check(space, pid, shadow.end);
		if (count.wrong > 100 || step_on(pid, sig) || waitpid(pid, &status, 0) != pid ||
		    !WIFSTOPPED(status))
			break;
		sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ksft_print_msg(
		"%ld instructions, %ld entries, %ld with a guess, %ld signal frames, %ld differ\n",
		count.steps, count.entries, count.guessed, count.gaps, count.wrong);
	ksft_test_result(count.steps == STEPS && !count.wrong,
			 "at every instruction the unwinder agrees with the hardware\n");
	ksft_test_result(count.gaps > 0, "signal frames were among them\n");
	shstk_space_destroy(space);
	exit(ksft_cnt.ksft_fail ? 1 : 0);
}
