// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stall_test.c - tests that a caller of /dev/shstk that is stuck on its own page holds up only
 * itself, and holds no memory of threads that have ended
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "stall.h"
#include "linux/shstk.h"

#define PATIENCE 300000 /* milliseconds; used up only by a hang */

static struct shstk_ioc_trace trace = {
	.max_entries = 1,
	.max_threads = 1,
};
static int dev;
static long answer = 1;

static void *call(void *arg)
{
	answer = ioctl(dev, SHSTK_IOC_TRACE, &trace) ? -errno : 0;
	return arg;
}

/* Starts a process that executes another program as soon as the pipe closes. */
static pid_t start(int *wake)
{
	int pipes[2];
	char byte;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		ksft_exit_fail_msg("no pipe\n");
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) == 0)
			execl("/proc/self/exe", "stall_test", "executed", NULL);
		_exit(1);
	}
	close(pipes[0]);
	*wake = pipes[1];
	return pid;
}

static void test_exec(void)
{
	int wake, status = 0, ended = 0;
	struct stall stall;
	pthread_t thread;
	pid_t pid;

	if (!stall_open(&stall))
		ksft_exit_fail_msg("userfaultfd: %s\n", strerror(errno));
	pid = start(&wake);
	trace.pidfd = syscall(SYS_pidfd_open, pid, 0);
	trace.threads = stall.page;
	trace.entries = stall.page;
	pthread_create(&thread, NULL, call, NULL);
	if (!stall_await(&stall, PATIENCE))
		ksft_exit_fail_msg("the trace does not get to the page\n");
	close(wake);
	for (int i = 0; i < PATIENCE && !ended; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		usleep(1000);
	}
	ksft_test_result(ended && WIFEXITED(status) && WEXITSTATUS(status) == 42,
			 "a process executes while one that traces it is stuck\n");
	stall_end(&stall);
	pthread_join(thread, NULL);
	ksft_test_result(!answer, "which goes on when it can: %ld\n", answer);
}

/* ---- Threads that have ended ---- */

#define GROUPS "/run/stall_test"
#define GROUP GROUPS "/some"
#define THREADS 5

static void *wait_forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static bool enter_group(void)
{
	int fd = open(GROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "0", 1) == 1 && !close(fd);
}

/* Starts threads in a cgroup of their own, which exists as long as one of its tasks. */
static pid_t start_threads(void)
{
	int pipes[2];
	char byte = 0;
	pthread_t t;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		ksft_exit_fail_msg("no pipe\n");
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!enter_group())
			_exit(1);
		for (int i = 0; i < THREADS - 1; i++)
			if (pthread_create(&t, NULL, wait_forever, NULL))
				_exit(1);
		if (write(pipes[1], &byte, 1) == 1)
			wait_forever(NULL);
		_exit(1);
	}
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1)
		ksft_exit_fail_msg("the threads do not start\n");
	close(pipes[0]);
	return pid;
}

static long dying_groups(void)
{
	FILE *f = fopen(GROUPS "/cgroup.stat", "re");
	long n = -1;

	while (f && n < 0 && fscanf(f, " nr_dying_descendants %ld", &n) != 1)
		if (fscanf(f, "%*s %*s") == EOF)
			break;
	if (f)
		fclose(f);
	return n;
}

static void test_ended(void)
{
	struct stall stall;
	pthread_t thread;
	long before, now = -1;
	pid_t pid;

	mkdir(GROUPS, 0755);
	if (mount("cgroup2", GROUPS, "cgroup2", 0, NULL) || mkdir(GROUP, 0755)) {
		ksft_test_result_skip("no cgroups: %s\n", strerror(errno));
		return;
	}
	before = dying_groups();
	pid = start_threads();
	if (!stall_open(&stall))
		ksft_exit_fail_msg("userfaultfd: %s\n", strerror(errno));
	trace.pidfd = syscall(SYS_pidfd_open, pid, 0);
	trace.max_threads = THREADS;
	trace.threads = stall.page;
	trace.entries = stall.page;
	pthread_create(&thread, NULL, call, NULL);
	if (!stall_await(&stall, PATIENCE))
		ksft_exit_fail_msg("the trace does not get to the page\n");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < PATIENCE && rmdir(GROUP); i++)
		usleep(1000);
	for (int i = 0; i < PATIENCE && (now = dying_groups()) != before; i++)
		usleep(1000);
	ksft_test_result(before >= 0 && now == before,
			 "threads that ended are gone while one that traces them is stuck\n");
	stall_end(&stall);
	pthread_join(thread, NULL);
	umount2(GROUPS, MNT_DETACH);
}

int main(int argc, char **argv)
{
	struct stall stall;

	if (argc > 1)
		return strcmp(argv[1], "executed") ? 1 : 42;
	dev = need_device();
	ksft_print_header();
	ksft_set_plan(3);
	if (!stall_open(&stall))
		ksft_exit_skip("userfaultfd: %s\n", strerror(errno));
	test_exec();
	test_ended();
	ksft_finished();
}
