// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * device_test.c - tests /dev/shstk: every call, every error, and traces of other processes
 *
 * The test uses the wrappers of libshstk. The processes that are traced first write down their own
 * shadow stack in shared memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "number.h"
#include "linux/shstk.h"
#include "shstk.h"

#define noinline_ __attribute__((noinline, noclone))
#define THREADS 6
#define DEPTH 40
#define MAX 128

static int dev;
static unsigned int passed, wanted;

/* Checks one part of a fact. The first wrong part is printed. */
#define EXPECT(what, expect)                                                                   \
	do {                                                                                   \
		long is_ = (what), expect_ = (expect);                                         \
                                                                                               \
		wanted++;                                                                      \
		if (is_ == expect_)                                                            \
			passed++;                                                              \
		else                                                                           \
			ksft_print_msg("%s:%d: %s is %ld, expected %ld\n", __FILE__, __LINE__, \
				       #what, is_, expect_);                                   \
	} while (0)

static void fact(const char *name)
{
	ksft_test_result(passed == wanted, "%s\n", name);
	passed = wanted = 0;
}

static int pidfd_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

/* ---- Processes to look at ---- */

struct truth {
	volatile pid_t tid;
	unsigned long ssp;
	unsigned int nr;
	uint64_t word[MAX];
};

static struct shared {
	struct truth truth[THREADS];
	volatile int ready;
	volatile int stop;
} * shared;

enum work { SLEEP, SPIN, SWITCH, HANDLE };

static unsigned long main_top;

static noinline_ long leaf(unsigned long end, enum work work, int slot)
{
	struct truth *t = &shared->truth[slot];
	unsigned long at = ss_pointer();
	struct timespec second = { 1, 0 };
	long x = 0;

	ss_sync();
	t->ssp = at;
	for (t->nr = 0; at < end && t->nr < MAX; at += 8)
		t->word[t->nr++] = *(volatile uint64_t *)at;
	t->tid = ss_syscall(__NR_gettid, 0, 0, 0, 0, 0);
	__atomic_fetch_add(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->stop) {
		if (work == SLEEP || work == HANDLE)
			ss_syscall(__NR_nanosleep, (unsigned long)&second, 0, 0, 0, 0);
		else if (work == SWITCH)
			ss_syscall(__NR_sched_yield, 0, 0, 0, 0, 0);
		asm volatile("" : "+r"(x));
	}
	return x;
}

static noinline_ long descend(int n, unsigned long end, enum work work, int slot)
{
	long r;

	if (n)
		r = descend(n - 1, end, work, slot);
	else
		r = leaf(end, work, slot);
	asm volatile("" : "+r"(r));
	return r;
}

static enum work thread_work;

static void *thread_main(void *arg)
{
	descend(DEPTH, ss_pointer(), thread_work, (long)arg);
	return NULL;
}

static void on_signal(int sig)
{
	descend(DEPTH, main_top, HANDLE, 0);
	(void)sig;
}

static noinline_ void run_threads(enum work work, int threads)
{
	pthread_t thread;

	if (work == HANDLE) {
		signal(SIGUSR1, on_signal);
		kill(getpid(), SIGUSR1);
	}
	thread_work = work;
	for (long i = 1; i < threads; i++)
		pthread_create(&thread, NULL, thread_main, (void *)i);
	descend(DEPTH, main_top, work, 0);
}

/* Starts a process. The frame that turns the shadow stack on must not return. */
static pid_t start(enum work work, int threads, bool on)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	fflush(NULL);
	pid = fork();
	if (pid) {
		for (int i = 0; i < 60000 && shared->ready < threads; i++)
			usleep(1000);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (on && ss_enable(SS_ENABLE))
		_exit(1);
	main_top = ss_pointer();
	run_threads(work, threads);
	for (;;)
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- Facts ---- */

static void test_info(void)
{
	struct shstk_ioc_info info;
	int fd = shstk_device_open();

	EXPECT(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	fact("the library opens the device, not for programs that are executed");
	memset(&info, 0xff, sizeof(info));
	EXPECT(shstk_device_info(dev, &info), 0);
	EXPECT(info.abi, SHSTK_ABI_VERSION);
#ifdef __x86_64__
	EXPECT(info.arch, SHSTK_IOC_ARCH_X86);
	EXPECT(info.status_mask, 3);
	EXPECT(info.features & SHSTK_FEATURE_NATIVE_PRCTL, 0);
#else
	EXPECT(info.arch, SHSTK_IOC_ARCH_ARM64);
	EXPECT(info.status_mask, 7);
	EXPECT(info.features & SHSTK_FEATURE_NATIVE_PRCTL, SHSTK_FEATURE_NATIVE_PRCTL);
#endif
	EXPECT(!(info.features & SHSTK_FEATURE_VIOLATIONS), 0);
	EXPECT(!(info.features & SHSTK_FEATURE_KFUNC), !!access("/sys/kernel/btf/shstk", F_OK));
	fact("info says what there is");
	EXPECT(SHSTK_ABI_VERSION, 2);
	EXPECT(SHSTK_IOC_INFO, 0x8018bf00L);
	EXPECT(SHSTK_IOC_STATUS, 0xc030bf01L);
	EXPECT(SHSTK_IOC_MAP, 0xc020bf02L);
	EXPECT(SHSTK_IOC_TRACE, 0xc028bf03L);
	fact("the version is 2, and the numbers are those of version 1");
}

static long raw(unsigned long cmd, void *arg)
{
	return ioctl(dev, cmd, arg) ? -errno : 0;
}

static void test_numbers(void)
{
	struct {
		struct shstk_ioc_map map;
		uint64_t later;
	} grown = { .map = { .pidfd = -1, .addr = 0 } };
	char bytes[64] = {};

	EXPECT(raw(_IO(SHSTK_IOC_MAGIC, 9), bytes), -ENOTTY);
	EXPECT(raw(_IOR(SHSTK_IOC_MAGIC, 4, struct shstk_ioc_map), bytes), -ENOTTY);
	EXPECT(raw(_IOR('x', 0, struct shstk_ioc_info), bytes), -ENOTTY);
	EXPECT(raw(_IOW(SHSTK_IOC_MAGIC, 2, struct shstk_ioc_map), bytes), -ENOTTY);
	EXPECT(raw(0, bytes), -ENOTTY);
	fact("unknown numbers and directions: ENOTTY");

	EXPECT(raw(_IOC(_IOC_READ, SHSTK_IOC_MAGIC, 0, 23), bytes), -EINVAL);
	EXPECT(raw(_IOC(_IOC_READ | _IOC_WRITE, SHSTK_IOC_MAGIC, 2, 24), bytes), -EINVAL);
	fact("a structure smaller than the first version's: EINVAL");

	EXPECT(raw(_IOC(_IOC_READ | _IOC_WRITE, SHSTK_IOC_MAGIC, 2, sizeof(grown)), &grown),
	       -ENOENT);
	grown.later = 1;
	EXPECT(raw(_IOC(_IOC_READ | _IOC_WRITE, SHSTK_IOC_MAGIC, 2, sizeof(grown)), &grown),
	       -E2BIG);
	fact("a larger structure is taken if the rest is 0, else E2BIG");

	EXPECT(raw(SHSTK_IOC_INFO, NULL), -EFAULT);
	EXPECT(raw(SHSTK_IOC_STATUS, (void *)8), -EFAULT);
	EXPECT(raw(SHSTK_IOC_MAP, (void *)-4096L), -EFAULT);
	EXPECT(raw(SHSTK_IOC_TRACE, (void *)~0xfffUL), -EFAULT);
	fact("an argument that cannot be read: EFAULT");
}

static void test_bad_fields(void)
{
	struct shstk_ioc_thread thread;
	uint64_t entries[16];
	const struct shstk_ioc_trace good = {
		.pidfd = -1,
		.max_entries = 16,
		.max_threads = 1,
		.threads = (uintptr_t)&thread,
		.entries = (uintptr_t)entries,
	};
	struct shstk_ioc_trace t = good;
	struct shstk_ioc_status s = { .pidfd = -2 };
	struct shstk_ioc_map m = { .pidfd = -2 };
	int null = open("/dev/null", O_RDONLY);

	EXPECT(shstk_device_trace(dev, &t), 0);
	EXPECT(t.nr_threads, 1);
	EXPECT(thread.error, -ENODATA);
	fact("trace of a process without shadow stacks says ENODATA");

	t = good, t.flags = 1;
	EXPECT(shstk_device_trace(dev, &t), -EINVAL);
	t = good, t.flags = 1U << 31;
	EXPECT(shstk_device_trace(dev, &t), -EINVAL);
	fact("trace with unknown flags: EINVAL");
	t = good, t.max_entries = 0;
	EXPECT(shstk_device_trace(dev, &t), -EINVAL);
	t = good, t.max_entries = SHSTK_MAX_ENTRIES + 1;
	EXPECT(shstk_device_trace(dev, &t), -EINVAL);
	fact("trace of no or too many entries: EINVAL");
	t = good, t.max_threads = 0;
	EXPECT(shstk_device_trace(dev, &t), -EINVAL);
	t = good, t.max_threads = SHSTK_MAX_THREADS + 1;
	EXPECT(shstk_device_trace(dev, &t), -EINVAL);
	fact("trace of no or too many threads: EINVAL");
	t = good, t.threads = 8;
	EXPECT(shstk_device_trace(dev, &t), -EFAULT);
	fact("trace to nowhere: EFAULT");
	t = good, t.tid = 0x3fffffff;
	EXPECT(shstk_device_trace(dev, &t), -ESRCH);
	fact("trace of a thread that is not of the process: ESRCH");

	EXPECT(shstk_device_status(dev, &s), -EBADF);
	EXPECT(shstk_device_map(dev, &m), -EBADF);
	t = good, t.pidfd = -2;
	EXPECT(shstk_device_trace(dev, &t), -EBADF);
	s.pidfd = m.pidfd = t.pidfd = 999;
	EXPECT(shstk_device_status(dev, &s), -EBADF);
	EXPECT(shstk_device_map(dev, &m), -EBADF);
	EXPECT(shstk_device_trace(dev, &t), -EBADF);
	s.pidfd = m.pidfd = t.pidfd = null;
	EXPECT(shstk_device_status(dev, &s), -EBADF);
	EXPECT(shstk_device_map(dev, &m), -EBADF);
	EXPECT(shstk_device_trace(dev, &t), -EBADF);
	fact("what is no pidfd: EBADF");
	close(null);

	m = (struct shstk_ioc_map){ .pidfd = -1, .pad = 1 };
	EXPECT(shstk_device_map(dev, &m), -EINVAL);
	fact("map with padding that is not 0: EINVAL");
	m = (struct shstk_ioc_map){ .pidfd = -1, .addr = (uintptr_t)&m };
	EXPECT(shstk_device_map(dev, &m), -ENOENT);
	m.addr = (uintptr_t)test_bad_fields;
	EXPECT(shstk_device_map(dev, &m), -ENOENT);
	m.addr = ~0UL;
	EXPECT(shstk_device_map(dev, &m), -ENOENT);
	fact("map of an address in no shadow stack: ENOENT");

	s = (struct shstk_ioc_status){ .pidfd = -1, .pointer = 5 };
	EXPECT(shstk_device_status(dev, &s), 0);
	EXPECT(s.enabled | s.locked | s.pointer | s.base | s.size, 0);
	fact("status without a shadow stack is all 0");
}

/* Tests a process that locks before it enables. */
static void test_locked(void)
{
	struct shstk_ioc_status s = { .pidfd = -1 };
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(ss_lock(SS_ENABLE) || shstk_device_status(dev, &s) || s.enabled ||
		      s.locked != SS_ENABLE || s.pointer || s.size);
	waitpid(pid, &status, 0);
	EXPECT(status, 0);
	fact("what is locked while it is off is told");
}

static void test_self(void)
{
	struct shstk_ioc_status s = { .pidfd = SHSTK_PIDFD_SELF };
	struct shstk_ioc_thread thread;
	uint64_t entries[16];
	struct shstk_ioc_trace t = {
		.pidfd = SHSTK_PIDFD_SELF_PROCESS,
		.max_entries = 16,
		.max_threads = 1,
		.threads = (uintptr_t)&thread,
		.entries = (uintptr_t)entries,
	};

	EXPECT(SHSTK_PIDFD_SELF, -10000);
	EXPECT(SHSTK_PIDFD_SELF_PROCESS, -10001);
	EXPECT(shstk_device_status(dev, &s), 0);
	EXPECT(shstk_device_trace(dev, &t), 0);
	EXPECT(t.nr_threads, 1);
	EXPECT(thread.tid, getpid());
	s.pidfd = SHSTK_PIDFD_SELF_PROCESS - 1;
	EXPECT(shstk_device_status(dev, &s), -EBADF);
	fact("the caller can be named as by PIDFD_SELF");
}

static void test_map(void)
{
	long page = getpagesize(), addr = ss_map(0, 4 * page, 0);
	struct shstk_ioc_map m = { .pidfd = -1, .addr = addr + page + 1 };

	EXPECT(shstk_device_map(dev, &m), 0);
	EXPECT(m.start, addr);
	EXPECT(m.end, addr + 4 * page);
	munmap((void *)addr, 4 * page);
	EXPECT(shstk_device_map(dev, &m), -ENOENT);
	fact("map finds a stack by any address in it");
}

static void test_gone(void)
{
	pid_t pid = fork();
	struct shstk_ioc_status s = {};

	if (!pid)
		_exit(0);
	s.pidfd = pidfd_open(pid);
	waitpid(pid, NULL, 0);
	EXPECT(shstk_device_status(dev, &s), -ESRCH);
	close(s.pidfd);
	fact("a process that is gone: ESRCH");
}

static struct {
	struct shstk_ioc_thread thread[THREADS + 1];
	uint64_t entry[THREADS + 1][MAX];
} got;

static const struct truth *truth_of(pid_t tid)
{
	for (int i = 0; i < THREADS; i++)
		if (shared->truth[i].tid == tid)
			return &shared->truth[i];
	return NULL;
}

/* Returns whether the entries behind the program counter are all the words that the thread saw. */
static bool trace_right(int i, bool whole)
{
	const struct truth *t = truth_of(got.thread[i].tid);
	unsigned int nr = got.thread[i].nr;

	if (!t || nr < t->nr + 1 || (whole && nr != t->nr + 1))
		return false;
	return !memcmp(got.entry[i] + 1, t->word, t->nr * 8);
}

static int trace_all(int pidfd, struct shstk_ioc_trace *t)
{
	*t = (struct shstk_ioc_trace){
		.pidfd = pidfd,
		.max_entries = MAX,
		.max_threads = THREADS + 1,
		.threads = (uintptr_t)got.thread,
		.entries = (uintptr_t)got.entry,
	};
	return shstk_device_trace(dev, t);
}

static void test_trace(const char *name, enum work work, int threads)
{
	unsigned int right = 0, again = 0, wrong = 0, running = 0;
	struct shstk_ioc_trace t;
	pid_t pid = start(work, threads, true);
	int pidfd = pidfd_open(pid);
	char line[128];

	EXPECT(shared->ready, threads);
	for (int round = 0; round < 50; round++) {
		EXPECT(trace_all(pidfd, &t), 0);
		EXPECT(t.nr_threads, threads);
		for (int i = 0; i < threads; i++) {
			running += !!(got.thread[i].flags & SHSTK_THREAD_RUNNING);
			if (got.thread[i].error == -EAGAIN)
				again++;
			else if (!got.thread[i].error && trace_right(i, !i))
				right++;
			else
				wrong++;
		}
	}
	EXPECT(wrong, 0);
	EXPECT(right > again, 1);
	if (work == SLEEP)
		EXPECT(again + running, 0);
	snprintf(line, sizeof(line), "%s: %u right, %u EAGAIN, %u of all while running", name,
		 right, again, running);
	fact(line);
	close(pidfd);
	stop(pid);
}

static void test_status(void)
{
	pid_t pid = start(SLEEP, 2, true);
	struct shstk_ioc_status s = { .pidfd = pidfd_open(pid) };
	struct shstk_ioc_map m = { .pidfd = s.pidfd };
	const struct truth *t = &shared->truth[1];

	EXPECT(shstk_device_status(dev, &s), 0);
	EXPECT(s.enabled, 1);
	EXPECT(s.pointer, shared->truth[0].ssp);
	EXPECT(s.pointer >= s.base && s.pointer < s.base + s.size, 1);
	m.addr = s.pointer;
	EXPECT(shstk_device_map(dev, &m), 0);
	EXPECT(m.start, s.base);
	EXPECT(m.end, s.base + s.size);
	fact("status and map of a sleeping process");

	s.tid = t->tid;
	EXPECT(shstk_device_status(dev, &s), 0);
	EXPECT(s.pointer, t->ssp);
	s.tid = getpid();
	EXPECT(shstk_device_status(dev, &s), -ESRCH);
	fact("status of one of its threads, not of others'");
	close(s.pidfd);
	stop(pid);
}

static void test_cut(void)
{
	pid_t pid = start(SLEEP, 1, true);
	struct shstk_ioc_trace t = {
		.pidfd = pidfd_open(pid),
		.tid = shared->truth[0].tid,
		.max_entries = 5,
		.max_threads = 1,
		.threads = (uintptr_t)got.thread,
		.entries = (uintptr_t)got.entry,
	};

	memset(&got, 0xee, sizeof(got));
	EXPECT(shstk_device_trace(dev, &t), 0);
	EXPECT(got.thread[0].nr, 5);
	EXPECT(got.thread[0].flags, SHSTK_THREAD_CUT);
	EXPECT(memcmp(got.entry[0] + 1, shared->truth[0].word, 32), 0);
	EXPECT(got.entry[0][5], 0xeeeeeeeeeeeeeeeeL);
	fact("a trace that does not fit is cut and says so");

	t.max_entries = shared->truth[0].nr + 1;
	EXPECT(shstk_device_trace(dev, &t), 0);
	EXPECT(got.thread[0].nr, t.max_entries);
	EXPECT(got.thread[0].flags, 0);
	fact("one that just fits is not cut");

	t = (struct shstk_ioc_trace){
		.pidfd = t.pidfd,
		.max_entries = MAX,
		.max_threads = 1,
		.threads = (uintptr_t)got.thread,
		.entries = (uintptr_t)got.entry,
	};
	got.thread[1].tid = 77;
	stop(pid);
	close(t.pidfd);
	pid = start(SLEEP, 3, true);
	t.pidfd = pidfd_open(pid);
	EXPECT(shstk_device_trace(dev, &t), 0);
	EXPECT(t.nr_threads, 3);
	EXPECT(got.thread[1].tid, 77);
	fact("more threads than fit are counted, not written");
	close(t.pidfd);
	stop(pid);
}

/* The mark of a signal frame is left out, and the trace says so. */
static void test_signal(void)
{
	pid_t pid = start(HANDLE, 1, true);
	int pidfd = pidfd_open(pid);
	struct shstk_ioc_trace t;

	EXPECT(trace_all(pidfd, &t), 0);
	EXPECT(got.thread[0].flags, SHSTK_THREAD_SIGNAL);
	EXPECT(got.thread[0].nr, shared->truth[0].nr);
	EXPECT(memcmp(got.entry[0] + 1, shared->truth[0].word, (DEPTH + 2) * 8), 0);
	fact("a trace through a signal handler says so");
	close(pidfd);
	stop(pid);
}

/* Another user may not trace the process; its owner may. */
static void test_permission(void)
{
	pid_t target = start(SLEEP, 1, true), pid;
	int pidfd = pidfd_open(target), status;

	pid = fork();
	if (!pid) {
		struct shstk_ioc_status s = { .pidfd = pidfd };
		struct shstk_ioc_map m = { .pidfd = pidfd };
		struct shstk_ioc_trace t;
		int bad = 0;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		bad |= (shstk_device_status(dev, &s) != -EPERM) << 1;
		bad |= (shstk_device_map(dev, &m) != -EPERM) << 2;
		bad |= (trace_all(pidfd, &t) != -EPERM) << 3;
		/* It may trace itself. */
		s.pidfd = -1;
		bad |= (shstk_device_status(dev, &s) != 0) << 4;
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	EXPECT(status, 0);
	fact("another user's process: EPERM");
	close(pidfd);
	stop(target);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ksft_print_msg("%s: %s\n", path, strerror(errno));
	close(fd);
}

/* Traces as an unrelated process of the same user, which Yama's first level does not let attach. */
static long trace_as_stranger(int pidfd)
{
	struct shstk_ioc_trace t;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(255);
		_exit(-trace_all(pidfd, &t));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : 1;
}

static void test_scope(void)
{
	const char *scope = "/proc/sys/kernel/yama/ptrace_scope";
	long before = read_number(scope);
	int pipes[2], pidfd;
	char byte = 0;
	pid_t pid;

	if (before < 0) {
		ksft_test_result_skip("no %s: this kernel has no Yama\n", scope);
		return;
	}
	EXPECT(pipe2(pipes, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534) &&
		       !prctl(PR_SET_DUMPABLE, 1);
		if (write(pipes[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	EXPECT(read(pipes[0], &byte, 1) == 1 && byte, 1);
	pidfd = pidfd_open(pid);
	write_file(scope, "0");
	EXPECT(trace_as_stranger(pidfd), 0);
	write_file(scope, "1");
	EXPECT(trace_as_stranger(pidfd), -EPERM);
	write_file(scope, before > 1 ? "2" : before ? "1" : "0");
	fact("a process of the same user, where ptrace_scope allows it only");
	close(pidfd);
	close(pipes[0]);
	close(pipes[1]);
	stop(pid);
}

static long violations(void)
{
	return read_number("/sys/class/misc/shstk/violations");
}

/* Returns to @elsewhere, which is not on the shadow stack. */
static noinline_ void corrupt(unsigned long elsewhere)
{
#ifdef __x86_64__
	asm volatile("mov %0, (%%rsp)\n\tret" : : "r"(elsewhere) : "memory");
#else
	asm volatile("mov x30, %0\n\tret" : : "r"(elsewhere) : "x30", "memory");
#endif
}

/*
 * Runs an unprivileged process that sends itself and its parent signals with the code that only the
 * kernel should use, and then causes another fault.
 */
static int forge(int times)
{
	siginfo_t info = { .si_signo = SIGSEGV, .si_code = 10 };
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		syscall(SYS_rt_sigqueueinfo, getppid(), SIGCHLD, &info);
		if (setresuid(65534, 65534, 65534))
			_exit(1);
		signal(SIGSEGV, SIG_IGN);
		for (int i = 0; i < times; i++)
			if (syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGSEGV, &info))
				_exit(2);
		signal(SIGSEGV, SIG_DFL);
		*(volatile int *)(uintptr_t)(8 + shared->stop) = 1;
		_exit(3);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 0 : WEXITSTATUS(status);
}

static void test_violation(void)
{
	const char *trace = "/sys/kernel/tracing";
	long before = violations();
	char line[256], expect[64];
	bool found = false;
	int status;
	FILE *f;
	pid_t pid;

	write_file("/sys/kernel/tracing/events/shstk/shstk_violation/enable", "1");
	pid = fork();
	if (!pid) {
		if (ss_enable(SS_ENABLE))
			_exit(1);
		corrupt(0x1234560);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	write_file("/sys/kernel/tracing/events/shstk/shstk_violation/enable", "0");
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, 1);
	EXPECT(violations(), before + 1);
	fact("a violation is counted");

	snprintf(line, sizeof(line), "%s/trace", trace);
	snprintf(expect, sizeof(expect), "tgid=%d ", pid);
	f = fopen(line, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "shstk_violation:") && strstr(line, expect);
	if (f)
		fclose(f);
	EXPECT(found, 1);
	EXPECT(found && strstr(line, "stack=0x1234560 shadow=0x"), 1);
	if (found)
		ksft_print_msg("%s", line);
	fact("its trace event has both addresses");

	EXPECT(forge(100), 0);
	EXPECT(violations(), before + 1);
	fact("other faults and forged signals are not");
}

int main(void)
{
	need_shadow_stacks();
	dev = need_device();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");

	ksft_print_header();
	ksft_set_plan(36);
	test_info();
	test_numbers();
	test_bad_fields();
	test_locked();
	test_self();
	test_map();
	test_gone();
	test_status();
	test_cut();
	test_signal();
	test_trace("sleeping threads", SLEEP, THREADS);
	test_trace("a running thread", SPIN, 1);
	test_trace("running threads", SPIN, 3);
	test_trace("threads that yield to each other", SWITCH, 3);
	test_permission();
	test_scope();
	test_violation();
	ksft_finished();
}
