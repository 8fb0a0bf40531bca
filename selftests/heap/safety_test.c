// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * safety_test.c - tests into which processes, on which kernels, `shstk record --heap -p` puts no
 * probes.
 *
 * The release of the kernel, and whether a process has shadow stacks, are made up; the filters of
 * system calls are real ones.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "tools/probes/safety.h"
#include "tools/proc/shadow.h"

int __wrap_uname(struct utsname *name);
int __wrap_shadow_stacks_any(pid_t pid);

static const char *release;
static pid_t with_shadow_stacks;
static int points, failed;

int __wrap_uname(struct utsname *name)
{
	memset(name, 0, sizeof(*name));
	strncpy(name->release, release, sizeof(name->release) - 1);
	return 0;
}

int __wrap_shadow_stacks_any(pid_t pid)
{
	return pid == with_shadow_stacks;
}

/* Installs a filter that lets all calls pass. Returns whether that worked. */
static bool filter_calls(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog prog = { .len = 1, .filter = code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static void *filtered_thread(void *arg)
{
	char word = filter_calls() ? 'y' : 'n';

	if (write(*(int *)arg, &word, 1) == 1)
		pause();
	return NULL;
}

/**
 * begin() - start a process that waits
 * @filtered: one of its threads, not the first one, gets a filter of system calls.
 *
 * Return: its process ID, or 0 if it could not have a filter.
 */
static pid_t begin(bool filtered)
{
	pthread_t thread;
	int ends[2];
	char word = 'y';
	pid_t pid;

	if (pipe(ends))
		return 0;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (filtered)
			pthread_create(&thread, NULL, filtered_thread, &ends[1]);
		else if (write(ends[1], "y", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ends[0], &word, 1) != 1)
		word = 'n';
	close(ends[0]);
	close(ends[1]);
	if (word == 'y')
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static void end(pid_t pid)
{
	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#define OLD "Linux 6.1 or later is needed"
#define SHADOW "has shadow stacks"
#define FILTER "has a filter of system calls"

/* For each process the reason why it gets no probes, or NULL. */
static const struct {
	int arch;
	const char *release;
	const char *plain, *shadow, *filtered;
} cases[] = {
	{ SHSTK_ARCH_X86, "6.0.19", OLD, OLD, OLD },
	{ SHSTK_ARCH_X86, "6.1.0-40-amd64", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_X86, "6.10.14", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_X86, "6.11.0-rc1+", NULL, NULL, FILTER },
	{ SHSTK_ARCH_X86, "6.12.48+deb13-amd64", NULL, NULL, FILTER },
	{ SHSTK_ARCH_X86, "6.13.9", NULL, NULL, FILTER },
	{ SHSTK_ARCH_X86, "6.14.0", NULL, NULL, NULL },
	{ SHSTK_ARCH_X86, "6.17.3", NULL, NULL, NULL },
	{ SHSTK_ARCH_X86, "6.18.0", NULL, NULL, NULL },
	{ SHSTK_ARCH_X86, "7.2.13", NULL, NULL, NULL },
	{ SHSTK_ARCH_X86, "5.19.17", OLD, OLD, OLD },
	{ SHSTK_ARCH_X86, "a kernel", OLD, OLD, OLD },
	{ SHSTK_ARCH_ARM64, "6.0.19", OLD, OLD, OLD },
	{ SHSTK_ARCH_ARM64, "6.1.0", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_ARM64, "6.10.14", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_ARM64, "6.11.0", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_ARM64, "6.13.9", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_ARM64, "6.14.0", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_ARM64, "6.17.3", NULL, SHADOW, NULL },
	{ SHSTK_ARCH_ARM64, "6.18.0", NULL, NULL, NULL },
	{ SHSTK_ARCH_ARM64, "7.2.13", NULL, NULL, NULL },
};

#define NR_CASES (sizeof(cases) / sizeof(*cases))

static void judge(int i, pid_t pid, const char *who, const char *reason)
{
	const char *arch = cases[i].arch == SHSTK_ARCH_X86 ? "x86" : "arm64";
	struct reason why = { .text = "" };
	bool unsafe, good;

	if (!pid) {
		printf("ok %d %s, %s: %s # SKIP no filters of system calls here\n", ++points, arch,
		       cases[i].release, who);
		return;
	}
	release = cases[i].release;
	unsafe = probes_unsafe(cases[i].arch, pid, &why);
	good = unsafe == !!reason && (!reason || strstr(why.text, reason));
	if (!good)
		printf("# \"%s\" instead of \"%s\"\n", why.text, reason ? reason : "");
	printf("%sok %d %s, %s: %s: %s\n", good ? "" : "not ", ++points, arch, release, who,
	       reason ? reason : "probes may be put into it");
	failed |= !good;
}

int main(void)
{
	pid_t plain = begin(false), shadow = begin(false), filtered = begin(true);

	with_shadow_stacks = shadow;
	printf("KTAP version 1\n1..%zu\n", 3 * NR_CASES);
	for (size_t i = 0; i < NR_CASES; i++) {
		judge(i, plain, "a process", cases[i].plain);
		judge(i, shadow, "one with shadow stacks", cases[i].shadow);
		judge(i, filtered, "one with a filter", cases[i].filtered);
	}
	end(plain);
	end(shadow);
	end(filtered);
	return failed;
}
