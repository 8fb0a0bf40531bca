// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_unload_test.c - shstk_perf.ko is in use while a page is brought in for a deferred
 * callchain, for as long as that takes, and can be unloaded when it has ended
 *
 *   rules_unload_test shstk_perf.ko SHSTK
 *
 * SHSTK is the command, which compiles this program's own table. A child's stack pointer
 * leads to a page that somebody else holds back.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "sampler.h"
#include "stall.h"
#include "unload.h"

#define PERIOD 200000 /* ns */

static struct stall stall;
static int ready[2];

/* Its return address is to be read at @sp. */
static __attribute__((noinline, noreturn)) void spin_at(unsigned long sp)
{
#ifdef __x86_64__
	asm volatile("mov %0, %%rsp\n"
		     "1:	pause\n"
		     "	jmp 1b"
		     :
		     : "r"(sp));
#endif
	(void)sp;
	__builtin_unreachable();
}

static void *tell(void *arg)
{
	char byte = stall_await(&stall, UNLOAD_PATIENCE);

	if (write(ready[1], &byte, 1) != 1)
		_exit(1);
	pause();
	return arg;
}

static pid_t start(void)
{
	pthread_t thread;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!stall_open(&stall) || pthread_create(&thread, NULL, tell, NULL))
		_exit(1);
	spin_at(stall.page + 256);
}

static void load_rules(const char *shstk)
{
	char command[512];

	snprintf(command, sizeof(command), "%s rules load -q /proc/$PPID/exe", shstk);
	if (system(command))
		ksft_exit_fail_msg("%s: failed\n", command);
}

static void await_stall(void)
{
	char byte = 0;

	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1 || !byte)
		ksft_exit_fail_msg("no walk gets to the page\n");
}

int main(int argc, char **argv)
{
	struct sampler s;
	pid_t pid;
	int ret;

	if (argc < 3) {
		fprintf(stderr, "usage: %s shstk_perf.ko SHSTK\n", argv[0]);
		return KSFT_FAIL;
	}
	ksft_print_header();
	if (!sampler_defers())
		ksft_exit_skip("this kernel has no deferred callchains\n");
	ksft_set_plan(3);
	ret = module_load(argv[1]);
	if (ret)
		ksft_exit_fail_msg("%s: %s\n", argv[1], strerror(-ret));
	load_rules(argv[2]);
	if (pipe2(ready, O_CLOEXEC))
		ksft_exit_fail_msg("no pipe\n");
	fflush(NULL);
	pid = start();
	ret = sampler_open(&s, pid, PERIOD, true);
	if (ret)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-ret));
	await_stall();

	ret = module_unload("shstk_perf");
	ksft_test_result(ret == -EAGAIN || ret == -EBUSY,
			 "it is in use while a page is brought in: %s\n", strerror(-ret));
	kill(pid, SIGKILL);
	ksft_test_result(waitpid(pid, NULL, 0) == pid, "who waits for it can be killed\n");
	sampler_close(&s);
	ret = module_unload("shstk_perf");
	ksft_test_result(!ret, "it is unloaded when that has ended: %s\n",
			 ret > 0 ? "it hangs" : strerror(-ret));
	ksft_finished();
}
