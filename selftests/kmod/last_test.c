// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * last_test.c - a trace that is the last to use an address space does not wait for what
 * its program has begun
 *
 * The last user of an address space waits for its asynchronous I/O, and no signal ends
 * that. Here a program reads from a file whose server (FUSE) never answers, and is killed
 * while it is traced: the one that traces it is then the last. It is held up meanwhile at
 * a page of the shadow stack that the program has replaced by one of its own (userfaultfd).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fuse.h>
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

#define PATIENCE 60000 /* milliseconds; only a hang uses them up */
#define FILE_NAME "/tmp/last_test"
#define SIZE 4096
#define STALL_FD 100 /* in the target */

static struct {
	volatile unsigned long page; /* the target's, instead of its shadow stack */
	volatile bool reading; /* its read has come to the server */
	const char *volatile step; /* which the target takes */
	volatile long error;
} * shared;

static int dev;

static bool ends(pid_t pid)
{
	pid_t ended = 0;

	for (int i = 0; i < PATIENCE && !ended; i++) {
		ended = waitpid(pid, NULL, WNOHANG);
		usleep(1000);
	}
	return ended == pid;
}

/* --- a file system that is one file, which can be opened and never be read --- */

static void reply(int fuse, uint64_t unique, int error, const void *data, size_t size)
{
	char buf[sizeof(struct fuse_out_header) + 256];
	struct fuse_out_header out = {
		.len = sizeof(out) + size,
		.error = error,
		.unique = unique,
	};

	memcpy(buf, &out, sizeof(out));
	if (size)
		memcpy(buf + sizeof(out), data, size);
	if (write(fuse, buf, out.len) < 0 && errno != ENOENT)
		_exit(1);
}

static void serve_one(int fuse, const struct fuse_in_header *in)
{
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.flags = FUSE_ASYNC_DIO,
		.max_write = SIZE,
	};
	const struct fuse_attr_out attr = {
		.attr = { .ino = 1, .size = SIZE, .mode = S_IFREG | 0644, .nlink = 1 },
	};
	const struct fuse_open_out open = { .open_flags = FOPEN_DIRECT_IO };

	switch (in->opcode) {
	case FUSE_INIT:
		return reply(fuse, in->unique, 0, &init, sizeof(init));
	case FUSE_GETATTR:
		return reply(fuse, in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
		return reply(fuse, in->unique, 0, &open, sizeof(open));
	case FUSE_READ:
		shared->reading = true;
		return;
	case FUSE_FORGET:
	case FUSE_INTERRUPT:
		return;
	}
	reply(fuse, in->unique, -ENOSYS, NULL, 0);
}

static void __attribute__((noreturn)) serve(int fuse)
{
	static _Alignas(8) char buf[FUSE_MIN_READ_BUFFER + SIZE];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fuse, buf, sizeof(buf)) > 0)
		serve_one(fuse, (void *)buf);
	_exit(0);
}

/* When its server ends, so do all calls that wait for it. */
static pid_t start_server(void)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];
	pid_t pid;

	if (fuse < 0)
		ksft_exit_skip("/dev/fuse: %s\n", strerror(errno));
	close(open(FILE_NAME, O_CREAT | O_CLOEXEC, 0644));
	snprintf(options, sizeof(options), "fd=%d,rootmode=100644,user_id=0,group_id=0", fuse);
	if (mount("last_test", FILE_NAME, "fuse", 0, options))
		ksft_exit_fail_msg("mount: %s\n", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid)
		serve(fuse);
	close(fuse);
	return pid;
}

/* --- the target --- */

static bool begin_to_read(void)
{
	static char buf[SIZE];
	static struct iocb cb, *list = &cb;
	aio_context_t ctx = 0;
	struct stat st;

	cb.aio_lio_opcode = IOCB_CMD_PREAD;
	cb.aio_fildes = open(FILE_NAME, O_RDONLY | O_DIRECT | O_CLOEXEC);
	cb.aio_buf = (uintptr_t)buf;
	cb.aio_nbytes = SIZE;
	/* So that the kernel asks for the size, beyond which it reads nothing. */
	return !fstat(cb.aio_fildes, &st) && !syscall(SYS_io_setup, 1, &ctx) &&
	       syscall(SYS_io_submit, ctx, 1, &list) == 1;
}

/* Neither calls nor returns when its shadow stack is gone. */
static __attribute__((noreturn, noinline)) void replace_stack(unsigned long page, long size)
{
	unsigned long at = ss_pointer() & -size;

	shared->error =
		ss_syscall(__NR_mremap, page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	if (shared->error == (long)at)
		shared->page = at;
	for (;;)
		ss_syscall(__NR_ppoll, 0, 0, 0, 0, 0);
}

static __attribute__((noreturn, noinline)) void target(unsigned long page, long size)
{
	shared->step = "shadow stack";
	if (ss_enable(SS_ENABLE))
		ss_syscall(__NR_exit_group, 1, 0, 0, 0, 0);
	shared->step = "mremap";
	replace_stack(page, size);
}

/* Until its read has come to the server and its stack is replaced. */
static bool target_is_ready(pid_t pid)
{
	for (int i = 0; i < PATIENCE && !(shared->reading && shared->page); i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			break;
		usleep(1000);
	}
	return shared->reading && shared->page;
}

static pid_t start_target(void)
{
	long size = getpagesize();
	struct uffdio_api api = { .api = UFFD_API };
	pid_t pid;
	void *page;
	int fd;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared->step = "userfaultfd or asynchronous I/O";
	fd = syscall(SYS_userfaultfd, O_NONBLOCK);
	if (dup2(fd, STALL_FD) < 0 || ioctl(STALL_FD, UFFDIO_API, &api) || !begin_to_read())
		_exit(1);
	close(fd);
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	target((unsigned long)page, size);
}

/* Its page is missing from now on: who looks at its stack waits. */
static bool hold(struct stall *stall, int pidfd)
{
	struct uffdio_register reg = {
		.range = { .start = stall->page, .len = getpagesize() },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	stall->fd = syscall(SYS_pidfd_getfd, pidfd, STALL_FD, 0);
	return stall->fd >= 0 && !ioctl(stall->fd, UFFDIO_REGISTER, &reg);
}

/* Some kernels unmap a shadow stack when its thread ends: then there is no page to give. */
static bool let_go(const struct stall *stall)
{
	struct uffdio_range range = { .start = stall->page, .len = getpagesize() };

	return stall_end(stall) || !ioctl(stall->fd, UFFDIO_WAKE, &range);
}

/* --- who traces it --- */

static pid_t start_trace(int pidfd)
{
	struct shstk_ioc_thread thread;
	uint64_t entry[8];
	struct shstk_ioc_trace arg = {
		.pidfd = pidfd,
		.max_entries = 8,
		.max_threads = 1,
		.threads = (uintptr_t)&thread,
		.entries = (uintptr_t)entry,
	};
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(ioctl(dev, SHSTK_IOC_TRACE, &arg) ? 1 : thread.error == -ESRCH ? 0 : 2);
}

static void test_last(void)
{
	pid_t pid = start_target(), tracer;
	struct stall stall = { .fd = -1 };
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	bool held;

	if (!target_is_ready(pid))
		ksft_exit_fail_msg("the target fails: %s, %ld\n", shared->step, shared->error);
	stall.page = shared->page;
	if (!hold(&stall, pidfd))
		ksft_exit_fail_msg("the target's page: %s\n", strerror(errno));
	tracer = start_trace(pidfd);
	held = stall_await(&stall, PATIENCE);
	kill(pid, SIGKILL);
	close(pidfd);
	ksft_test_result(held && ends(pid), "a program ends while one that traces it is held up\n");
	ksft_test_result(let_go(&stall) && ends(tracer),
			 "which then does not wait for what the program has begun\n");
}

int main(void)
{
	pid_t server;

	need_shadow_stacks();
	dev = need_device();
	ksft_print_header();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	server = start_server();
	ksft_set_plan(2);
	test_last();
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	umount2(FILE_NAME, MNT_DETACH);
	unlink(FILE_NAME);
	ksft_finished();
}
