/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hottest.h - finds the hottest function of the profile so far, for the line of progress that
 * `shstk record` draws on a terminal.
 */
#ifndef TOOLS_RECORD_TOP_HOTTEST_H
#define TOOLS_RECORD_TOP_HOTTEST_H

#include <stddef.h>
#include <stdint.h>

#include "tools/record/backend.h"

/**
 * struct hottest - the hottest function and the process that looks for it; all 0 at the beginning
 * @pid: the child process that looks for the function now, or 0.
 * @fd: the pipe from which that process's text is read.
 * @next: CLOCK_MONOTONIC in ns, the earliest time at which the next process may begin.
 * @size: bytes in @said.
 * @said: the text that process @pid has written so far.
 * @text: the last complete text, such as "45.8 % function", or empty.
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
 * hottest_update() - start to look for the hottest function, or take the text that was found
 * @h: the state, of which @h->text is the result.
 * @r: the recording.
 * @at: CLOCK_MONOTONIC in ns.
 *
 * Finding names of functions means reading files, which may take seconds. A child process does it,
 * so that recording goes on meanwhile. There is never more than one of these processes, and
 * together they use at most a twentieth of a CPU.
 */
void hottest_update(struct hottest *h, const struct recording *r, uint64_t at);

/* Ends the child process, if there is one. */
void hottest_end(struct hottest *h);

#endif
