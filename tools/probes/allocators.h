/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocators.h - the functions by which a running process allocates and frees.
 */
#ifndef TOOLS_PROBES_ALLOCATORS_H
#define TOOLS_PROBES_ALLOCATORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/probes/bpf/event.h"

/**
 * struct allocator_function - one of them
 * @file: number of its file.
 * @offset: where it begins in the file.
 * @kind: what it does.
 */
struct allocator_function {
	unsigned int file;
	uint64_t offset;
	enum probe_kind kind;
};

/**
 * struct allocators - all of a process
 * @functions: the functions,
 * @nr: so many, and
 * @max: room for so many.
 * @files: paths of their files as the process has them,
 * @nr_files: so many.
 */
struct allocators {
	struct allocator_function *functions;
	size_t nr;
	size_t max;
	char **files;
	size_t nr_files;
};

/**
 * allocators_find() - look into all that a process has mapped
 * @pid: the process.
 * @ret: receives them, for allocators_deinit(), also on failure.
 *
 * An allocator is what defines a malloc(), of that name or one that allocators are known to
 * have beside it, and a free(); there may be several.
 *
 * Return: 0; -ENODATA: there is none whose functions have names; -ENOEXEC: the process is
 * of another kind than this command (32-bit code); or a negative errno.
 */
int allocators_find(pid_t pid, struct allocators *ret);

void allocators_deinit(struct allocators *a);

#endif
