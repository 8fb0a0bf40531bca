// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread_test.c - the shadow stacks of threads and child processes
 */
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>

#include "facts.h"
#include "kselftest_harness.h"

#define STACK (1UL << 20)

/* What a new thread or process found when it began. */
struct found {
	unsigned long ssp;
	unsigned long status;
	uint64_t word[4]; /* words from the pointer on */
	struct mapping map;
	bool mapped;
};

/*
 * The pointer at the call of a thread's first function: the call has pushed one entry since then,
 * except where functions must push for themselves.
 */
#if defined(__riscv)
#define CALLED 0
#else
#define CALLED 1
#endif

ss_inline void find_out(struct found *found)
{
	found->ssp = ss_pointer();
	ss_status(&found->status);
	found->mapped = find_mapping(found->ssp - WORD, &found->map);
	for (int i = 0; i < 4; i++)
		if (found->ssp + i * WORD < found->map.end)
			found->word[i] = peek(found->ssp + i * WORD);
}

/* ---- Threads ---- */

static void *as_thread(void *arg)
{
	find_out(arg);
	return NULL;
}

/* Runs a thread. Returns whether that worked; the thread itself notes what it found. */
static bool run_thread(size_t stack, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	bool ok;

	pthread_attr_init(&attr);
	ok = !pthread_attr_setstacksize(&attr, stack) && !pthread_create(&thread, &attr, fn, arg) &&
	     !pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	return ok;
}

TEST(a_thread_has_a_shadow_stack_of_its_own)
{
	struct found found = { 0 };
	struct mapping own;

	ASSERT_TRUE(run_thread(STACK, as_thread, &found));
	ASSERT_TRUE(found.mapped);
	EXPECT_TRUE(found.map.shadow);
	ASSERT_TRUE(find_mapping(ss_pointer() - WORD, &own));
	EXPECT_NE(own.start, found.map.start);
}

TEST(a_thread_takes_over_the_status)
{
	struct found found = { 0 };

	ASSERT_TRUE(run_thread(STACK, as_thread, &found));
	EXPECT_EQ(SS_ENABLE, found.status);
}

static void *try_to_disable(void *arg)
{
	*(long *)arg = ss_disable(SS_ENABLE);
	return NULL;
}

static void lock_and_start(void *arg)
{
	long answer = 0;

	(void)arg;
	ss_lock(SS_ENABLE);
	if (!run_thread(STACK, try_to_disable, &answer))
		_exit(99);
	_exit(-answer);
}

TEST(a_thread_takes_over_the_lock)
{
	EXPECT_EQ(SS_LOCKED, run_child(lock_and_start, NULL).status);
}

static void *lock_here(void *arg)
{
	*(long *)arg = ss_lock(SS_ENABLE);
	return NULL;
}

static void start_and_unlock(void *arg)
{
	long answer = -1;

	(void)arg;
	if (!run_thread(STACK, lock_here, &answer) || answer)
		_exit(99);
	answer = ss_disable(SS_ENABLE);
	_exit(-answer);
}

TEST(a_lock_holds_for_its_thread_only)
{
	EXPECT_EQ(0, run_child(start_and_unlock, NULL).status);
}

static void *see_gone(void *arg)
{
	*(unsigned long *)arg = ss_pointer() - WORD;
	return NULL;
}

TEST(a_threads_shadow_stack_is_gone_after_its_end)
{
	struct mapping map;
	unsigned long addr = 0;

	ASSERT_TRUE(run_thread(STACK, see_gone, &addr));
	/* The kernel frees the stack only after it has told the joining thread. */
	for (int i = 0; i < 30000 && find_mapping(addr, &map) && map.shadow; i++)
		usleep(1000);
	EXPECT_FALSE(find_mapping(addr, &map) && map.shadow);
}

/* ---- clone3() ---- */

static char stack[STACK] __attribute__((aligned(16)));

/* Runs a child on an ordinary stack of its own, and waits for its exit. */
static bool run_clone(uint64_t flags, uint64_t size, void (*fn)(void *), void *arg)
{
	struct clone_args args = {
		.flags = flags,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)stack,
		.stack_size = size,
	};
	int status = -1;
	long pid;

	pid = ss_clone3(&args, sizeof(args), fn, arg);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static void as_clone(void *arg)
{
	find_out(arg);
}

FIXTURE(clone3){};
FIXTURE_SETUP(clone3)
{
}
FIXTURE_TEARDOWN(clone3)
{
}
FIXTURE_VARIANT(clone3)
{
	uint64_t size;
};
FIXTURE_VARIANT_ADD(clone3, of_64_KiB){ .size = 64 << 10 };
FIXTURE_VARIANT_ADD(clone3, off_a_page_boundary){ .size = (64 << 10) + 16 };
FIXTURE_VARIANT_ADD(clone3, of_1_MiB){ .size = 1 << 20 };

TEST_F(clone3, sizes_the_shadow_stack_by_the_stack)
{
	struct found found = { 0 };

	ASSERT_TRUE(run_clone(CLONE_VM, variant->size, as_clone, &found));
	ASSERT_TRUE(found.mapped);
	EXPECT_EQ(ss_thread_size(variant->size, getpagesize()), found.map.end - found.map.start);
}

TEST(a_new_shadow_stack_holds_the_end_words_and_what_was_called)
{
	struct found found = { 0 };

	ASSERT_TRUE(run_clone(CLONE_VM, STACK, as_clone, &found));
	EXPECT_EQ(found.map.end - (SS_END_WORDS + CALLED) * WORD, found.ssp);
	for (int i = 0; i < CALLED; i++)
		EXPECT_NE(0, found.word[i]);
	for (int i = 0; i < SS_END_WORDS; i++)
		EXPECT_EQ(0, found.word[CALLED + i]);
}

static int as_old_clone(void *arg)
{
	find_out(arg);
	return 0;
}

TEST(clone_knows_no_stack_size_and_takes_the_limit)
{
	struct found found = { 0 };
	struct rlimit rlim;
	int status = -1;
	pid_t pid;

	ASSERT_EQ(0, getrlimit(RLIMIT_STACK, &rlim));
	pid = clone(as_old_clone, stack + STACK, CLONE_VM | SIGCHLD, &found);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(ss_size(rlim.rlim_cur, getpagesize()), found.map.end - found.map.start);
}

/* ---- fork() and vfork() ---- */

TEST(fork_gives_the_child_the_same_pointer_in_a_copy)
{
	unsigned long before = ss_pointer();
	struct found *found = shared_page();
	int status = -1;
	pid_t pid;

	pid = fork();
	if (!pid) {
		find_out(found);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(before, found->ssp);
	EXPECT_EQ(SS_ENABLE, found->status);
	for (int i = 0; i < 4 && before + i * WORD < found->map.end; i++)
		EXPECT_EQ(peek(before + i * WORD), found->word[i]);
}

static void fork_and_return(pid_t *pid)
{
	*pid = fork();
}

TEST(a_forked_child_returns_through_the_frames_of_its_parent)
{
	int status = -1;
	pid_t pid;

	fork_and_return(&pid);
	if (!pid)
		_exit(7);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(7, WEXITSTATUS(status));
}

/* Pushes an entry below the pointer: what the parent finds there tells whether both share it. */
static void noinline push(void *arg)
{
	uint64_t ra = RETURN_ADDRESS();

	ss_enter(ra);
	((struct found *)arg)->ssp = ss_pointer();
	((struct found *)arg)->word[0] = peek(ss_pointer());
	ss_leave(ra);
}

TEST(fork_copies_what_the_child_pushes_the_parent_does_not_see)
{
	struct found *found = shared_page();
	unsigned long before = ss_pointer();
	uint64_t was = peek(before - WORD);
	int status = -1;
	long pid;

	pid = ss_syscall(__NR_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		push(found);
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
	}
	/* Until the word was looked at, this function makes no call of its own. */
	ss_syscall(__NR_wait4, pid, (unsigned long)&status, 0, 0, 0);
	uint64_t is = peek(before - WORD);

	EXPECT_EQ(0, status);
	EXPECT_EQ(before - WORD, found->ssp);
	EXPECT_NE(was, found->word[0]);
	EXPECT_EQ(was, is);
}

TEST(vfork_shares_what_the_child_pushes_the_parent_sees)
{
	struct found *found = shared_page();
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)stack,
		.stack_size = STACK,
	};
	unsigned long before = ss_pointer();
	int status = -1;
	long pid;

	pid = ss_clone3(&args, sizeof(args), push, found);
	uint64_t is = peek(before - WORD);
	unsigned long after = ss_pointer();

	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(before - WORD, found->ssp);
	EXPECT_EQ(is, found->word[0]);
	EXPECT_EQ(before, after);
}

TEST(vfork_with_a_copied_address_space_copies_the_shadow_stack)
{
	struct found *found = shared_page();
	unsigned long before = ss_pointer();
	uint64_t was = peek(before - WORD);
	struct clone_args args = {
		.flags = CLONE_VFORK,
		.exit_signal = SIGCHLD,
	};
	int status = -1;
	long pid;

	pid = ss_clone3(&args, sizeof(args), push, found);
	uint64_t is = peek(before - WORD);

	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(before - WORD, found->ssp);
	EXPECT_EQ(was, is);
}

/* ---- exec ---- */

static int report_status(void)
{
	unsigned long bits = ~0UL, ssp = ss_pointer();

	if (ss_status(&bits))
		return 1;
	printf("%lx %lx %ld\n", bits, ssp, ss_enable(SS_ENABLE));
	fflush(NULL);
	_exit(0);
}

TEST(exec_clears_status_and_lock)
{
	unsigned long bits = ~0UL, ssp = ~0UL;
	char line[64];
	long answer = -1;

	EXPECT_EQ(0, ss_lock(SS_ENABLE));
	ASSERT_TRUE(run_self("--status", "", line, sizeof(line)));
	ASSERT_EQ(3, sscanf(line, "%lx %lx %ld", &bits, &ssp, &answer));
	EXPECT_EQ(0, bits);
	EXPECT_EQ(0, ssp);
	EXPECT_EQ(0, answer);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--status"))
		return report_status();
	START_SHADOW_STACK(0);
	exit(test_harness_run(argc, argv));
}
