/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach.h - probes at all functions by which a process allocates and frees.
 */
#ifndef TOOLS_PROBES_ATTACH_H
#define TOOLS_PROBES_ATTACH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/probes/program.h"
#include "tools/reason.h"

/**
 * struct attached - the probes of a process
 * @fds: descriptors: as long as they are open, the probes are there.
 * @nr: so many.
 * @functions: so many functions have probes.
 */
struct attached {
	int *fds;
	size_t nr;
	size_t functions;
};

/**
 * probes_attach() - begin to look at a process
 * @p: the programs.
 * @pid: the process.
 * @number: its number in all that is told.
 * @ret: receives the probes, for probes_detach(), also on failure.
 * @why: receives why not.
 *
 * Nothing is written into the program but for the kernel's breakpoints, in its own copies of
 * the pages; the kernel takes them away when the descriptors are closed, whoever does so.
 *
 * Return: 0 or a negative errno.
 */
int probes_attach(const struct programs *p, pid_t pid, uint32_t number, struct attached *ret,
		  struct reason *why);

/*
 * Takes the probes away. The kernel waits for each until nobody can be in it any more, some
 * 80 ms, and does one at a time.
 */
void probes_detach(struct attached *a);

#endif
