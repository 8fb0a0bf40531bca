// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replaced_test.c - tests the trace of a process where something else was mapped in the place of
 * its shadow stack: the tracer is told so, and does not wait for what the mapping may be
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "linux/shstk.h"
#include "need.h"
#include "never.h"

#define FILE_NAME "/tmp/replaced_test"
#define FILE_BYTES (1ull << 33) /* as large as a shadow stack may be */
#define PATIENCE 300000 /* milliseconds; used up only by a hang */
#define MAX 64

static int dev;
static void *file;

static struct shared {
	volatile int ready;
	volatile long failed;
	volatile int traced;
	struct shstk_ioc_thread thread;
} * shared;

/*
 * Stays until it is killed. If @file_at is not 0, first maps the file in the place of the shadow
 * stack, where the kernel still looks for it. From there on nothing is called, and nothing returns.
 */
static __attribute__((noinline, noreturn)) void stay(unsigned long file_at)
{
	static struct shstk_ioc_status st = { .pidfd = -1 };
	long ret = ss_syscall(__NR_ioctl, dev, SHSTK_IOC_STATUS, (unsigned long)&st, 0, 0);

	if (!ret && file_at) {
		ret = ss_syscall(__NR_mremap, file_at, st.size, st.size,
				 MREMAP_MAYMOVE | MREMAP_FIXED, st.base);
		ret = ret == (long)st.base ? 0 : ret;
	}
	shared->failed = ret;
	shared->ready = 1;
	for (;;)
		ss_syscall(__NR_ppoll, 0, 0, 0, 0, 0);
}

/* Becomes the target. The call puts a word on its shadow stack. */
static __attribute__((noinline, noreturn)) void be_target(unsigned long file_at)
{
	if (ss_enable(SS_ENABLE))
		ss_syscall(__NR_exit_group, 1, 0, 0, 0, 0);
	stay(file_at);
}

static pid_t start_target(bool replaced)
{
	pid_t pid;

	shared->ready = 0;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_target(replaced ? (unsigned long)file : 0);
	}
	for (int i = 0; i < PATIENCE && !shared->ready; i++)
		usleep(1000);
	if (!shared->ready || shared->failed)
		ksft_exit_fail_msg("no target: %ld\n", shared->failed);
	return pid;
}

static pid_t start_tracer(pid_t target)
{
	static uint64_t entries[MAX];
	struct shstk_ioc_trace trace = {
		.max_entries = MAX,
		.max_threads = 1,
		.threads = (uintptr_t)&shared->thread,
		.entries = (uintptr_t)entries,
	};
	pid_t pid;

	shared->traced = 0;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		trace.pidfd = (int)syscall(SYS_pidfd_open, target, 0);
		shared->traced = ioctl(dev, SHSTK_IOC_TRACE, &trace) ? errno : -1;
		_exit(0);
	}
	return pid;
}

static bool ends(pid_t pid)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		usleep(1000);
	}
	return false;
}

/* Traces a target. Returns whether the call came back. */
static bool trace(bool replaced, pid_t *tracer)
{
	pid_t target = start_target(replaced);
	bool back;

	*tracer = start_tracer(target);
	back = ends(*tracer);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	return back && shared->traced == -1;
}

int main(void)
{
	pid_t server, tracer;
	struct stat st;
	bool back;
	int fd;

	need_shadow_stacks();
	dev = need_device();
	ksft_print_header();
	mkdir("/tmp", 0755);
	server = never_start(FILE_NAME, FILE_BYTES);
	if (server < 0)
		ksft_exit_skip("no FUSE: %s\n", strerror(errno));
	fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC);
	file = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	/* From now on the kernel knows the size of the file. */
	if (file == MAP_FAILED || fstat(fd, &st) || st.st_size != FILE_BYTES)
		ksft_exit_fail_msg(FILE_NAME ": %s\n", strerror(errno));
	ksft_set_plan(2);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	back = trace(false, &tracer);
	ksft_test_result(back && !shared->thread.error,
			 "a process in a system call is traced: %d\n", shared->thread.error);
	back = trace(true, &tracer);
	ksft_test_result(
		back && shared->thread.error == -EFAULT,
		"with a file in its stack's place that is said, and the file not waited for: %d\n",
		shared->thread.error);
	never_end(FILE_NAME, server);
	ksft_finished();
}
