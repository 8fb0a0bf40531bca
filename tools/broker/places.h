/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * places.h - does what waits for walks in the kernel, in a thread of its own: shows the program the maps
 * of leases, hides them, and waits until no walk of an ended lease goes on.
 *
 * Each of these takes as long as the kernel needs to pass all CPUs (RCU), some 20 ms, and a user may have
 * them done again and again. Meanwhile the broker answers others. Maps are shown before any are hidden,
 * so who takes a lease waits for one such piece of work of another user, however many leases that one
 * gives back.
 *
 * Places are those of leases (LEASE_SLOT()). One thread asks, and what was asked for a place last counts.
 */
#ifndef TOOLS_BROKER_PLACES_H
#define TOOLS_BROKER_PLACES_H

#include <stdint.h>

#include "tools/bpf/load_object.h"

struct places;

/* Begins the thread. @program has the maps, and stays. Returns NULL if there is no thread. */
struct places *places_begin(const struct bpf_loaded *program);

/* Ends the thread, and waits for what it is at. What was asked for may stay undone. @p may be NULL. */
void places_end(struct places *p);

/* Has the program shown the maps of a place, which stay open until places_rest() has come to its end. */
void places_show(struct places *p, uint32_t slot, int processes, int functions);

/* Has the maps of a place hidden, and has it waited for all walks that began before. */
void places_rest(struct places *p, uint32_t slot);

/*
 * Returns the result of what was asked for a place: -EINPROGRESS: it is not done yet; or 0, or a negative
 * errno.
 */
int places_result(struct places *p, uint32_t slot);

/* Returns a descriptor that can be read when results came since places_heard(); -1 if @p is NULL. */
int places_fd(const struct places *p);

/* Takes note that results came. */
void places_heard(const struct places *p);

#endif
