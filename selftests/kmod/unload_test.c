// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * unload_test.c - tests that shstk_prctl.ko is in use while a call that it serves sleeps, and that
 * it can be unloaded when the call has ended
 *
 *	unload_test shstk_prctl.ko
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "stall.h"
#include "unload.h"
#include "linux/shstk.h"

static void *call(void *arg)
{
	const struct stall *stall = arg;

	prctl(PR_GET_SHADOW_STACK_STATUS, stall->page, 0, 0, 0);
	return NULL;
}

/* Starts a process that sleeps in the call until it is killed. */
static pid_t start(int ready)
{
	struct stall stall;
	pthread_t thread;
	pid_t pid = fork();
	char byte = 1;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	byte = stall_open(&stall) && !pthread_create(&thread, NULL, call, &stall) &&
	       stall_await(&stall, UNLOAD_PATIENCE);
	if (write(ready, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	unsigned long status = 77;
	int pipes[2], ret;
	char byte = 0;
	pid_t pid;

	if (argc != 2) {
		fprintf(stderr, "usage: %s shstk_prctl.ko\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	ksft_print_header();
	ksft_set_plan(4);
	ret = module_load(argv[1]);
	if (ret)
		ksft_exit_fail_msg("%s: %s\n", argv[1], strerror(-ret));

	if (pipe2(pipes, O_CLOEXEC))
		ksft_exit_fail_msg("no pipe\n");
	fflush(NULL);
	pid = start(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1 || !byte)
		ksft_exit_fail_msg("the call does not get to the page\n");

	ret = module_unload("shstk_prctl");
	ksft_test_result(ret == -EAGAIN || ret == -EBUSY, "it is in use while a call sleeps: %s\n",
			 strerror(-ret));
	ksft_test_result(!prctl(PR_GET_SHADOW_STACK_STATUS, &status, 0, 0, 0) && !status,
			 "and serves others after that was tried\n");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ret = module_unload("shstk_prctl");
	ksft_test_result(!ret, "it is unloaded when that has ended: %s\n",
			 ret > 0 ? "it hangs" : strerror(-ret));
	ret = prctl(PR_GET_SHADOW_STACK_STATUS, &status, 0, 0, 0);
	ksft_test_result(ret == -1 && errno == EINVAL, "then the kernel answers as before\n");
	ksft_finished();
}
