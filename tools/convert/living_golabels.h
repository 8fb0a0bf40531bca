/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * living_golabels.h - the labels (runtime/pprof) of the goroutines of living processes.
 *
 * A sample of the kernel does not say to which goroutine it belongs. But it has addresses on that
 * goroutine's stack, which no other goroutine has at that time. What the process tells of the
 * goroutine is read a moment later: labels that exist for a shorter time are missed.
 */
#ifndef TOOLS_CONVERT_LIVING_GOLABELS_H
#define TOOLS_CONVERT_LIVING_GOLABELS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GOLABELS_MAX 1024 /* bytes of a goroutine's labels, at most */
#define GOLABELS_PLACES 3

/**
 * struct golabels_hints - what a sample tells of its goroutine
 * @g: address of the description of the goroutine or of its thread, or any other value.
 * @places: addresses of which one is on the goroutine's stack, the likeliest first.
 * @nr: number of @places.
 */
struct golabels_hints {
	uint64_t g;
	uint64_t places[GOLABELS_PLACES];
	unsigned int nr;
};

struct golabels;

/*
 * Makes the state for process @pid, which runs code of Go. @next_search, 0 at first, is the same
 * for all processes: it is when one may be searched again, so that searches take a small part of
 * the time. Returns NULL if there is no memory.
 */
struct golabels *golabels_create(pid_t pid, uint64_t *next_search);
void golabels_destroy(struct golabels *all);

/*
 * Writes the labels of a sample's goroutine to @buf, of GOLABELS_MAX bytes: keys and values, each
 * followed by a 0. Returns the number of bytes, 0 if there are no labels.
 */
size_t golabels_find(struct golabels *all, const struct golabels_hints *hints, char *buf);

#endif
