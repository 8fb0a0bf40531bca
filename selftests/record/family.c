// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * family.c - a process that waits, with a child that works, a grandchild that works, too, and two
 * threads that work. Prints a line "WHO NUMBER" for each and goes on until its standard input is
 * closed.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int sink;

static void tell(const char *who)
{
	printf("%s %ld\n", who, syscall(SYS_gettid));
	fflush(stdout);
}

static __attribute__((noinline)) void work_of_grandchild(void)
{
	for (;;)
		sink++;
}

static __attribute__((noinline)) void work_of_child(void)
{
	for (;;)
		sink++;
}

static __attribute__((noinline)) void *work_of_first(void *arg)
{
	tell("first");
	for (;;)
		sink++;
	return arg;
}

static __attribute__((noinline)) void *work_of_second(void *arg)
{
	tell("second");
	for (;;)
		sink++;
	return arg;
}

static pid_t begin(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		exit(2);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The parent may have ended before prctl(). */
	if (!pid && getppid() != parent)
		_exit(3);
	return pid;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte;

	tell("parent");
	if (argc > 1) {
		if (pthread_create(&thread, NULL, work_of_first, NULL) ||
		    pthread_create(&thread, NULL, work_of_second, NULL))
			return 2;
	} else if (!begin()) {
		tell("child");
		if (!begin()) {
			tell("grandchild");
			work_of_grandchild();
		}
		work_of_child();
	}
	(void)argv;
	return read(STDIN_FILENO, &byte, 1) != 0;
}
