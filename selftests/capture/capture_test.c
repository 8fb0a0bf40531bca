// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * capture_test.c - captures of the calling thread equal what the program knows
 * of itself, verified or walked; arguments and results of the calls.
 */
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "tree.h"
#include "truth.h"

#define MAX 20000

/* Fewer trees where sanitizers or emulation make everything slower. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(__aarch64__)
#define TREES 60
#else
#define TREES 400
#endif

static uint64_t pcs[MAX];
static uint64_t walked[MAX];

/* The result of a capture that a constructor takes before main() runs. */
static int early_n;
static struct shstk_info early_info;

static __attribute__((constructor)) void early(void)
{
	early_info = INFO();
	early_n = shstk_capture(pcs, MAX, NULL, &early_info);
}

static noinline int recurse(int depth, int (*leaf)(void *), void *arg)
{
	volatile int pad[3];
	int ret;

	TRUTH_ENTER();
	pad[0] = depth;
	ret = depth ? recurse(depth - 1, leaf, arg) : leaf(arg);
	pad[0] = ret;
	NO_TAIL_CALL();
	TRUTH_LEAVE();
	return pad[0];
}

FIXTURE(capture)
{
	struct truth truth;
};

FIXTURE_SETUP(capture)
{
	self->truth.n = 0;
	truth = &self->truth;
}

FIXTURE_TEARDOWN(capture)
{
}

struct leaf {
	uint32_t sources;
	int rounds;
	int ok;
	struct shstk_info info;
};

static noinline int capture_leaf(void *arg)
{
	struct leaf *l = arg;
	struct shstk_opts opts = OPTS(.sources = l->sources);
	int i, n;

	for (i = 0; i < l->rounds; i++) {
		l->info = INFO();
		n = shstk_capture(pcs, MAX, &opts, &l->info);
		l->ok += truth_equal(pcs, n, 2);
	}
	return 0;
}

TEST_F(capture, a_walk_is_the_truth_at_any_depth)
{
	static const int depth[] = { 0, 1, 7, 100, 5000 };
	unsigned int i;

	for (i = 0; i < sizeof(depth) / sizeof(depth[0]); i++) {
		struct leaf l = { .sources = SHSTK_USE_WALK, .rounds = 2 };

		recurse(depth[i], capture_leaf, &l);
		EXPECT_EQ(l.ok, 2);
		EXPECT_EQ(l.info.source, SHSTK_SOURCE_WALK);
		EXPECT_EQ(l.info.end, SHSTK_END_COMPLETE);
		EXPECT_EQ(l.info.guessed, 0);
	}
}

/*
 * So many captures from one place that the library tries the memo again, even after it has left it
 * alone for a while because it did not pay.
 */
#define ROUNDS 200

TEST_F(capture, repeated_captures_are_verified_and_the_truth)
{
	static const int depth[] = { 0, 1, 7, 100, 5000 };
	unsigned int i;

	for (i = 0; i < sizeof(depth) / sizeof(depth[0]); i++) {
		struct leaf l = { .rounds = ROUNDS };

		recurse(depth[i], capture_leaf, &l);
		EXPECT_EQ(l.ok, ROUNDS);
		EXPECT_EQ(l.info.end, SHSTK_END_COMPLETE);
		if (depth[i] < 100)
			continue; /* on deep stacks a walk may be cheaper than the memo */
		EXPECT_EQ(l.info.source, SHSTK_SOURCE_MEMO);
		EXPECT_GT(l.info.reused, depth[i]);
	}
}

/*
 * What recurse_far() needs in its thread: a leaf that captures, and the thread's list of true
 * return addresses.
 */
struct far {
	struct leaf leaf;
	struct truth *truth;
};

static void *recurse_far(void *arg)
{
	struct far *f = arg;

	truth = f->truth;
	recurse(17000, capture_leaf, &f->leaf);
	return NULL;
}

/*
 * The deep recursion runs in a thread with a large stack, as the first thread's stack may be
 * limited.
 */
TEST_F(capture, stacks_deeper_than_the_memo_are_walked)
{
	struct far f = { .leaf.rounds = 2, .truth = &self->truth };
	pthread_attr_t attr;
	pthread_t thread;

	ASSERT_EQ(0, pthread_attr_init(&attr));
	ASSERT_EQ(0, pthread_attr_setstacksize(&attr, 16 << 20));
	ASSERT_EQ(0, pthread_create(&thread, &attr, recurse_far, &f));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(f.leaf.ok, 2);
	EXPECT_EQ(f.leaf.info.end, SHSTK_END_COMPLETE);
}

struct visits {
	long captures, wrong, reused, incomplete;
};

/* Compares a capture that may use the memo with a plain walk and with the truth. */
static noinline void visit(void *arg)
{
	struct shstk_opts walk = OPTS(.sources = SHSTK_USE_WALK);
	struct shstk_info info = INFO();
	struct visits *v = arg;
	int n, w;

	n = shstk_capture(pcs, MAX, NULL, &info);
	w = shstk_capture(walked, MAX, &walk, NULL);
	v->captures++;
	v->reused += info.reused > 0;
	v->incomplete += info.end != SHSTK_END_COMPLETE;
	/* Entry 0 is where each capture was called, so it differs between the two calls. */
	if (n != w || memcmp(pcs + 1, walked + 1, (n - 1) * sizeof(pcs[0])) ||
	    !truth_equal(pcs, n, 2))
		v->wrong++;
}

TEST_F(capture, random_call_trees_give_the_same_by_memo_and_walk)
{
	struct visits v = { 0 };
	struct tree t = { .visit = visit, .arg = &v };

	for (t.seed = 1; t.seed < TREES; t.seed++) {
		uint64_t seed = t.seed;

		tree_call(&t, 1 + seed % 25);
		t.seed = seed;
	}
	printf("# %ld captures, %ld reused frames\n", v.captures, v.reused);
	EXPECT_GT(v.captures, TREES * 25);
	EXPECT_EQ(v.wrong, 0);
	EXPECT_EQ(v.incomplete, 0);
	EXPECT_GT(v.reused, v.captures / 2);
}

static noinline void visit_sometimes(void *arg)
{
	static unsigned int n;
	struct shstk_opts walk = OPTS(.sources = SHSTK_USE_WALK);
	struct visits *v = arg;
	unsigned int room = n++ * 2654435761u >> 27;
	int got, w;

	got = shstk_capture(pcs, room, NULL, NULL);
	w = shstk_capture(walked, room, &walk, NULL);
	v->captures++;
	if (got != w || (got > 1 && memcmp(pcs + 1, walked + 1, (got - 1) * sizeof(pcs[0]))))
		v->wrong++;
}

TEST_F(capture, arrays_of_changing_size_give_the_same_by_memo_and_walk)
{
	struct visits v = { 0 };
	struct tree t = { .visit = visit_sometimes, .arg = &v };

	for (t.seed = 1; t.seed < TREES / 4; t.seed++) {
		uint64_t seed = t.seed;

		tree_call(&t, 1 + seed % 25);
		t.seed = seed;
	}
	EXPECT_EQ(v.wrong, 0);
	EXPECT_GT(v.captures, TREES);
}

static noinline int capacity_leaf(void *arg)
{
	struct shstk_info info = INFO();
	bool *ok = arg;
	unsigned int i;

	*ok = true;
	for (i = 0; i < 60; i++) {
		pcs[i] = ~0ull;
		if (shstk_capture(pcs, i, NULL, &info) != (int)i ||
		    info.end != SHSTK_END_CAPACITY || pcs[i] != ~0ull)
			*ok = false;
	}
	return 0;
}

TEST_F(capture, a_full_array_ends_the_trace_and_says_so)
{
	bool ok;

	recurse(100, capacity_leaf, &ok);
	EXPECT_TRUE(ok);
}

static noinline int skip_leaf(void *arg)
{
	bool *ok = arg;
	int i, n, all;

	*ok = true;
	for (i = 0; i < 40; i++) {
		struct shstk_opts opts = OPTS(.skip = i);

		all = shstk_capture(walked, MAX, NULL, NULL);
		n = shstk_capture(pcs, MAX, &opts, NULL);
		if (n != all - i || (i && memcmp(pcs, walked + i, n * 8)))
			*ok = false;
	}
	return 0;
}

TEST_F(capture, skip_leaves_out_the_innermost_entries)
{
	bool ok;

	recurse(60, skip_leaf, &ok);
	EXPECT_TRUE(ok);
}

TEST_F(capture, skipping_all_gives_nothing)
{
	struct shstk_opts opts = OPTS(.skip = 1000);

	EXPECT_EQ(shstk_capture(pcs, MAX, &opts, NULL), 0);
}

TEST_F(capture, bad_arguments_are_refused)
{
	struct shstk_info info = { .size = 4 };
	struct shstk_opts opts;

	EXPECT_EQ(shstk_capture(NULL, 1, NULL, NULL), -EINVAL);
	EXPECT_EQ(shstk_capture(NULL, 0, NULL, NULL), 0);
	EXPECT_EQ(shstk_capture(pcs, 1, NULL, &info), -EINVAL);
	opts = OPTS(.flags = ~SHSTK_CHECK_STACK);
	EXPECT_EQ(shstk_capture(pcs, 1, &opts, NULL), -EINVAL);
	opts = OPTS(.sources = 1u << 31);
	EXPECT_EQ(shstk_capture(pcs, 1, &opts, NULL), -EINVAL);
	opts = OPTS(.sources = 0);
	opts.size = 4;
	EXPECT_EQ(shstk_capture(pcs, 1, &opts, NULL), -EINVAL);
	EXPECT_EQ(shstk_capture_context(NULL, pcs, 1, NULL, NULL), -EINVAL);
	EXPECT_EQ(shstk_get_stats(NULL), -EINVAL);
}

TEST_F(capture, errno_is_kept)
{
	errno = 12345;
	shstk_modules_changed();
	shstk_capture(pcs, MAX, NULL, NULL);
	EXPECT_EQ(errno, 12345);
	errno = 54321;
	shstk_capture(NULL, 1, NULL, NULL);
	EXPECT_EQ(errno, 54321);
}

TEST_F(capture, before_main_it_works)
{
	EXPECT_GT(early_n, 1);
	EXPECT_EQ(early_info.end, SHSTK_END_COMPLETE);
}

static int report_fd;

static void late(void)
{
	struct shstk_info info = INFO();
	int n = shstk_capture(pcs, MAX, NULL, &info);
	char ok = n > 1 && info.end == SHSTK_END_COMPLETE ? 'y' : 'n';

	if (write(report_fd, &ok, 1) != 1)
		_exit(1);
}

TEST_F(capture, after_main_it_works)
{
	int fd[2], status;
	char ok = 0;
	pid_t pid;

	ASSERT_EQ(pipe(fd), 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		report_fd = fd[1];
		atexit(late);
		exit(0);
	}
	close(fd[1]);
	EXPECT_EQ(read(fd[0], &ok, 1), 1);
	EXPECT_EQ(ok, 'y');
	waitpid(pid, &status, 0);
}

/*
 * Coroutines: every stack is the library's concern while a capture runs on it.
 */
static ucontext_t main_context, co_context[2];
static struct truth co_truth[2];
static long co_wrong;

static noinline int co_leaf(void *arg)
{
	struct shstk_info info = INFO();
	int me = *(int *)arg;
	int n, i;

	for (i = 0; i < 50; i++) {
		truth = &co_truth[me];
		n = shstk_capture(pcs, MAX, NULL, &info);
		co_wrong += !truth_equal(pcs, n, 2);
		swapcontext(&co_context[me], &co_context[!me]);
	}
	return 0;
}

static void co_main(int me)
{
	truth = &co_truth[me];
	recurse(10 + 20 * me, co_leaf, &me);
}

TEST_F(capture, coroutines_by_swapcontext_are_captured_on_their_stacks)
{
	int i;

	for (i = 0; i < 2; i++) {
		getcontext(&co_context[i]);
		co_context[i].uc_stack.ss_sp = malloc(128 << 10);
		co_context[i].uc_stack.ss_size = 128 << 10;
		co_context[i].uc_link = &main_context;
		makecontext(&co_context[i], (void (*)(void))co_main, 1, i);
	}
	swapcontext(&main_context, &co_context[0]);
	EXPECT_EQ(co_wrong, 0);
	for (i = 0; i < 2; i++)
		free(co_context[i].uc_stack.ss_sp);
}

/*
 * A page between sp and the start of the stack is taken away once the stack is known, and
 * given back: by its protection, and as a hole.
 */
static long guard_wrong;

static noinline void capture_without(char *page, size_t size, bool hole)
{
	struct shstk_opts opts = OPTS(.flags = SHSTK_CHECK_STACK);
	struct shstk_info info = INFO();
	char *away = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int n;

	if (hole)
		away = mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, away);
	else
		mprotect(page, size, PROT_NONE);
	n = shstk_capture(pcs, MAX, &opts, &info);
	if (hole)
		mremap(away, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, page);
	else
		mprotect(page, size, PROT_READ | PROT_WRITE);
	if (!hole)
		munmap(away, size);
	guard_wrong += n < 3 || info.end == SHSTK_END_COMPLETE;
}

static noinline int guarded_leaf(void *arg)
{
	size_t size = sysconf(_SC_PAGESIZE);
	struct shstk_opts opts = OPTS(.flags = SHSTK_CHECK_STACK);
	char *page = (char *)(((uintptr_t)__builtin_frame_address(0) & -size) + 2 * size);
	struct shstk_info info = INFO();
	int i, n;

	for (i = 0; i < 6; i++) {
		n = shstk_capture(pcs, MAX, &opts, &info);
		guard_wrong += info.end != SHSTK_END_COMPLETE || !truth_equal(pcs, n, 2);
		capture_without(page, size, i % 2);
		n = shstk_capture(pcs, MAX, &opts, &info);
		guard_wrong += info.end != SHSTK_END_COMPLETE || !truth_equal(pcs, n, 2);
	}
	return 0;
}

/* Captures with a page taken away, below so many frames that they fill more than four pages. */
static void *run_guarded(void *arg)
{
	static struct truth of_stack;

	of_stack.n = 0;
	truth = &of_stack;
	recurse(sysconf(_SC_PAGESIZE) / 8, guarded_leaf, NULL);
	return NULL;
}

static void co_guarded(void)
{
	run_guarded(NULL);
}

#ifdef __aarch64__
/*
 * calls_with_zero(): calls its argument while its return address is 0 in memory, as that of
 * libgcc's _Unwind_RaiseException() may be when it has put the registers of the handler's
 * frame there. Its fp is not 0.
 */
void calls_with_zero(void (*fn)(void));
__asm__("	.text\n"
	"	.type calls_with_zero, %function\n"
	"calls_with_zero:\n"
	"	.cfi_startproc\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	stp x29, x30, [sp, #16]\n"
	"	mov x9, sp\n"
	"	stp x9, xzr, [sp]\n"
	"	blr x0\n"
	"	ldp x29, x30, [sp, #16]\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	add sp, sp, #32\n"
	"	.cfi_def_cfa_offset 0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size calls_with_zero, . - calls_with_zero\n");

static long zero_wrong;

static noinline void below_zero(void)
{
	static const uint32_t source[] = { SHSTK_USE_WALK, SHSTK_USE_MEMO, SHSTK_USE_MEMO };

	for (int i = 0; i < 3; i++) {
		struct shstk_opts opts = OPTS(.sources = source[i]);
		struct shstk_info info = INFO();
		int n = shstk_capture(pcs, MAX, &opts, &info);

		zero_wrong += n < 2 || info.end == SHSTK_END_COMPLETE;
	}
}

TEST_F(capture, a_zero_is_no_end_while_fp_goes_on)
{
	calls_with_zero(below_zero);
	EXPECT_EQ(zero_wrong, 0);
}
#endif

/*
 * Returns whether madvise() tells readable pages from unreadable ones: some emulators say yes, or
 * no, to everything.
 */
static bool kernel_checks(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool ret = madvise(p, size, 22 /* MADV_POPULATE_READ */);

	mprotect(p, size, PROT_READ);
	ret = ret && !madvise(p, size, 22);
	munmap(p, size);
	return ret;
}

TEST_F(capture, a_page_of_the_stack_may_be_taken_away)
{
	size_t size = 1 << 20;
	pthread_t thread;

	if (!kernel_checks())
		SKIP(return, "madvise(MADV_POPULATE_READ) does not tell here what is readable");
	guard_wrong = 0;
	run_guarded(NULL);
	EXPECT_EQ(guard_wrong, 0);
	ASSERT_EQ(pthread_create(&thread, NULL, run_guarded, NULL), 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(guard_wrong, 0);
	getcontext(&co_context[0]);
	co_context[0].uc_stack.ss_sp =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	co_context[0].uc_stack.ss_size = size;
	co_context[0].uc_link = &main_context;
	makecontext(&co_context[0], co_guarded, 0);
	swapcontext(&main_context, &co_context[0]);
	EXPECT_EQ(guard_wrong, 0);
	munmap(co_context[0].uc_stack.ss_sp, size);
}

/*
 * Runs in a process of its own, in which nothing was captured yet: the library does not know the
 * bounds of the stack.
 */
TEST_F(capture, finds_its_stack_without_a_descriptor)
{
	struct leaf l = { .rounds = 3 };
	struct rlimit none = { 0, 0 };

	if (!kernel_checks())
		SKIP(return, "madvise(MADV_POPULATE_READ) does not tell here what is readable");
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	recurse(sysconf(_SC_PAGESIZE) / 8, capture_leaf, &l);
	EXPECT_EQ(l.ok, 3);
}

TEST_F(capture, a_forked_child_is_captured)
{
	struct leaf l = { .rounds = 3 };
	int status;
	pid_t pid;

	recurse(30, capture_leaf, &l);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		l = (struct leaf){ .rounds = 3 };
		recurse(30, capture_leaf, &l);
		if (l.ok != 3 || l.info.source != SHSTK_SOURCE_MEMO)
			_exit(1);
		pid = fork();
		if (!pid) {
			l = (struct leaf){ .rounds = 3 };
			recurse(40, capture_leaf, &l);
			_exit(l.ok != 3);
		}
		_exit(waitpid(pid, &status, 0) != pid || status);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

TEST_F(capture, a_vfork_child_is_captured)
{
	int status;
	pid_t pid;

	pid = vfork();
	if (!pid) {
		struct leaf l = { .rounds = 2 };

		recurse(10, capture_leaf, &l);
		_exit(l.ok != 2);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

/*
 * Reads this process's memory for the remote interface, which must give the same trace from our own
 * maps.
 */
static int read_self(void *arg, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	memcpy(buf, (void *)(uintptr_t)addr, len);
	return 0;
}

static void get_regs(struct shstk_regs *r, const ucontext_t *uc)
{
	*r = (struct shstk_regs){ .size = sizeof(*r) };
#ifdef __x86_64__
	r->pc = uc->uc_mcontext.gregs[REG_RIP];
	r->r[3] = uc->uc_mcontext.gregs[REG_RBX];
	r->r[6] = uc->uc_mcontext.gregs[REG_RBP];
	r->r[7] = uc->uc_mcontext.gregs[REG_RSP];
	r->r[12] = uc->uc_mcontext.gregs[REG_R12];
	r->r[13] = uc->uc_mcontext.gregs[REG_R13];
	r->r[14] = uc->uc_mcontext.gregs[REG_R14];
	r->r[15] = uc->uc_mcontext.gregs[REG_R15];
	r->known = 0xf0c8;
#else
	memcpy(r->r, uc->uc_mcontext.regs, 31 * 8);
	r->r[31] = uc->uc_mcontext.sp;
	r->pc = uc->uc_mcontext.pc;
	r->known = 0xffffffff;
#endif
}

struct remote {
	struct shstk_space *space;
	int ok;
	struct shstk_info info;
};

static noinline __attribute__((no_sanitize("address"))) int remote_leaf(void *arg)
{
	struct remote *r = arg;
	struct shstk_regs regs;
	ucontext_t uc;
	int n;

	getcontext(&uc);
	get_regs(&regs, &uc);
	r->info = INFO();
	n = shstk_unwind(r->space, &regs, read_self, NULL, pcs, MAX, NULL, &r->info);
	r->ok = truth_equal(pcs, n, 2);
	return 0;
}

TEST_F(capture, unwinding_from_registers_gives_the_truth)
{
	struct remote r = { .ok = 0 };

#ifdef __SANITIZE_ADDRESS__
	SKIP(return, "the callback reads other frames' memory");
#endif
#ifdef __x86_64__
	ASSERT_EQ(shstk_space_create(SHSTK_ARCH_X86, &r.space), 0);
#else
	ASSERT_EQ(shstk_space_create(SHSTK_ARCH_ARM64, &r.space), 0);
#endif
	ASSERT_GT(shstk_space_add_pid(r.space, getpid()), 0);
	recurse(40, remote_leaf, &r);
	EXPECT_TRUE(r.ok);
	EXPECT_EQ(r.info.end, SHSTK_END_COMPLETE);
	shstk_space_destroy(r.space);
}

static int read_nothing(void *arg, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	(void)addr;
	(void)buf;
	(void)len;
	return -EFAULT;
}

TEST_F(capture, interrupted_code_of_no_file_is_an_entry)
{
	static const int archs[] = { SHSTK_ARCH_X86, SHSTK_ARCH_ARM64, SHSTK_ARCH_RISCV };

	for (unsigned int i = 0; i < ARRAY_SIZE(archs); i++) {
		struct shstk_regs regs = { .size = sizeof(regs), .pc = 0x10800 };
		struct shstk_info info = { .size = sizeof(info) };
		struct shstk_space *s;
		uint64_t pcs[4];

		ASSERT_EQ(shstk_space_create(archs[i], &s), 0);
		EXPECT_EQ(shstk_space_add_code(s, 0x10000, 0x11000), 0);
		EXPECT_EQ(shstk_unwind(s, &regs, read_nothing, NULL, pcs, 4, NULL, &info), 1);
		EXPECT_EQ(pcs[0], 0x10800);
		EXPECT_NE(info.end, SHSTK_END_COMPLETE);
		shstk_space_destroy(s);
	}
}

TEST_F(capture, space_refuses_bad_arguments)
{
	struct shstk_space *s;
	char junk[4096];

	EXPECT_EQ(shstk_space_create(99, &s), -EINVAL);
	ASSERT_EQ(shstk_space_create(SHSTK_ARCH_X86, &s), 0);
	EXPECT_EQ(shstk_space_add_file(s, "/nonexistent", 4096, 8192, 0), -ENOENT);
	EXPECT_EQ(shstk_space_add_file(s, "/proc/self/exe", 8192, 4096, 0), -EINVAL);
	EXPECT_EQ(shstk_space_add_file(s, "/dev/null", 4096, 8192, 0), -ENOEXEC);
	memset(junk, 0xff, sizeof(junk));
	EXPECT_EQ(shstk_space_add_image(s, junk, sizeof(junk), 4096), -ENOEXEC);
	EXPECT_EQ(shstk_space_add_pid(s, -1), -EINVAL);
	EXPECT_EQ(shstk_space_add_pid(s, 0x7ffffff0), -ESRCH);
	shstk_space_destroy(s);
	shstk_space_destroy(NULL);
}

TEST_HARNESS_MAIN
