/* SPDX-License-Identifier: GPL-2.0-or-later */
/* safety.h - can probes harm a process, by what is known of kernels? */
#ifndef TOOLS_PROBES_SAFETY_H
#define TOOLS_PROBES_SAFETY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/reason.h"

/**
 * probes_unsafe() - find a reason not to put probes into a process
 * @arch: architecture of the machine (enum shstk_arch).
 * @pid: the process.
 * @why: receives the reason.
 *
 * If the return of a function is probed, the kernel replaces the function's return address. Before
 * Linux 6.11 on x86, and before 6.18 on arm64, the kernel does not change the shadow stack
 * accordingly: a process with shadow stacks would be killed. On x86 from 6.11 on, the probed return
 * makes a system call. Before 6.14, filters of system calls see this call and may kill the process.
 * Fixes may have been brought to older kernels; the check does not rely on this.
 *
 * Return: true if there is a reason.
 */
bool probes_unsafe(int arch, pid_t pid, struct reason *why);

#endif
