// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread_test.c - captures in threads that come and go, that the library has
 * never seen, whose first capture is in a handler, under the loader's lock.
 */
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "truth.h"

#define MAX 256

/* Fewer forks where emulation makes them slow. */
#ifdef __aarch64__
#define FORKS 5
#else
#define FORKS 50
#endif

__thread struct truth *truth;

static noinline int recurse(int depth, int (*leaf)(void))
{
	volatile int ret;

	TRUTH_ENTER();
	ret = depth ? recurse(depth - 1, leaf) : leaf();
	NO_TAIL_CALL();
	TRUTH_LEAVE();
	return ret;
}

static noinline int capture_leaf(void)
{
	uint64_t pcs[MAX];
	int i, n, good = 0;

	for (i = 0; i < 3; i++) {
		struct shstk_info info = INFO();

		n = shstk_capture(pcs, MAX, NULL, &info);
		good += truth_equal(pcs, n, 2) && info.end == SHSTK_END_COMPLETE;
	}
	return good;
}

static void *capture_thread(void *arg)
{
	struct truth t = { .n = 0 };
	int *depth = arg;

	truth = &t;
	*depth = recurse(*depth, capture_leaf);
	return NULL;
}

TEST(threads_the_library_has_never_seen_are_captured)
{
	pthread_t thread[30];
	int result[30];
	int i;

	for (i = 0; i < 30; i++) {
		result[i] = i * 3;
		ASSERT_EQ(pthread_create(&thread[i], NULL, capture_thread, &result[i]), 0);
	}
	for (i = 0; i < 30; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(result[i], 3);
	}
}

TEST(states_of_dead_threads_are_used_again)
{
	struct shstk_stats stats = { .size = sizeof(stats) };
	pthread_t thread[10];
	int result[10];
	int round, i;

	for (round = 0; round < 100; round++) {
		for (i = 0; i < 10; i++) {
			result[i] = 5;
			ASSERT_EQ(pthread_create(&thread[i], NULL, capture_thread, &result[i]), 0);
		}
		for (i = 0; i < 10; i++) {
			pthread_join(thread[i], NULL);
			EXPECT_EQ(result[i], 3);
		}
	}
	ASSERT_EQ(shstk_get_stats(&stats), 0);
	printf("# %u states after 1000 threads, 10 at a time\n", stats.threads);
	EXPECT_LE(stats.threads, 40);
}

static sem_t in_handler, go;
static int handler_end, handler_n;

static void on_first(int sig, siginfo_t *si, void *uc)
{
	struct shstk_info info = INFO();
	uint64_t pcs[MAX];

	(void)sig;
	(void)si;
	handler_n = shstk_capture_context(uc, pcs, MAX, NULL, &info);
	handler_end = info.end;
	sem_post(&in_handler);
}

static void *waiting_thread(void *arg)
{
	stack_t ss = { .ss_size = 64 << 10 };

	ss.ss_sp = malloc(ss.ss_size);
	sigaltstack(&ss, NULL);
	sem_post(&go);
	sem_wait(arg);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	free(ss.ss_sp);
	return NULL;
}

TEST(the_first_capture_of_a_thread_may_be_in_a_handler_on_an_alternate_stack)
{
	struct sigaction sa = { .sa_sigaction = on_first,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	pthread_t thread;
	sem_t stop;

	sigaction(SIGUSR1, &sa, NULL);
	sem_init(&in_handler, 0, 0);
	sem_init(&go, 0, 0);
	sem_init(&stop, 0, 0);
	ASSERT_EQ(pthread_create(&thread, NULL, waiting_thread, &stop), 0);
	sem_wait(&go);
	usleep(20000);
	pthread_kill(thread, SIGUSR1);
	sem_wait(&in_handler);
	sem_post(&stop);
	pthread_join(thread, NULL);
	EXPECT_GT(handler_n, 2);
	EXPECT_EQ(handler_end, SHSTK_END_COMPLETE);
}

static sem_t lock_held, lock_drop;

static int hold(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	sem_post(&lock_held);
	sem_wait(&lock_drop);
	return 1;
}

static void *hold_loader_lock(void *arg)
{
	(void)arg;
	dl_iterate_phdr(hold, NULL);
	return NULL;
}

TEST(no_capture_waits_for_the_loaders_lock)
{
	pthread_t holder, thread;
	int result = 10;

	sem_init(&lock_held, 0, 0);
	sem_init(&lock_drop, 0, 0);
	ASSERT_EQ(pthread_create(&holder, NULL, hold_loader_lock, NULL), 0);
	sem_wait(&lock_held);
	alarm(200); /* ends the test if it deadlocks */
	/* The library knows nothing yet: it finds modules, stack and rules now. */
	ASSERT_EQ(pthread_create(&thread, NULL, capture_thread, &result), 0);
	pthread_join(thread, NULL);
	shstk_modules_changed();
	alarm(0);
	EXPECT_EQ(result, 3);
	sem_post(&lock_drop);
	pthread_join(holder, NULL);
}

static volatile bool stop_threads;
static int capturing;

static void *capture_until_stopped(void *arg)
{
	struct truth t = { .n = 0 };
	long *wrong = arg;

	truth = &t;
	*wrong += recurse(20, capture_leaf) != 3;
	__atomic_add_fetch(&capturing, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stop_threads, __ATOMIC_RELAXED))
		*wrong += recurse(20, capture_leaf) != 3;
	return NULL;
}

TEST(a_fork_among_capturing_threads_leaves_a_child_that_captures)
{
	struct shstk_stats stats = { .size = sizeof(stats) };
	long wrong[4] = { 0 };
	pthread_t thread[4];
	int i, status;

#ifdef __SANITIZE_THREAD__
	SKIP(return, "the sanitizer does not support threads after a fork");
#endif
	for (i = 0; i < 4; i++)
		ASSERT_EQ(pthread_create(&thread[i], NULL, capture_until_stopped, &wrong[i]), 0);
	/*
	 * Waits until all threads capture before it forks: a new thread allocates, and the locks of
	 * sanitizers do not survive a fork.
	 */
	while (__atomic_load_n(&capturing, __ATOMIC_ACQUIRE) < 4)
		sched_yield();
	for (i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		ASSERT_GE(pid, 0);
		if (!pid) {
			struct truth t = { .n = 0 };
			int result = 15, k;
			pthread_t child;

			truth = &t;
			if (recurse(10, capture_leaf) != 3)
				_exit(1);
			for (k = 0; k < 20; k++) {
				result = 15;
				pthread_create(&child, NULL, capture_thread, &result);
				pthread_join(child, NULL);
				if (result != 3)
					_exit(2);
			}
			/* In the child the states of the other threads are free. */
			shstk_get_stats(&stats);
			_exit(stats.threads > 12 ? 3 : 0);
		}
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_EQ(status, 0);
	}
	__atomic_store_n(&stop_threads, true, __ATOMIC_RELAXED);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(wrong[i], 0);
	}
}

TEST_HARNESS_MAIN
