/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leases.h - lends walks of stacks in the kernel: a BPF program that root loaded (bpf/lend.bpf.c) runs
 * at events that the broker opens for ordinary users.
 *
 * A user gets a lease, which is a number that the user's events have, and for each CPU an event into
 * whose ring the chains go, its output. The user's recorder may say how frames of interpreters are found
 * in processes: these are then read for the lease (bpf/language_lent.h), which gets maps for that.
 * Users get neither the program nor its maps. A lease lasts as
 * long as somebody holds the token that was handed over with it, which is an end of a pipe. No user
 * has more leases than half as many as are left.
 */
#ifndef TOOLS_BROKER_LEASES_H
#define TOOLS_BROKER_LEASES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/lend.h"
#include "tools/bpf/walker.h"
#include "tools/broker/places.h"
#include "tools/perf/borrow_protocol.h"
#include "tools/reason.h"
#include "tools/rules/subordinate.h"

/**
 * struct lease - a lease
 * @number: its number; 0: the place is free, or rests.
 * @rests: CLOCK_MONOTONIC in ns, when it ended, as long as a walk for it may still go on; else 0.
 * @uid: the user, whose share of the places it takes, also while the place rests.
 * @token: this end of its pipe.
 * @given: a bit for each CPU whose output was given.
 * @processes: map of its processes with an interpreter, -1: there is none. It stays until a walk that
 *	may use it has ended.
 * @functions: map of their functions; the same.
 */
struct lease {
	uint32_t number;
	uint64_t rests;
	uid_t uid;
	int token;
	uint64_t given[BROKER_MAX_CPUS / 64];
	int processes;
	int functions;
};

/**
 * struct leases - all leases
 * @walker: the program, and the process that makes its tables; NULL: nothing is lent.
 * @round: counts how often a number was given, so that no number is given twice.
 * @places: does for them what waits for walks.
 * @all: the leases, by LEASE_SLOT().
 */
struct leases {
	struct walker *walker;
	uint32_t round;
	struct places *places;
	struct lease all[LEASES];
};

/*
 * Loads the program, and starts the process that makes tables. Returns 0, or a negative errno if
 * nothing can be lent.
 */
int leases_begin(struct leases *l, struct reason *why);

/* Ends everything, also the leases that there are. */
void leases_end(struct leases *l);

/* Returns the descriptor of the program, which runs at events of leases; 0: nothing is lent. */
int leases_program(const struct leases *l);

/**
 * leases_answer() - answer a request of kind BROKER_LEASE, BROKER_OUTPUT or BROKER_PROCESS
 * @l: the leases.
 * @ids: whose further ids are which: these take that user's share.
 * @uid: the user who asks.
 * @r: the request, which may be anything, but is whole.
 * @ret: receives the number of a new lease, and BROKER_DONE if there is no descriptor to be sent.
 *
 * Return: a descriptor for the user, to be closed when it was sent; -EINPROGRESS if the same request is
 * to be made again when places_fd() of @l->places can be read; or another negative errno.
 */
int leases_answer(struct leases *l, const struct subordinate *ids, uid_t uid,
		  const union broker_packet *r, struct broker_reply *ret);

/* Returns whether somebody has a lease. */
bool leases_any(const struct leases *l);

/* Ends the leases whose tokens are closed. Called again and again. */
void leases_tidy(struct leases *l);

/* Takes note that the child @pid ended. Returns whether it was the one that makes tables. */
bool leases_lost(struct leases *l, pid_t pid);

#endif
