/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * safety.h - can probes do harm to a process, by what is known of kernels?
 */
#ifndef TOOLS_PROBES_SAFETY_H
#define TOOLS_PROBES_SAFETY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/reason.h"

/**
 * probes_unsafe() - look for a reason not to put probes into a process
 * @arch: enum shstk_arch: the machine's.
 * @pid: the process.
 * @why: receives it.
 *
 * Where a function is probed at its return, the kernel replaces its return address. Before
 * Linux 6.11 on x86, and before 6.18 on arm64, it leaves the shadow stack as it is: the
 * process would be killed. On x86 from 6.11 on the return is a system call, which before
 * 6.14 is shown to filters of system calls: they would kill it. Fixes may have been brought
 * to older kernels; that is not relied on.
 *
 * Return: true: there is a reason.
 */
bool probes_unsafe(int arch, pid_t pid, struct reason *why);

#endif
