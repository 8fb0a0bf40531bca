/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter.h - what a filter of system calls permits.
 */
#ifndef AGENT_FILTER_H
#define AGENT_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * filter_permits() - tell whether a filter permits a system call, whatever its arguments are
 * @code: the filter's instructions, which the kernel may not have checked yet.
 * @n: number of instructions.
 * @call: number of the system call on this machine.
 *
 * Async-signal-safe.
 *
 * Return: false also if that depends on the arguments, or on where the call is made.
 */
bool filter_permits(const struct sock_filter *code, uint32_t n, uint32_t call);

#endif
