/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * confine.h - limits and locks a process that reads what strangers wrote.
 */
#ifndef TOOLS_RULES_CONFINE_H
#define TOOLS_RULES_CONFINE_H

#include <stddef.h>

/**
 * struct sandbox_limits - what a process may use
 * @memory: address space in bytes.
 * @seconds: CPU time in seconds; then it is killed.
 * @output: size of any file that it writes, in bytes.
 * @nicer: number that is added to its nice value.
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

/*
 * Closes all descriptors except the @n ones in @keep, of which negative ones do not count. Returns 0
 * or a negative errno.
 */
int sandbox_close_others(const int *keep, size_t n);

/**
 * sandbox_enter() - give up all rights, for good
 * @keep: descriptors that stay open; all others are closed.
 * @n: number of these descriptors.
 *
 * The process must have one thread. From now on, it runs as nobody if it was root. It can only use
 * memory that is not executable, read and write the files that are open, and end. Every other
 * system call fails with EPERM: it can open no file, start no program and make no socket. It dies
 * with its parent, and it is the first process that the kernel kills when memory is short.
 *
 * Return: 0 or a negative errno; after an error it must not continue.
 */
int sandbox_enter(const int *keep, size_t n);

#endif
