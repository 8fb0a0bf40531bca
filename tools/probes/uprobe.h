/* SPDX-License-Identifier: GPL-2.0-or-later */
/* uprobe.h - a place in a file at which the kernel runs a BPF program for one process. */
#ifndef TOOLS_PROBES_UPROBE_H
#define TOOLS_PROBES_UPROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct uprobe - a place to be probed
 * @pid: the process; the probe is for all its threads, until it ends or executes another program.
 * @path: path of the file.
 * @offset: offset in the file.
 * @returns: probe the return of the function that begins at @offset, not its beginning.
 */
struct uprobe {
	pid_t pid;
	const char *path;
	uint64_t offset;
	bool returns;
};

/* Returns the kernel's number of this type of perf event, or a negative number if it has none. */
int uprobe_type(void);

/* Opens a perf event for programs_attach(). Returns a descriptor or a negative errno. */
int uprobe_open(int type, const struct uprobe *u);

#endif
