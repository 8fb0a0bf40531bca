// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * confine.c - limits and locks a process that reads what strangers wrote.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/rules/confine.h"
#include "tools/seccomp.h"

#define NOBODY 65534

/* Forbids all system calls but a few, for good. Returns 0 or a negative errno. */
static int filter_calls(void)
{
	static const struct sock_filter code[] = {
		FILTER_BEGIN,
		/* Argument 2 is the protection. */
		FILTER_CALL_WITHOUT(mmap, 2, PROT_EXEC),
		FILTER_CALL_WITHOUT(mprotect, 2, PROT_EXEC),
		FILTER_CALL(brk),
		FILTER_CALL(munmap),
		FILTER_CALL(mremap),
		FILTER_CALL(madvise),
		FILTER_CALL(read),
		FILTER_CALL(pread64),
		FILTER_CALL(write),
		FILTER_CALL(close),
		FILTER_CALL(getrandom),
		FILTER_CALL(sysinfo),
		FILTER_CALL(rt_sigreturn),
		FILTER_CALL(exit),
		FILTER_CALL(exit_group),
		FILTER_DENY,
	};

	return filter_install(code, sizeof(code) / sizeof(code[0]));
}

static int limit(int which, rlim_t value)
{
	struct rlimit r;

	if (getrlimit(which, &r))
		return -errno;
	/* Only root may raise its hard limit. For others it stays, if it is lower. */
	if (value > r.rlim_max)
		value = r.rlim_max;
	r.rlim_cur = value;
	r.rlim_max = value;
	return setrlimit(which, &r) ? -errno : 0;
}

int sandbox_limit(const struct sandbox_limits *limits)
{
	int err = limit(RLIMIT_AS, limits->memory);

	/* The kernel limits the nice value, and everybody may increase it. */
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + limits->nicer);
	if (!err)
		err = limit(RLIMIT_CPU, limits->seconds);
	if (!err)
		err = limit(RLIMIT_FSIZE, limits->output);
	return err ? err : limit(RLIMIT_CORE, 0);
}

/* Gives up root, if this process is root. Returns 0 or a negative errno. */
static int become_nobody(void)
{
	if (geteuid())
		return 0;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return 0;
}

/* Returns the lowest descriptor in @keep that is not below @fd, or ~0U. */
static unsigned int next_kept(const int *keep, size_t n, unsigned int fd)
{
	unsigned int next = ~0U;

	for (size_t i = 0; i < n; i++)
		if (keep[i] >= 0 && (unsigned int)keep[i] >= fd && (unsigned int)keep[i] < next)
			next = keep[i];
	return next;
}

int sandbox_close_others(const int *keep, size_t n)
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

/*
 * Makes this process the first one to be killed when memory is short. If that is not permitted, it
 * is as likely to be killed as all others.
 */
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
	err = sandbox_close_others(keep, n);
	if (!err)
		err = become_nobody();
	if (err)
		return err;
	/* Changing the user resets the first of these settings, so they are set afterwards. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return filter_calls();
}
