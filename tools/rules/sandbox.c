// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox.c - a process that reads what strangers wrote.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/rules/sandbox.h"

#define NOBODY 65534

#if defined(__x86_64__)
#define OWN_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_AUDIT_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define OWN_AUDIT_ARCH AUDIT_ARCH_RISCV64
#endif

#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define ALLOW_CALL(name) UNLESS(__NR_##name, 1), ALLOW
/* The low word of the third argument: protection. */
#define ALLOW_UNLESS_EXEC(name)                 \
	UNLESS(__NR_##name, 4), FIELD(args[2]), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), ALLOW, DENY

static int filter_calls(void)
{
	static struct sock_filter code[] = {
		FIELD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_AUDIT_ARCH, 1, 0),
		KILL,
		FIELD(nr),
		/* Calls of the x32 ABI have bit 30 set in their numbers, so none matches. */
		ALLOW_UNLESS_EXEC(mmap),
		ALLOW_UNLESS_EXEC(mprotect),
		ALLOW_CALL(brk),
		ALLOW_CALL(munmap),
		ALLOW_CALL(mremap),
		ALLOW_CALL(madvise),
		ALLOW_CALL(read),
		ALLOW_CALL(pread64),
		ALLOW_CALL(write),
		ALLOW_CALL(close),
		ALLOW_CALL(getrandom),
		ALLOW_CALL(sysinfo),
		ALLOW_CALL(rt_sigreturn),
		ALLOW_CALL(exit),
		ALLOW_CALL(exit_group),
		DENY,
	};
	static const struct sock_fprog program = {
		.len = sizeof(code) / sizeof(code[0]),
		.filter = code,
	};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

static int limit(int which, rlim_t value)
{
	struct rlimit r;

	if (getrlimit(which, &r))
		return -errno;
	/* Only root may raise its hard limit: others keep it if it is lower. */
	if (value > r.rlim_max)
		value = r.rlim_max;
	r.rlim_cur = value;
	r.rlim_max = value;
	return setrlimit(which, &r) ? -errno : 0;
}

int sandbox_limit(const struct sandbox_limits *limits)
{
	int err = limit(RLIMIT_AS, limits->memory);

	/* The kernel bounds what that gives, and to be nicer is permitted to all. */
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + limits->nicer);
	if (!err)
		err = limit(RLIMIT_CPU, limits->seconds);
	if (!err)
		err = limit(RLIMIT_FSIZE, limits->output);
	return err ? err : limit(RLIMIT_CORE, 0);
}

static int become_nobody(void)
{
	if (geteuid())
		return 0;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return 0;
}

/* The next one to keep from @fd on, or ~0U. */
static unsigned int next_kept(const int *keep, size_t n, unsigned int fd)
{
	unsigned int next = ~0U;

	for (size_t i = 0; i < n; i++)
		if ((unsigned int)keep[i] >= fd && (unsigned int)keep[i] < next)
			next = keep[i];
	return next;
}

static int close_others(const int *keep, size_t n)
{
	unsigned int from = 0, next;

	do {
		next = next_kept(keep, n, from);
		if (next > from && syscall(SYS_close_range, from, next - 1, 0))
			return -errno;
		from = next + 1;
	} while (from);
	return 0;
}

/* Where this may not be said it is as likely as all others. */
static void be_killed_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	dprintf(fd, "1000");
	close(fd);
}

int sandbox_enter(const int *keep, size_t n)
{
	int err;

	be_killed_first();
	err = close_others(keep, n);
	if (!err)
		err = become_nobody();
	if (err)
		return err;
	/* Changing the user takes the first of these back. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return filter_calls();
}
