// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * musl_test.c - captures in a program that musl starts and runs. musl's own code
 * has no unwind information: what lies on the program's side must be right, and
 * an end in musl's code must be said to be one. Prints KTAP.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tree.h"
#include "truth.h"

#define MAX 2000

static uint64_t pcs[MAX], walked[MAX];
static long captures, wrong, reused;
static int point;
static bool failed;

static void result(bool ok, const char *name)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++point, name);
	failed |= !ok;
}

static noinline void visit(void *arg)
{
	struct shstk_opts walk = OPTS(.sources = SHSTK_USE_WALK);
	struct shstk_info info = INFO();
	int n, w;

	(void)arg;
	n = shstk_capture(pcs, MAX, NULL, &info);
	w = shstk_capture(walked, MAX, &walk, NULL);
	captures++;
	reused += info.reused > 0;
	wrong += n != w || !truth_equal(pcs, n, 2) ||
		 (info.end != SHSTK_END_COMPLETE && info.end != SHSTK_END_NO_RULE);
}

static void trees(int n)
{
	struct tree t = { .visit = visit };
	int i;

	for (i = 1; i < n; i++) {
		t.seed = i;
		tree_call(&t, i % 22);
	}
}

static void *thread_main(void *arg)
{
	struct truth *t = calloc(1, sizeof(*t));

	truth = t;
	trees(20);
	free(t);
	return arg;
}

static volatile sig_atomic_t seen, over;

static void on_signal(int sig, siginfo_t *si, void *uc)
{
	int i, n = shstk_capture_context(uc, pcs, MAX, NULL, NULL);
	uint64_t want;

	(void)sig;
	(void)si;
	if (!truth->n)
		return;
	want = truth->ra[truth->n - 1];
	for (i = 0; i < n; i++)
		seen |= pcs[i] == want && truth_equal(pcs, n, i);
}

static noinline int spin(void)
{
	volatile int i;

	TRUTH_ENTER();
	NO_TAIL_CALL(); /* the return address is noted before the loop begins */
	/* The signal comes from another thread and interrupts an instruction of this loop. */
	for (i = 0; !seen && i < 2000000000; i++)
		;
	NO_TAIL_CALL();
	TRUTH_LEAVE();
	return seen;
}

static void *kill_main(void *arg)
{
	while (!seen && !over) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	}
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	static struct truth t;
	pthread_t self = pthread_self(), thread;

	truth = &t;
	printf("TAP version 13\n1..3\n");
	trees(100);
	printf("# %ld captures, %ld reused\n", captures, reused);
	result(captures > 500 && !wrong && reused > captures / 3,
	       "captures are the truth, by memo and walk");
	wrong = 0;
	if (pthread_create(&thread, NULL, thread_main, NULL))
		return 1;
	pthread_join(thread, NULL);
	result(!wrong, "so they are in threads");
	sigaction(SIGUSR1, &sa, NULL);
	if (pthread_create(&thread, NULL, kill_main, &self))
		return 1;
	spin();
	over = 1;
	pthread_join(thread, NULL);
	result(seen, "so they are in signal handlers");
	return failed;
}
