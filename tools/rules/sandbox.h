/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox.h - a process that reads what strangers wrote.
 */
#ifndef TOOLS_RULES_SANDBOX_H
#define TOOLS_RULES_SANDBOX_H

#include <stddef.h>

/**
 * struct sandbox_limits - what a process may use
 * @memory: bytes of address space.
 * @seconds: CPU time; then it is killed.
 * @output: bytes of any file that it writes.
 * @nicer: so much is added to its nice value.
 */
struct sandbox_limits {
	size_t memory;
	unsigned int seconds;
	size_t output;
	int nicer;
};

/**
 * sandbox_limit() - limit what this process may use from now on
 * @limits: the limits.
 *
 * Return: 0 or a negative errno.
 */
int sandbox_limit(const struct sandbox_limits *limits);

/**
 * sandbox_enter() - give up all rights, for good
 * @keep: descriptors that stay open; all others are closed.
 * @n: number of these.
 *
 * From now on this process, of one thread, is nobody's if it was root's, and can but use
 * memory that is not executable, read and write the files that are open, and end. Every
 * other system call fails with EPERM: no file can be opened, no program started, no
 * socket made. It dies with its parent, and is
 * the first that the kernel kills where memory is short.
 *
 * Return: 0 or a negative errno: then it must not go on.
 */
int sandbox_enter(const int *keep, size_t n);

#endif
