/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocators.h - find the functions by which a running process allocates and frees memory, and the one by
 * which its loader tells debuggers that there are other libraries.
 */
#ifndef TOOLS_PROBES_ALLOCATORS_H
#define TOOLS_PROBES_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/probes/bpf/event.h"

/**
 * struct allocator_function - a function that allocates or frees
 * @file: index of its file in &struct allocators.
 * @offset: offset in the file at which the function begins.
 * @kind: what the function does.
 */
struct allocator_function {
	unsigned int file;
	uint64_t offset;
	enum probe_kind kind;
};

/**
 * struct allocators - all such functions of a process
 * @functions: the functions.
 * @nr: number of @functions.
 * @max: number of functions that @functions has room for.
 * @loader: the function of the loader.
 * @has_loader: there is one.
 * @files: paths by which this process can open the files of the functions.
 * @nr_files: number of @files.
 */
struct allocators {
	struct allocator_function *functions;
	size_t nr;
	size_t max;
	struct allocator_function loader;
	bool has_loader;
	char **files;
	size_t nr_files;
};

/**
 * allocators_find() - search all files that a process has mapped as code
 * @pid: the process.
 * @ret: receives the functions; give it to allocators_deinit(), also after a failure.
 *
 * A file has an allocator if it defines a malloc() and a free(). malloc() may have its own name or
 * one of the prefixes of known allocators. There may be several allocators.
 *
 * Return: 0; -ENODATA if no functions are found by their names; -ENOEXEC if the process is of
 * another kind than this command (32-bit code); or a negative errno.
 */
int allocators_find(pid_t pid, struct allocators *ret);

void allocators_deinit(struct allocators *a);

#endif
