// SPDX-License-Identifier: GPL-2.0-or-later
/* target.h - what the parts of the target share: measured work, and the things it can do. */
#ifndef TARGET_H
#define TARGET_H

#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

/* Returns what a clock says, in seconds. */
double clock_s(clockid_t clock);
/* Writes "FUNCTION SECONDS" for the test, if the test opened the file for this. */
void tell(const char *function, double s);

/* Uses @s seconds of this thread's CPU time in the calling function. */
#define BURN(s)                                                            \
	do {                                                               \
		double start_ = clock_s(CLOCK_THREAD_CPUTIME_ID), used_;   \
		volatile unsigned int x_ = 0;                              \
                                                                           \
		do {                                                       \
			for (int i_ = 0; i_ < 20000; i_++)                 \
				x_ += i_;                                  \
			used_ = clock_s(CLOCK_THREAD_CPUTIME_ID) - start_; \
		} while (used_ < (s));                                     \
		tell(__func__, used_);                                     \
	} while (0)

/* Functions that use @s seconds of CPU time and tell it. */
NOINLINE void burn(double s);
NOINLINE void child_work(double s);
NOINLINE void after_exec_work(double s);
/* The same as the function of a thread; @arg points to a double. */
NOINLINE void *thread_work(void *arg);
/* Installs a filter that ends the process for system call @nr. Ends with 4 if there are no filters. */
void forbid(int nr);
/* A signal handler that does nothing. */
void plain_handler(int signo);

/*
 * The functions of the words in the first argument. @arg is the list of further arguments. Each
 * returns the exit status.
 */
int do_handler(char **arg);
int do_mask(char **arg);
int do_hands_on(char **arg);
int do_small_hands_on(char **arg);
int do_sandbox_hands_on(char **arg);
int do_small_handler(char **arg);
int do_small_foreign(char **arg);
int do_masked_hands_on(char **arg);
int do_small_shell(char **arg);
int do_leaves_shell(char **arg);
int do_ignored(char **arg);
int do_pending(char **arg);
int do_interrupts(char **arg);
int do_changes(char **arg);
int do_old_calls(char **arg);
int do_beside_shell(char **arg);
int do_changes_beside_shell(char **arg);
int do_spawns_together(char **arg);
int do_spawns(char **arg);
int do_masks(char **arg);
int do_guarded(char **arg);
int do_soon(char **arg);
int do_unaligned(char **arg);
int do_sigprof(char **arg);
int do_signals(char **arg);
int do_by_number(char **arg);
int do_uses(char **arg);
int do_no_tsc(char **arg);
int do_dispatches(char **arg);
int do_dispatched_before(char **arg);
int do_cancelled(char **arg);

int do_raw(char **arg);
int do_exec(char **arg);
int do_after_exec(char **arg);
int do_no_room(char **arg);
int do_spawn(char **arg);
int do_daemon(char **arg);
int do_locks(char **arg);
int do_vfork_rights(char **arg);
int do_vfork_filter(char **arg);
int do_vfork_exec_filter(char **arg);
int do_bad_filter(char **arg);
int do_no_filter(char **arg);
int do_sandbox(char **arg);
int do_root(char **arg);
int do_tracer(char **arg);
int do_traced(char **arg);
int do_limit(char **arg);
int do_scribble(char **arg);
int do_plugins(char **arg);
int do_late(char **arg);
int do_forks_locked(char **arg);
int do_raw_fork(char **arg);
int do_others_signal(char **arg);

int do_sleeps(char **arg);
int do_selects(char **arg);
int do_stacks(char **arg);
int do_waits(char **arg);

int do_altstack(char **arg);
int do_tiny_altstack(char **arg);
int do_smallstack(char **arg);
int do_deep(char **arg);
int do_undescribed(char **arg);

#endif
