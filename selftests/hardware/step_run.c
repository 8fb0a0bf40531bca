// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * step_run.c - a whole program, at every instruction: its shadow stack against
 * the software unwinder, both from outside.
 *
 * usage: step_run [-e NAME=VALUE] [-s SKIP] STEPS COMMAND [ARGUMENT...]
 *
 * The command runs until a process of it has its shadow stack on; that thread is
 * then stepped, without the first SKIP system calls from there on, until it ends;
 * then the next one, until STEPS instructions were compared. The hardware is the truth. The same are
 * traces of which the software's goes on behind the end of the shadow stack, too:
 * those are the frames from before it was turned on.
 *
 * What may differ, and is counted by itself:
 *
 *   cut      The software says itself that its trace is not complete, and it is
 *            right as far as it goes.
 *   landing  libgcc is about to go on in an outer frame: the same up to libgcc,
 *            then an outer part of the hardware's.
 *   switch   The program is between two stacks: in longjmp() or its like.
 *
 * Anything else is shown, once for each place, and fails the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "arch.h"
#include "step.h"
#include "kselftest.h"

#define MAX 512
#define AREAS 256
#define PLACES 64

struct area {
	uint64_t start, end;
	char name[64];
};

static struct area areas[AREAS];
static int nr_areas;
static uint64_t hw[MAX], sw[MAX];
static uint8_t hw_marks[MAX];
static uint64_t places[PLACES];
static int nr_places;

static struct {
	long steps, same, cut, landing, unexplained, gaps, none;
	int beyond;
} count;

static void read_areas(pid_t pid)
{
	char path[64], line[512], perm[8], name[256];
	struct area *a;
	FILE *f;

	nr_areas = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	while (f && nr_areas < AREAS && fgets(line, sizeof(line), f)) {
		a = &areas[nr_areas];
		name[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &a->start, &a->end, perm, name) <
			    3 ||
		    perm[2] != 'x')
			continue;
		snprintf(a->name, sizeof(a->name), "%.63s",
			 strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
		nr_areas++;
	}
	if (f)
		fclose(f);
}

static const struct area *area_of(uint64_t pc)
{
	for (int i = 0; i < nr_areas; i++)
		if (pc >= areas[i].start && pc < areas[i].end)
			return &areas[i];
	return NULL;
}

static bool in_libgcc(uint64_t pc)
{
	const struct area *a = area_of(pc);

	return a && !strncmp(a->name, "libgcc_s", 8);
}

static void show(const char *who, const uint64_t *pcs, int n)
{
	for (int i = 0; i < n && i < 10; i++) {
		const struct area *a = area_of(pcs[i]);

		ksft_print_msg("  %s %d %#lx %s+%#lx\n", who, i, (long)pcs[i], a ? a->name : "?",
			       (long)(pcs[i] - (a ? a->start : 0)));
	}
}

/* Entries of @s that are those of @h, up to the end of @h; -1 if not. */
static int follows(int n, int w)
{
	int k = 0;

	for (int i = 0; i < n; i++, k++) {
		if (hw_marks[i] & SHSTK_MARK_GAP)
			k++; /* the interrupted pc */
		if (k >= w || hw[i] != sw[k])
			return -1;
	}
	return k;
}

/* Is what the software has an inner part of the truth? */
static bool inner_part(int n, int w)
{
	for (int i = 0, k = 0; k < w; i++, k++) {
		if (i < n && hw_marks[i] & SHSTK_MARK_GAP)
			k++;
		if (k < w && (i >= n || hw[i] != sw[k]))
			return false;
	}
	return true;
}

/* See above. The hardware may have left the inner frames already. */
static bool lands(int n, int w)
{
	int inner = 0, i, k;

	while (inner < n && inner < w && hw[inner] == sw[inner])
		inner++;
	while (inner && !in_libgcc(hw[inner - 1]))
		inner--;
	if (!inner)
		return false;
	for (i = inner; i <= n; i++) {
		for (k = 0; i + k < n && inner + 1 + k < w && hw[i + k] == sw[inner + 1 + k]; k++)
			;
		if (i + k == n)
			return true;
	}
	return false;
}

static void check(struct shstk_space *space, pid_t pid, uint64_t end)
{
	struct shstk_shadow shadow = { .size = sizeof(shadow) };
	struct shstk_opts opts = { .size = sizeof(opts), .marks = hw_marks };
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_regs regs;
	int n, w, k;

	if (shstk_shadow_pointer(pid, &shadow) || step_regs(pid, &regs)) {
		count.none++;
		return;
	}
	shadow.end = end;
	memset(hw_marks, 0, sizeof(hw_marks));
	n = shstk_unwind_shadow(&shadow, shstk_read_process, &pid, hw, MAX, &opts, NULL);
	w = shstk_unwind(space, &regs, shstk_read_process, &pid, sw, MAX, NULL, &info);
	for (k = 0; k < n; k++)
		count.gaps += !!(hw_marks[k] & SHSTK_MARK_GAP);
	count.steps++;
	k = follows(n, w);
	if (k >= 0) {
		count.same++;
		if (info.end == SHSTK_END_COMPLETE && w - k != count.beyond) {
			count.beyond = w - k;
			ksft_print_msg("from instruction %ld on %d frames more; %d by hardware\n",
				       count.steps, w - k, n);
			show("hw", hw, n);
			show("sw", sw, w);
		}
		return;
	}
	if (lands(n, w)) {
		count.landing++;
		return;
	}
	if (info.end != SHSTK_END_COMPLETE && inner_part(n, w)) {
		count.cut++;
		return;
	}
	count.unexplained++;
	for (k = 0; k < nr_places; k++)
		if (places[k] == regs.pc)
			return;
	if (nr_places == PLACES)
		return;
	places[nr_places++] = regs.pc;
	ksft_print_msg("hardware %d entries, software %d, %s\n", n, w, shstk_end_name(info.end));
	show("hw", hw, n);
	show("sw", sw, w);
}

static struct shstk_space *new_space(pid_t pid)
{
	struct shstk_space *space;

	if (shstk_space_create(
#ifdef __x86_64__
		    SHSTK_ARCH_X86,
#else
		    SHSTK_ARCH_ARM64,
#endif
		    &space))
		ksft_exit_fail_msg("no memory\n");
	shstk_space_add_pid(space, pid);
	read_areas(pid);
	return space;
}

/* On to its next system call. */
static void resume(pid_t pid, int status)
{
	int sig = WSTOPSIG(status);

	if (sig == (SIGTRAP | 0x80) || status >> 16 || sig == SIGSTOP)
		sig = 0;
	ptrace(PTRACE_SYSCALL, pid, 0, sig);
}

/* Until a process of the command has its shadow stack on; -1: all have ended. */
static pid_t wait_for_one(struct shstk_shadow *shadow, long skip)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status))
			continue;
		*shadow = (struct shstk_shadow){ .size = sizeof(*shadow) };
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) && !shstk_shadow_get(pid, shadow) &&
		    skip-- <= 0)
			return pid;
		resume(pid, status);
	}
	return -1;
}

/* The next stop of @pid. Returns the signal to pass on; -1: it has ended. */
static int next_stop(pid_t pid)
{
	int status, sig;
	pid_t who;

	for (;;) {
		who = waitpid(-1, &status, __WALL);
		if (who < 0)
			return -1;
		if (who != pid) {
			if (WIFSTOPPED(status))
				resume(who, status);
			continue;
		}
		if (!WIFSTOPPED(status))
			return -1;
		if (status >> 16 == PTRACE_EVENT_EXEC) {
			resume(pid, status);
			return -1;
		}
		sig = WSTOPSIG(status);
		return sig == SIGTRAP || sig == (SIGTRAP | 0x80) || status >> 16 ? 0 : sig;
	}
}

static bool was_mapping(pid_t pid)
{
	struct shstk_regs regs;
	uint32_t insn = 0;

	if (step_regs(pid, &regs))
		return false;
#ifdef __x86_64__
	return !shstk_read_process(&pid, regs.pc, &insn, 2) && insn == 0x050f &&
	       (regs.r[0] == __NR_mmap || regs.r[0] == __NR_mprotect || regs.r[0] == __NR_munmap);
#else
	return !shstk_read_process(&pid, regs.pc, &insn, 4) && insn == 0xd4000001 &&
	       (regs.r[8] == __NR_mmap || regs.r[8] == __NR_mprotect || regs.r[8] == __NR_munmap);
#endif
}

static void step_through(pid_t pid, uint64_t end, long steps)
{
	struct shstk_space *space = new_space(pid);
	bool mapping;
	int sig = 0;

	/* It may be about to leave the kernel: it is looked at from the next on. */
	while (count.steps < steps) {
		mapping = was_mapping(pid);
		if (step_on(pid, sig))
			break;
		sig = next_stop(pid);
		if (sig < 0)
			break;
		if (mapping) {
			shstk_space_destroy(space);
			space = new_space(pid);
		}
		check(space, pid, end);
	}
	shstk_space_destroy(space);
}

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s [-e NAME=VALUE] [-s SKIP] STEPS COMMAND...\n", name);
	return KSFT_FAIL;
}

int main(int argc, char **argv)
{
	struct shstk_shadow shadow;
	long skip = 0, steps;
	pid_t first, pid;
	int sig = 0, opt;

	while ((opt = getopt(argc, argv, "+e:s:")) != -1) {
		if (opt == 'e')
			putenv(optarg);
		else if (opt == 's')
			skip = atol(optarg);
		else
			return usage(argv[0]);
	}
	if (argc - optind < 2)
		return usage(argv[0]);
	steps = atol(argv[optind]);
	argv += optind + 1;
	ksft_print_header();
	ksft_set_plan(1);
	first = fork();
	if (!first) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[0], argv);
		_exit(127);
	}
	waitpid(first, &sig, 0);
	ptrace(PTRACE_SETOPTIONS, first, 0,
	       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
		       PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
	ptrace(PTRACE_SYSCALL, first, 0, 0);
	while (count.steps < steps && (pid = wait_for_one(&shadow, skip)) > 0)
		step_through(pid, shadow.end, steps);
	ksft_test_result(
		count.steps && !count.unexplained,
		"%s: %ld instructions: %ld the same (up to %d frames more), cut %ld, landing %ld, unexplained %ld; %ld signal frames, off %ld times\n",
		argv[0], count.steps, count.same, count.beyond, count.cut, count.landing,
		count.unexplained, count.gaps, count.none);
	ksft_finished();
}
