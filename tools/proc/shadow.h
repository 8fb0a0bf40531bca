/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/proc/shadow.h - the shadow stacks that a process has mapped.
 */
#ifndef TOOLS_PROC_SHADOW_H
#define TOOLS_PROC_SHADOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One of them: its first address, and the first one behind it. */
struct shadow_stack {
	uint64_t start;
	uint64_t end;
};

/* All of a process: @n in @v. */
struct shadow_stacks {
	struct shadow_stack *v;
	size_t n;
};

/**
 * shadow_stacks_read() - find the mappings of a process that are shadow stacks
 * @pid: the process.
 * @ret: receives them; free(@ret->v) when done.
 *
 * Return: 0, or a negative errno of its smaps file.
 */
int shadow_stacks_read(pid_t pid, struct shadow_stacks *ret);

/* Has the process any? 1, 0, or a negative errno. */
int shadow_stacks_any(pid_t pid);

#endif
