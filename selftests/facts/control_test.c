// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * control_test.c - what the calls that control and map shadow stacks answer
 *
 * Each fact is a list of system calls with the answers they must give, run in
 * a child of its own that starts with shadow stacks off. The lists of an
 * architecture are in ARCH/control.h.
 */
#include "facts.h"
#include "kselftest.h"

/* Stands for an answer that is not an errno but the address of a new mapping. */
#define AN_ADDRESS 0x5ca1ab1eL

/* An argument that stands for the address of a word to write the status to. */
#define OUT 0x0ddba11UL

struct step {
	long nr;
	unsigned long arg[5];
	long answer;
	unsigned long out; /* the value that must be at OUT afterwards; ~0: it was not written */
};

struct fact {
	const char *name;
	struct step step[12]; /* the list ends with .nr 0 */
	const char *unless; /* the fact does not hold while this file exists */
};

#define MAP(addr, size, flags, ans)                      \
	{                                                \
		SS_NR_MAP, { addr, size, flags }, ans, 0 \
	}

/* The generic calls, and these with an argument that must be 0. */
#define PRCTL(op, arg, ans)                        \
	{                                          \
		__NR_prctl, { op, arg }, ans, ~0UL \
	}
#define PR_SET(bits, ans) PRCTL(SS_PR_SET, bits, ans)
#define PR_LOCK(bits, ans) PRCTL(SS_PR_LOCK, bits, ans)
#define PR_STATUS(bits)                                 \
	{                                               \
		__NR_prctl, { SS_PR_GET, OUT }, 0, bits \
	}
#define PR_EXTRA(op, arg, a, b, c)                              \
	{                                                       \
		__NR_prctl, { op, arg, a, b, c }, -EINVAL, ~0UL \
	}

#include "control.h"

struct outcome {
	int done; /* number of steps with the right answer */
	bool all;
	long answer; /* the first wrong answer */
	unsigned long out;
};

/*
 * Runs the steps in one frame, without calls and without a return, as they may turn shadow stacks
 * on.
 */
static noinline __attribute__((noreturn)) void run_steps(const struct fact *fact,
							 volatile struct outcome *res)
{
	unsigned long out, arg[5];
	const struct step *s;
	bool right;
	long ret;

	for (s = fact->step; s->nr; s++) {
		out = ~0UL;
		for (int i = 0; i < 5; i++)
			arg[i] = s->arg[i] == OUT ? (unsigned long)&out : s->arg[i];
		ret = ss_syscall(s->nr, arg[0], arg[1], arg[2], arg[3], arg[4]);
		if (s->answer == AN_ADDRESS)
			right = ret > 0;
		else
			right = ret == s->answer;
		if (right && (s->arg[0] == OUT || s->arg[1] == OUT))
			right = out == s->out;
		res->answer = ret;
		res->out = out;
		if (!right)
			break;
		res->done++;
	}
	res->all = !s->nr;
	for (;;)
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

static void check(const struct fact *fact, struct outcome *res)
{
	const struct step *s;
	int status = 0;
	pid_t pid;

	if (fact->unless && !access(fact->unless, F_OK)) {
		ksft_test_result_skip("%s: not with %s\n", fact->name, fact->unless);
		return;
	}
	memset(res, 0, sizeof(*res));
	fflush(NULL);
	pid = fork();
	if (!pid)
		run_steps(fact, res);
	waitpid(pid, &status, 0);
	if (res->all && !status) {
		ksft_test_result_pass("%s\n", fact->name);
		return;
	}
	ksft_test_result_fail("%s\n", fact->name);
	s = &fact->step[res->done];
	if (status)
		ksft_print_msg("step %d: wait status %#x\n", res->done + 1, status);
	else
		ksft_print_msg(
			"step %d: %ld(%#lx, %#lx, ...) answered %ld, out %#lx; expected %ld, %#lx\n",
			res->done + 1, s->nr, s->arg[0], s->arg[1], res->answer, res->out,
			s->answer, s->out);
}

int main(void)
{
	struct outcome *res = shared_page();
	long addr = ss_map(0, getpagesize(), 0);

	if (addr == -EOPNOTSUPP || addr == -ENOSYS)
		ksft_exit_skip("no shadow stacks: %s\n", strerror(-addr));
	if (!res)
		ksft_exit_fail_msg("no memory\n");
	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(facts));
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		check(&facts[i], res);
	ksft_finished();
}
