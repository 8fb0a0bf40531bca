// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pointer_test.c - tests traces of programs whose shadow stack pointer points where no call would
 * leave it, or whose shadow stack is full of words that are no return addresses. Each trace must
 * end, and at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "linux/shstk.h"

#define noinline_ __attribute__((noinline, noclone))
#define PATIENCE 300000 /* milliseconds; used up only by a hang */
#define MAX 64
#define DEPTH 2000 /* words; the module skips at most 512 marks */
#define KEPT 4 /* words that stay as the calls left them */
#define NT_ARM_GCS 0x410

static int dev;
static volatile int *ready;

struct answer {
	int ret;
	struct shstk_ioc_status status;
	struct shstk_ioc_thread thread;
	uint64_t entry[MAX];
};

static struct answer *answer;

/* Sleeps until the process is killed. */
static noinline_ void rest(void)
{
	*ready = 1;
	while (*ready)
		ss_syscall(SYS_rt_sigsuspend, 0, 8, 0, 0, 0);
}

#ifdef __x86_64__
/* Drops half a word from the shadow stack. No return may follow. */
static noinline_ void unalign(bool spin)
{
	*ready = 1;
	asm volatile("incsspd %0" : : "r"(1));
	while (spin)
		asm volatile("" : : : "memory");
	for (;;)
		ss_syscall(SYS_rt_sigsuspend, 0, 8, 0, 0, 0);
}

#define MARK(addr) (1ULL << 63 | (addr))
#else
#define MARK(addr) ((addr) & ~0xfffULL)
#endif

static noinline_ long fill(int n)
{
	unsigned long at;
	long r;

	if (n) {
		r = fill(n - 1);
		asm volatile("" : "+r"(r));
		return r;
	}
	at = ss_pointer() + KEPT * 8;
	for (int i = 0; i < DEPTH - 2 * KEPT; i++, at += 8)
		ss_write(at, MARK(at));
	ss_sync();
	rest();
	return 0;
}

enum trick { UNALIGNED, UNALIGNED_SPIN, MARKS, HONEST };

static pid_t start(enum trick trick)
{
	pid_t pid;

	*ready = 0;
	fflush(NULL);
	pid = fork();
	if (pid) {
		for (int i = 0; i < PATIENCE && !*ready; i++)
			usleep(1000);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ss_enable(SS_ENABLE | (trick == MARKS ? SS_WRITE : 0)))
		ss_syscall(SYS_exit_group, 1, 0, 0, 0, 0);
#ifdef __x86_64__
	if (trick == UNALIGNED || trick == UNALIGNED_SPIN)
		unalign(trick == UNALIGNED_SPIN);
#endif
	if (trick == MARKS)
		fill(DEPTH);
	rest();
	for (;;)
		ss_syscall(SYS_exit_group, 0, 0, 0, 0, 0);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Traces in a separate process, so that a hang is noticed. Returns whether it ended. */
static bool ask(pid_t target)
{
	int pidfd = syscall(SYS_pidfd_open, target, 0);
	pid_t pid, ended = 0;

	*answer = (struct answer){ .status.pidfd = pidfd };
	fflush(NULL);
	pid = fork();
	if (!pid) {
		struct shstk_ioc_trace trace = {
			.pidfd = pidfd,
			.max_entries = MAX,
			.max_threads = 1,
			.threads = (uintptr_t)&answer->thread,
			.entries = (uintptr_t)answer->entry,
		};

		answer->ret = ioctl(dev, SHSTK_IOC_STATUS, &answer->status) ||
					      ioctl(dev, SHSTK_IOC_TRACE, &trace) ?
				      -errno :
				      0;
		_exit(0);
	}
	for (int i = 0; i < PATIENCE && !ended; i++) {
		ended = waitpid(pid, NULL, WNOHANG);
		usleep(1000);
	}
	if (!ended)
		kill(pid, SIGKILL);
	close(pidfd);
	ksft_print_msg("answer %d, thread %d, %u entries, pointer 0x%llx\n", answer->ret,
		       answer->thread.error, answer->thread.nr,
		       (unsigned long long)answer->status.pointer);
	return ended;
}

static bool refused(pid_t target)
{
	return ask(target) && !answer->ret && answer->status.pointer % 8 == 4 &&
	       answer->thread.error == -ENODATA && !answer->thread.nr;
}

#ifdef __x86_64__
static void test_unaligned(void)
{
	pid_t pid = start(UNALIGNED);

	ksft_test_result(refused(pid),
			 "a sleeping thread's unaligned pointer is told, not followed\n");
	stop(pid);
	pid = start(UNALIGNED_SPIN);
	usleep(20000);
	ksft_test_result(refused(pid), "a running thread's likewise\n");
	stop(pid);
}
#else
/* Sets GCSPR_EL0 of a process. Only ptrace can give it any value. */
static bool set_pointer(pid_t pid, int add)
{
	struct {
		uint64_t enabled, locked, pointer;
	} gcs;
	struct iovec iov = { &gcs, sizeof(gcs) };

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
	    waitpid(pid, NULL, __WALL) != pid ||
	    ptrace(PTRACE_GETREGSET, pid, (void *)NT_ARM_GCS, &iov))
		return false;
	gcs.pointer += add;
	return !ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_GCS, &iov);
}

static void test_unaligned(void)
{
	pid_t pid = start(HONEST);
	bool set = set_pointer(pid, 4);

	ksft_test_result(set && refused(pid),
			 "a stopped thread's unaligned pointer is told, not followed\n");
	stop(pid);

	/* The pointer is at the second half of the last word of a page. */
	pid = start(HONEST);
	ask(pid);
	set = set_pointer(pid, 4092 - (int)(answer->status.pointer % 4096));
	ksft_test_result(set && refused(pid), "one within the last word of a page likewise\n");
	stop(pid);
}
#endif

static void test_marks(void)
{
	pid_t pid = start(MARKS);
	bool ended = ask(pid);

	/*
	 * The trace has the program counter and the kept words, and nothing from behind the marks.
	 */
	ksft_test_result(ended && !answer->ret && !answer->thread.error && answer->thread.nr >= 1 &&
				 answer->thread.nr <= KEPT + 2 &&
				 answer->thread.flags & SHSTK_THREAD_SIGNAL,
			 "a stack full of signal marks is not read to its end\n");
	stop(pid);
}

int main(void)
{
	need_shadow_stacks();
	dev = need_device();
	ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ready == MAP_FAILED || answer == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");
	ksft_print_header();
	ksft_set_plan(3);
	test_unaligned();
	test_marks();
	ksft_finished();
}
