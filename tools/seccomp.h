/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * seccomp.h - building blocks for filters of system calls. Calls that a filter does not allow fail
 * with EPERM.
 *
 * A filter begins with FILTER_BEGIN, which kills a process that makes a call of another
 * architecture, and ends with FILTER_DENY. The blocks between them find the number of the system
 * call loaded. A block that loads something else must decide about the call.
 */
#ifndef TOOLS_SECCOMP_H
#define TOOLS_SECCOMP_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define FILTER_ARCH AUDIT_ARCH_RISCV64
#endif

#define FILTER_FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define FILTER_ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define FILTER_DENY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define FILTER_UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)

/* Calls of the x32 ABI have bit 30 set in their numbers, so none matches. */
#define FILTER_BEGIN                                                                \
	FILTER_FIELD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), FILTER_FIELD(nr)

#define FILTER_CALL(name) FILTER_UNLESS(__NR_##name, 1), FILTER_ALLOW

/*
 * Allows a system call if the low word of an argument has none of these bits, and denies it
 * otherwise.
 */
#define FILTER_CALL_WITHOUT(name, arg, bits)                    \
	FILTER_UNLESS(__NR_##name, 4), FILTER_FIELD(args[arg]), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0), FILTER_ALLOW, FILTER_DENY

/* Allows a system call if the low word of an argument has this value, and denies it otherwise. */
#define FILTER_CALL_WITH(name, arg, value)                                               \
	FILTER_UNLESS(__NR_##name, 4), FILTER_FIELD(args[arg]), FILTER_UNLESS(value, 1), \
		FILTER_ALLOW, FILTER_DENY

/* Installs a filter, which stays until the process ends. Returns 0 or a negative errno. */
static inline int filter_install(const struct sock_filter *code, unsigned short len)
{
	const struct sock_fprog program = { .len = len, .filter = (struct sock_filter *)code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

#endif
