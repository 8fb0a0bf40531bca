/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * uprobe.h - one place in a file, of one process, where the kernel runs a BPF program.
 */
#ifndef TOOLS_PROBES_UPROBE_H
#define TOOLS_PROBES_UPROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct uprobe - where
 * @pid: the process: all its threads, until it ends or executes another program.
 * @path: the file.
 * @offset: in the file.
 * @returns: where the function that begins there returns.
 */
struct uprobe {
	pid_t pid;
	const char *path;
	uint64_t offset;
	bool returns;
};

/* The kernel's number of this kind of event; negative: it has none. */
int uprobe_type(void);

/* Opens an event for programs_attach(). Returns a descriptor or a negative errno. */
int uprobe_open(int type, const struct uprobe *u);

#endif
