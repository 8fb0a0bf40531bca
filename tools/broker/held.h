/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * held.h - how many events a user holds.
 *
 * An event lives for as long as somebody has a descriptor or a mapping of it, wherever it was
 * passed on to. The kernel counts that: a file that is in a set of epoll(7) leaves it when its
 * last descriptor is closed, not when the broker's is. So each user has such a set, into which
 * each of his events is put before it is handed over, and the set's lines in /proc/self/fdinfo
 * are his events. Nothing waits on the set.
 */
#ifndef TOOLS_BROKER_HELD_H
#define TOOLS_BROKER_HELD_H

#include <stdint.h>

#include "tools/broker/protocol.h"

/**
 * struct held - events of one user
 * @nr: of all CPUs.
 * @of_cpu: of each.
 */
struct held {
	uint32_t nr;
	uint32_t of_cpu[BROKER_MAX_CPUS];
};

/* An empty set. Returns its descriptor or a negative errno. */
int held_create(void);

/* The file that tells what is in @set. Returns its descriptor or a negative errno. */
int held_open(int set);

/* Counts, by the descriptor of held_open(). Returns 0 or a negative errno. */
int held_count(int file, struct held *ret);

/* Puts an event of @cpu into a set. Returns 0 or a negative errno. */
int held_add(int set, int event, uint32_t cpu);

#endif
