/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hottest.h - the hottest function so far, for the line of progress.
 */
#ifndef TOOLS_RECORD_TOP_HOTTEST_H
#define TOOLS_RECORD_TOP_HOTTEST_H

#include <stddef.h>
#include <stdint.h>

#include "tools/record/backend.h"

/**
 * struct hottest - what is known of it; all 0 in the beginning
 * @pid: the process that looks for it, or 0.
 * @fd: what it says comes from there.
 * @next: CLOCK_MONOTONIC in ns, when the next one may begin.
 * @size: bytes in @said.
 * @said: so far, by @pid.
 * @text: "45.8 % function", or empty.
 */
struct hottest {
	pid_t pid;
	int fd;
	uint64_t next;
	size_t size;
	char said[256];
	char text[256];
};

/**
 * hottest_update() - look for it, or take what was found
 * @h: what is known.
 * @r: the recording.
 * @at: CLOCK_MONOTONIC in ns.
 *
 * To name functions files are read, which may take seconds: a process of its own does it,
 * so that recording goes on meanwhile. Never is more than one there, and all of them use no
 * more than a twentieth of a CPU.
 */
void hottest_update(struct hottest *h, const struct recording *r, uint64_t at);

/* It is not wanted any more. */
void hottest_end(struct hottest *h);

#endif
