/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * held_events.h - counts the events that a user holds.
 *
 * An event exists for as long as somebody has a descriptor or a mapping of it, wherever it was
 * passed on to. The kernel counts that: a file leaves a set of epoll(7) when its last descriptor is
 * closed, not when the broker's is. So each user has such a set. Each of the user's events is put
 * into it before it is sent, and the set's lines in /proc/self/fdinfo are the user's events.
 * Nothing waits on the set.
 */
#ifndef TOOLS_BROKER_HELD_EVENTS_H
#define TOOLS_BROKER_HELD_EVENTS_H

#include <stdint.h>

#include "tools/perf/borrow_protocol.h"

/**
 * struct held - number of events of one user
 * @nr: events on all CPUs.
 * @of_cpu: events on each CPU.
 */
struct held {
	uint32_t nr;
	uint32_t of_cpu[BROKER_MAX_CPUS];
};

/* Makes an empty set. Returns its descriptor or a negative errno. */
int held_create(void);

/* Opens the file that lists the events in @set. Returns its descriptor or a negative errno. */
int held_open(int set);

/* Counts the events in a file of held_open(). Returns 0 or a negative errno. */
int held_count(int file, struct held *ret);

/* Puts an event of @cpu into a set. Returns 0 or a negative errno. */
int held_add(int set, int event, uint32_t cpu);

#endif
