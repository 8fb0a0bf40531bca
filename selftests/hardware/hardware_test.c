// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hardware_test.c - captures from a real shadow stack: equal to what the program
 * knows of itself and to the software walk, in threads, handlers, children, on
 * switched stacks, through code that nothing describes.
 *
 * main() turns shadow stacks on by an inline system call and never returns. The
 * C library is a static one that knows nothing of them; on riscv its functions do
 * not push.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "../capture/tree.h"
#include "../capture/truth.h"
#include "kselftest.h"
#include "shstk_marker.h"

#define MAX 4000

static uint64_t hw[MAX], sw[MAX];
static uint8_t hw_marks[MAX], sw_marks[MAX];

static const struct shstk_opts walk_opts = {
	.size = sizeof(walk_opts),
	.sources = SHSTK_USE_WALK,
	.marks = sw_marks,
};

static const struct shstk_opts hw_opts = {
	.size = sizeof(hw_opts),
	.sources = SHSTK_USE_HARDWARE,
	.marks = hw_marks,
};

static struct {
	long traces, wrong_truth, wrong_walk, wrong_end, wrong_marks, shorter;
} count;

static void print_difference(int i)
{
	static int said;

	if (said++ < 5)
		ksft_print_msg("entry %d: hardware %#llx mark %d, walk %#llx mark %d\n", i,
			       (unsigned long long)hw[i], hw_marks[i], (unsigned long long)sw[i],
			       sw_marks[i]);
}

/* Entries from @first on are equal, as far as the shadow stack goes. */
static void compare(int n, int w, int first)
{
	int i;

	for (i = first; i < n && i < w; i++) {
		if (hw[i] != sw[i]) {
			print_difference(i);
			count.wrong_walk++;
			return;
		}
		if (hw_marks[i] != (sw_marks[i] & ~SHSTK_MARK_GUESS)) {
			print_difference(i);
			count.wrong_marks++;
			return;
		}
	}
	if (n > w)
		count.wrong_walk++;
	count.shorter += w > n;
}

/* @first: the entry that is the newest one the program noted. */
static noinline void visit_from(int first)
{
	struct shstk_info info = INFO();
	int n, w;

	n = shstk_capture(hw, MAX, &hw_opts, &info);
	w = shstk_capture(sw, MAX, &walk_opts, NULL);
	count.traces++;
	count.wrong_truth += !truth_equal(hw, n, first);
	count.wrong_end += info.end != SHSTK_END_COMPLETE || info.source != SHSTK_SOURCE_HARDWARE;
	compare(n, w, 1);
}

static noinline void visit(void *arg)
{
	(void)arg;
	visit_from(3);
	NO_TAIL_CALL();
}

static void report(const char *name, long at_least)
{
	bool ok = count.traces >= at_least && !count.wrong_truth && !count.wrong_walk &&
		  !count.wrong_end && !count.wrong_marks;

	if (!ok)
		ksft_print_msg("%ld traces, wrong: truth %ld, walk %ld, end %ld, marks %ld\n",
			       count.traces, count.wrong_truth, count.wrong_walk, count.wrong_end,
			       count.wrong_marks);
	ksft_test_result(ok, "%s\n", name);
	memset(&count, 0, sizeof(count));
}

static noinline void visit_leaf(void)
{
	visit_from(3);
	NO_TAIL_CALL();
}

static void test_depths(void)
{
	static const int depth[] = { 0, 1, 2, 3, 4, 5, 17, 100, 511, 512, 513, 3000 };
	struct shstk_info info = INFO();
	unsigned int i;
	int n;

	for (i = 0; i < sizeof(depth) / sizeof(depth[0]); i++)
		truth_recurse(depth[i], visit_leaf);
	report("traces of any depth are the truth and equal the walk", 12);
	n = shstk_capture(hw, 1, NULL, &info);
	ksft_test_result(n == 1 && info.source == SHSTK_SOURCE_HARDWARE,
			 "the hardware is the source unless told otherwise\n");
}

static void test_trees(void)
{
	struct tree t = { .visit = visit };
	int i;

	for (i = 1; i < 30; i++) {
		t.seed = i;
		tree_call(&t, 3 + i % 12);
	}
	report("random call trees are the truth and equal the walk", 300);
}

static noinline void capacity_leaf(void)
{
	struct shstk_info info = INFO();
	int i, n, all;

	all = shstk_capture(sw, MAX, NULL, NULL);
	for (i = 0; i < 60; i++) {
		struct shstk_opts skip = OPTS(.skip = i);

		hw[i] = ~0ull;
		n = shstk_capture(hw, i, NULL, &info);
		count.traces++;
		count.wrong_end += n != i || info.end != SHSTK_END_CAPACITY || hw[i] != ~0ull;
		n = shstk_capture(hw, MAX, &skip, NULL);
		count.wrong_walk += n != all - i || (i && memcmp(hw, sw + i, n * 8));
	}
}

static void test_capacity(void)
{
	truth_recurse(100, capacity_leaf);
	report("full arrays and skipped entries are as with any source", 60);
}

/* Where calls do not push, this function is not on the shadow stack. */
static noinline void send(int sig)
{
#ifdef __riscv
	ss_syscall(__NR_kill, ss_syscall(__NR_getpid, 0, 0, 0, 0, 0), sig, 0, 0, 0);
#else
	raise(sig);
	NO_TAIL_CALL();
#endif
}

/* From the trampoline outwards both know the same; entry 0 is ours. */
static void on_signal(int sig, siginfo_t *si, void *uc)
{
	struct shstk_info info = INFO();
	int n, w;

	(void)si;
	n = shstk_capture_context(uc, hw, MAX, &hw_opts, &info);
	w = shstk_capture_context(uc, sw, MAX, &walk_opts, NULL);
	count.traces++;
	count.wrong_end += info.end != SHSTK_END_COMPLETE;
	compare(n, w, 0);
	n = shstk_capture(hw, MAX, &hw_opts, &info);
	w = shstk_capture(sw, MAX, &walk_opts, NULL);
	count.wrong_end += info.end != SHSTK_END_COMPLETE;
	compare(n, w, 1);
	if (sig == SIGUSR2)
		send(SIGUSR1);
}

static noinline void raise_leaf(void)
{
	send(SIGUSR1);
	send(SIGUSR2);
}

static void test_signals(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	stack_t ss = { .ss_size = 64 << 10 };

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	truth_recurse(20, raise_leaf);
	report("in handlers, nested too, the trace goes on through the interrupted pc", 3);
	ss.ss_sp = malloc(ss.ss_size);
	sigaltstack(&ss, NULL);
	sa.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	truth_recurse(20, raise_leaf);
	report("so it does on an alternate signal stack", 3);
}

#ifdef __riscv
/*
 * A function with a signal at every place where something changes: before and after
 * the push, with the return address saved, back from a callee that does not push,
 * with it restored, after the pop.
 */
void interrupted_everywhere(int pid);
#define SIGNAL "mv a0, a3\n\tli a1, 10\n\tli a7, 129\n\tecall\n\t"
__asm__("	.text\n"
	"interrupted_leaf:\n"
	"	.cfi_startproc\n" SIGNAL "	ret\n"
	"	.cfi_endproc\n"
	"	.globl interrupted_everywhere\n"
	"	.type interrupted_everywhere, @function\n"
	"interrupted_everywhere:\n"
	"	.cfi_startproc\n"
	"	mv a3, a0\n" SIGNAL "	.word 0xce104073\n" /* sspush ra */
	SIGNAL "	addi sp, sp, -16\n"
	"	.cfi_def_cfa_offset 16\n"
	"	sd ra, 8(sp)\n"
	"	.cfi_offset ra, -8\n" SIGNAL "	jal interrupted_leaf\n" SIGNAL
	"	ld ra, 8(sp)\n"
	"	.cfi_restore ra\n" SIGNAL "	addi sp, sp, 16\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.word 0xcdc0c073\n" /* sspopchk ra */
	SIGNAL "	ret\n"
	"	.cfi_endproc\n");

static noinline void interrupted_leaf_caller(void)
{
	interrupted_everywhere(getpid());
	NO_TAIL_CALL();
}

static void test_pushes(void)
{
	truth_recurse(20, interrupted_leaf_caller);
	report("a return address is there once, pushed already or not", 7);
}
#else
static void test_pushes(void)
{
	ksft_test_result_skip("every call pushes\n");
}
#endif

static int exact_n, exact_w;

static void *thread_main(void *arg)
{
	struct truth t = { .n = 0 };
	struct tree tree = { .visit = visit, .seed = (uintptr_t)arg };

	truth = &t;
	exact_n = shstk_capture(hw, MAX, &hw_opts, NULL);
	exact_w = shstk_capture(sw, MAX, &walk_opts, NULL);
	compare(exact_n, exact_w, 1);
	tree_call(&tree, 8);
	return NULL;
}

static void test_threads(void)
{
	uintptr_t i;

	for (i = 1; i < 6; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, thread_main, (void *)i);
		pthread_join(thread, NULL);
	}
	report("a thread's trace is complete down to its start", 50);
#ifdef __riscv
	exact_w--; /* the C library's function that calls thread_main() */
#endif
	ksft_test_result(exact_n && exact_n == exact_w,
			 "it has as many entries as the walk: %d, %d\n", exact_n, exact_w);
}

static void test_children(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		truth_recurse(20, visit_leaf);
		_exit(count.wrong_walk || count.wrong_end || !count.traces);
	}
	waitpid(pid, &status, 0);
	ksft_test_result(!status, "a forked child is captured\n");
	/* Inline: libc's vfork() returns twice through one entry. */
	pid = ss_syscall(__NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		truth_recurse(20, visit_leaf);
		_exit(count.wrong_walk || count.wrong_end || !count.traces);
	}
	waitpid(pid, &status, 0);
	ksft_test_result(!status, "a vfork child is captured, and its parent after it\n");
	memset(&count, 0, sizeof(count));
	truth_recurse(20, visit_leaf);
	report("the parent goes on", 1);
}

/* A page in the middle of the thread's shadow stack is unmapped: it can't return any more. */
static void unmapped_leaf(void)
{
	struct shstk_opts opts = hw_opts;
	struct shstk_info info = INFO(), part = INFO();
	uint64_t page = ss_pointer() & ~4095ul;
	int n, m, bad;

	opts.flags = SHSTK_CHECK_STACK;
	n = shstk_capture(hw, MAX, &opts, &info);
	bad = n < 1500 || info.end != SHSTK_END_COMPLETE;
	if (munmap((void *)(page + 8192), 4096))
		_exit(2);
	m = shstk_capture(sw, MAX, &opts, &part);
	bad |= m < 512 || m > 1536 || part.end != SHSTK_END_BOUNDS ||
	       memcmp(hw + 1, sw + 1, (m - 1) * sizeof(hw[0]));
	/* And without any source named. */
	opts.sources = 0;
	m = shstk_capture(sw, MAX, &opts, &part);
	bad |= m < 512;
	_exit(bad);
}

static void test_unmapped(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		truth_recurse(2000, unmapped_leaf);
	waitpid(pid, &status, 0);
	ksft_test_result(!status, "a page of the shadow stack may be taken away: %#x\n", status);
}

/* Code that nothing describes: no frame pointer, no unwind information. */
#ifdef __x86_64__
static const uint8_t noinfo_code[] = {
	0x48, 0x83, 0xec, 0x48, /* sub $72, %rsp */
	0xff, 0xd7, /* call *%rdi */
	0x48, 0x83, 0xc4, 0x48, /* add $72, %rsp */
	0xc3, /* ret */
};
#elif defined(__riscv)
static const uint32_t noinfo_code[] = {
	0xce104073, /* sspush ra */
	0xfc010113, /* addi sp, sp, -64 */
	0x02113423, /* sd ra, 40(sp) */
	0x000500e7, /* jalr a0 */
	0x02813083, /* ld ra, 40(sp) */
	0x04010113, /* addi sp, sp, 64 */
	0xcdc0c073, /* sspopchk ra */
	0x00008067, /* ret */
};
#else
static const uint32_t noinfo_code[] = {
	0xd10103ff, /* sub sp, sp, #64 */
	0xf90017fe, /* str x30, [sp, #40] */
	0xd63f0000, /* blr x0 */
	0xf94017fe, /* ldr x30, [sp, #40] */
	0x910103ff, /* add sp, sp, #64 */
	0xd65f03c0, /* ret */
};
#endif

static uint64_t noinfo_address;
static int noinfo_n, noinfo_at;

static noinline void noinfo_leaf(void)
{
	int i;

	noinfo_n = shstk_capture(hw, MAX, &hw_opts, NULL);
	for (i = 0; i < noinfo_n; i++) {
		if (hw[i] - noinfo_address < sizeof(noinfo_code))
			noinfo_at = i;
	}
	NO_TAIL_CALL();
}

static noinline int call_noinfo(void (*code)(void (*)(void)))
{
	int ok;

	TRUTH_ENTER();
	code(noinfo_leaf);
	ok = truth_equal(hw, noinfo_n, noinfo_at + 2);
	TRUTH_LEAVE();
	return ok;
}

static void test_noinfo_code(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, noinfo_code, sizeof(noinfo_code));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(code, (char *)code + 4096);
	noinfo_address = (uintptr_t)code;
	ksft_test_result(call_noinfo((void (*)(void (*)(void)))code) && noinfo_at,
			 "code without any unwind information is no obstacle\n");
}

/*
 * A second shadow stack, switched to and left again in one function. Readable
 * rubbish lies right above it.
 */
#define SECOND 0x2000000000ul

static noinline int on_second_stack(void)
{
	struct shstk_info info = INFO();
	int n;

	n = shstk_capture(hw, MAX, NULL, &info);
	ksft_print_msg("on the second stack: %d entries, %s\n", n, shstk_end_name(info.end));
	return n == 2 && info.source == SHSTK_SOURCE_HARDWARE;
}

static void test_switched(void)
{
	uint64_t *above = mmap((void *)(SECOND + 4096), 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	unsigned long left;
	int i, ok;

	for (i = 0; i < 512; i++)
		above[i] = (uintptr_t)test_switched + i;
	if (ss_map(SECOND, 4096, SS_SET_TOKEN) != SECOND) {
		ksft_test_result_fail("a second shadow stack is mapped\n");
		return;
	}
	left = ss_switch(SECOND + 4096 - 8);
	ok = on_second_stack();
	ss_switch(left);
	ksft_test_result(ok, "a switched stack ends where it ends\n");
}

/*
 * In a child: the shadow stack whose end is remembered was left for another one, below it
 * in memory, and is unmapped. Nothing returns any more.
 */
#define THIRD 0x2000100000ul

static void leave_and_unmap(void)
{
	unsigned long page = ss_pointer() & ~4095ul;
	struct shstk_info info = INFO();
	int n = 0;

	for (int i = 0; i < 2; i++)
		n = shstk_capture(hw, MAX, &hw_opts, &info);
	if (n < 2 || n > 400 || ss_map(THIRD, 4096, SS_SET_TOKEN) != THIRD)
		ss_syscall(__NR_exit_group, 2, 0, 0, 0, 0);
	ss_switch(THIRD + 4096 - 8);
	ss_syscall(__NR_munmap, page, 4096, 0, 0, 0);
	for (int i = 0; i < 2; i++)
		n = shstk_capture(hw, MAX, &hw_opts, &info);
	ss_syscall(__NR_exit_group, n < 1 || n > 2, 0, 0, 0, 0);
}

static void test_left(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		truth_recurse(20, leave_and_unmap);
	waitpid(pid, &status, 0);
	ksft_test_result(!status, "a shadow stack that was left may be unmapped: %#x\n", status);
}

/* A stopped process against what it found itself. */
static struct {
	uint64_t pcs[MAX];
	int n;
} * seen;

static noinline void stop_leaf(void)
{
	seen->n = shstk_capture(seen->pcs, MAX, &hw_opts, NULL);
	ss_syscall(__NR_kill, getpid(), SIGSTOP, 0, 0, 0);
	NO_TAIL_CALL();
}

static void test_stopped(void)
{
	struct shstk_shadow shadow = { .size = sizeof(shadow) };
	struct shstk_opts opts = OPTS(.marks = hw_marks);
	struct shstk_info info = INFO();
	int status, n, err;
	pid_t pid;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		truth_recurse(20, stop_leaf);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	err = shstk_shadow_get(pid, &shadow);
	n = shstk_unwind_shadow(&shadow, shstk_read_process, &pid, hw, MAX, &opts, &info);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (n != seen->n || n < 22)
		ksft_print_msg("%d: %d entries, %d by itself\n", err, n, seen->n);
	ksft_test_result(!err && n == seen->n && n >= 22 && info.end == SHSTK_END_COMPLETE &&
				 hw_marks[0] == SHSTK_MARK_PC &&
				 !memcmp(hw + 1, seen->pcs + 1, (n - 1) * sizeof(*hw)),
			 "a stopped process is traced from outside\n");
}

/* @ever: the thread has asked for some before shadow stacks were on. */
static noinline void test_markers(int ever)
{
#ifdef __riscv
	const int why = SHSTK_MARKER_MACHINE;
#else
	const int why = SHSTK_MARKER_HARDWARE;
#endif
	struct shstk_info info = INFO();
	int n = shstk_marker_capture(hw, MAX, &info);
	int status = shstk_marker_status();

	ksft_test_result(ever > 0 && n == 2 && info.source == SHSTK_SOURCE_HARDWARE &&
				 shstk_marker_restart() == -EOPNOTSUPP && status == why,
			 "no markers: %s\n", shstk_marker_name(status));
}

/*
 * Two shadow stacks that adjoin are one mapping to the kernel. The upper one was used
 * before and has old entries, below unused words.
 */
#define ADJOINING 0x2100000000ul

static int adjoining_entries, adjoining_end;

static void on_adjoining(void *arg)
{
	struct shstk_info info = INFO();
	long depth = (long)arg;

	if (depth) {
		on_adjoining((void *)(depth - 1));
	} else {
		adjoining_entries = shstk_capture(hw, MAX, &hw_opts, &info);
		adjoining_end = info.end;
	}
	NO_TAIL_CALL();
}

static void test_adjoining(void)
{
	long up = ss_map(ADJOINING + 4096, 4096, SS_SET_TOKEN);
	long lo = ss_map(ADJOINING, 4096, SS_SET_TOKEN);
	int alone, beside;

	if (lo != (long)ADJOINING || up != (long)ADJOINING + 4096) {
		ksft_test_result_fail("no adjoining shadow stacks: %lx %lx\n", lo, up);
		return;
	}
	shstk_stack_call(up + 4096 - 8, on_adjoining, (void *)300l);
	alone = adjoining_entries;
	shstk_stack_call(lo + 4096 - 8, on_adjoining, (void *)5l);
	beside = adjoining_entries;
	ksft_test_result(alone - beside == 295 && adjoining_end == SHSTK_END_COMPLETE,
			 "adjoining shadow stacks are two: %d and %d entries\n", alone, beside);
}

int main(void)
{
	struct shstk_info info = INFO();
	struct truth t = { .n = 0 };
	uint64_t *above;
	long ret;
	int i, ever;

	truth = &t;
	ksft_print_header();
	ksft_set_plan(22);
	ret = shstk_capture(hw, MAX, &hw_opts, NULL);
	ksft_test_result(ret == -EOPNOTSUPP, "with shadow stacks off, the hardware is refused\n");
	ever = shstk_marker_capture(hw, MAX, NULL);
	ret = ss_enable(SS_ENABLE);
	if (ret)
		ksft_exit_fail_msg("cannot enable: %ld\n", ret);
	ksft_test_result(ss_pointer(), "shadow stacks are on\n");
	above = (void *)((ss_pointer() + 4095) & ~4095ul);
	above = mmap(above, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	for (i = 0; above != MAP_FAILED && i < 512; i++)
		above[i] = (uintptr_t)main + i;
	ret = shstk_capture(hw, MAX, &hw_opts, &info);
	ksft_test_result(ret == 1 && info.end == SHSTK_END_COMPLETE,
			 "with nothing called before, the trace is one entry: %ld\n", ret);
	test_markers(ever);
	test_depths();
	test_trees();
	test_capacity();
	test_signals();
	test_pushes();
	test_threads();
	test_children();
	test_unmapped();
	test_noinfo_code();
	test_switched();
	test_left();
	test_adjoining();
	test_stopped();
	exit(ksft_cnt.ksft_fail ? 1 : 0);
}
