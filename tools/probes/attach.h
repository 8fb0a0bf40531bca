/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attach.h - put probes at all functions by which a process allocates and frees. */
#ifndef TOOLS_PROBES_ATTACH_H
#define TOOLS_PROBES_ATTACH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/probes/probe_programs.h"
#include "tools/reason.h"

/**
 * struct attached - the probes in a process
 * @fds: descriptors of the probes, which exist as long as the descriptors are open.
 * @nr: number of @fds.
 * @functions: number of functions that have probes.
 */
struct attached {
	int *fds;
	size_t nr;
	size_t functions;
};

/**
 * probes_attach() - put probes into a process
 * @p: the BPF programs.
 * @pid: the process.
 * @number: the number that stands for the process in all records.
 * @ret: receives the probes; give it to probes_detach(), also after a failure.
 * @why: receives the reason of a failure.
 *
 * Nothing is written into the program except the kernel's breakpoints, in the process's own copies
 * of the pages. The kernel removes the breakpoints when the descriptors are closed, whoever closes
 * them.
 *
 * Return: 0 or a negative errno.
 */
int probes_attach(const struct programs *p, pid_t pid, uint32_t number, struct attached *ret,
		  struct reason *why);

/*
 * Removes the probes. The kernel removes one probe at a time, and waits with each until no thread
 * can be in it any more, which takes about 80 ms.
 */
void probes_detach(struct attached *a);

#endif
