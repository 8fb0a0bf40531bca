// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * reuse.c - processes and threads that all have the same number, one after the other.
 *
 *   reuse ROUNDS MILLISECONDS PROGRAM...
 *
 * In turn: a child that executes each PROGRAM with the argument MILLISECONDS, a child that executes
 * nothing, and, if the last number may be set, a thread. Each uses this much CPU time. Built with
 * NAME, it is such a program, and the function that works has this name.
 *
 * Exits with 4 if numbers may not be chosen.
 */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef NAME
#define NAME work_in_child
#endif

static volatile unsigned long sum;

static double used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/* The code of both programs is alike, so their functions have the same addresses. */
__attribute__((noinline)) void NAME(double ms)
{
	while (used() < ms)
		for (int i = 0; i < 1000; i++)
			sum += i;
}

#ifdef PROGRAM
int main(int argc, char **argv)
{
	NAME(argc > 1 ? atof(argv[1]) : 0);
	return 0;
}
#else
static pid_t number;
static double milliseconds;

__attribute__((noinline)) void work_in_thread(double ms)
{
	while (used() < ms)
		for (int i = 0; i < 1000; i++)
			sum += i;
}

/* Forks a child with the number. Another program may have the number for a moment. */
static pid_t fork_again(void)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&number,
		.set_tid_size = 1,
	};
	pid_t pid;

	for (int i = 0; i < 1000; i++) {
		pid = syscall(SYS_clone3, &args, sizeof(args));
		if (pid >= 0 || errno != EEXIST)
			return pid;
		usleep(10000);
	}
	return pid;
}

static int child(char *program, char *ms)
{
	char *argv[] = { program, ms, NULL };
	pid_t pid = fork_again();
	int status;

	if (pid < 0)
		return -1;
	if (pid)
		return waitpid(pid, &status, 0) == pid && !status ? 0 : -1;
	if (program)
		execv(program, argv);
	prctl(PR_SET_NAME, "child");
	work_in_child(milliseconds);
	_exit(!!program);
}

static void *thread(void *arg)
{
	if (gettid() != number)
		return arg;
	pthread_setname_np(pthread_self(), "thread");
	work_in_thread(milliseconds);
	return arg;
}

/* Makes a thread, after asking the kernel for the number as its next one; others may be faster. */
static void thread_again(void)
{
	pthread_t id;
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "we");

	if (!file)
		return;
	fprintf(file, "%d", number - 1);
	fclose(file);
	if (!pthread_create(&id, NULL, thread, NULL))
		pthread_join(id, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	milliseconds = atof(argv[2]);
	number = fork();
	if (!number)
		_exit(0);
	waitpid(number, NULL, 0);
	for (int round = atoi(argv[1]); round; round--) {
		for (char **program = argv + 3; *program; program++)
			if (child(*program, argv[2]))
				return errno == EPERM || errno == ENOSYS ? 4 : 1;
		if (child(NULL, argv[2]))
			return 1;
		thread_again();
	}
	return 0;
}
#endif
