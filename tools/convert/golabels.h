/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * golabels.h - the labels (runtime/pprof) of the goroutines of living processes.
 *
 * A sample of the kernel's does not say which goroutine it is of. It has addresses on that
 * one's stack, which no other goroutine has at the time. What the process says of the
 * goroutine is read a moment later: labels that were there for less are missed.
 */
#ifndef TOOLS_CONVERT_GOLABELS_H
#define TOOLS_CONVERT_GOLABELS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GOLABELS_MAX 1024 /* bytes of a goroutine's labels, at most */
#define GOLABELS_PLACES 3

/**
 * struct golabels_hints - what a sample knows of its goroutine
 * @g: address of its description, or of that of the thread; or anything.
 * @places: addresses, one of which is on its stack, the likeliest one first.
 * @nr: number of them.
 */
struct golabels_hints {
	uint64_t g;
	uint64_t places[GOLABELS_PLACES];
	unsigned int nr;
};

struct golabels;

/* Of process @pid, which runs code of Go. NULL: no memory. */
struct golabels *golabels_create(pid_t pid);
void golabels_destroy(struct golabels *all);

/*
 * The labels of the goroutine that a sample is of, in @buf, of GOLABELS_MAX bytes: keys
 * and values, each with a zero behind it. Returns their bytes, 0 if there are none.
 */
size_t golabels_find(struct golabels *all, const struct golabels_hints *hints, char *buf);

#endif
