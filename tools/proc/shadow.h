/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/proc/shadow.h - finds the shadow stacks that a process has mapped.
 */
#ifndef TOOLS_PROC_SHADOW_H
#define TOOLS_PROC_SHADOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A shadow stack: its first address, and the first address behind it. */
struct shadow_stack {
	uint64_t start;
	uint64_t end;
};

/* All shadow stacks of a process: @n entries in @v. */
struct shadow_stacks {
	struct shadow_stack *v;
	size_t n;
};

/**
 * shadow_stacks_read() - find the mappings of a process that are shadow stacks
 * @pid: the process.
 * @ret: receives the shadow stacks. The caller frees @ret->v.
 *
 * Return: 0, or a negative errno of opening its smaps file; -ESRCH also if the process has ended and was not
 * waited for.
 */
int shadow_stacks_read(pid_t pid, struct shadow_stacks *ret);

/* Returns 1 if the process has a shadow stack, 0 if it has none, or a negative errno. */
int shadow_stacks_any(pid_t pid);

#endif
