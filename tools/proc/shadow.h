/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/proc/shadow.h - the shadow stacks that a process has mapped.
 */
#ifndef TOOLS_PROC_SHADOW_H
#define TOOLS_PROC_SHADOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct area {
	uint64_t start;
	uint64_t end;
};

struct areas {
	struct area *v;
	size_t n;
};

/**
 * areas_read() - find the mappings of a process that are shadow stacks
 * @pid: the process.
 * @ret: receives them; free(@ret->v) when done.
 *
 * Return: 0, or a negative errno of its smaps file.
 */
int areas_read(pid_t pid, struct areas *ret);

#endif
