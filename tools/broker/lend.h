/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lend.h - a process of the broker that answers one connection.
 */
#ifndef TOOLS_BROKER_LEND_H
#define TOOLS_BROKER_LEND_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LEND_SECONDS 10 /* most seconds that one connection may last */

/**
 * struct lend_opts - what a user may have
 * @events: most events on each CPU at a time.
 * @kernel_time: clocks also take samples while the kernel works for the thread; as always, without
 *	addresses of the kernel's.
 * @program: BPF program that runs at events of leases (leases.h); 0: no walks are lent.
 * @leases: socket by which the broker is asked for leases and outputs, in packets as those that a
 *	user sends; it matters only with @program.
 */
struct lend_opts {
	unsigned int events;
	bool kernel_time;
	int program;
	int leases;
};

/**
 * lend() - answer requests on a connection until it ends, and end this process
 * @socket: the connection.
 * @peer: the process that asks, as the kernel reports it.
 * @set: the set of the user's events (held_events.h).
 * @opts: what the user may have.
 *
 * It first takes on the user's identity. Of root's rights it keeps only the right to open perf
 * events, which is in effect only while one is opened. So everything that is looked up in /proc is
 * what the kernel shows to that user. It closes all other descriptors. It has no right to BPF: it can
 * only put the program at events that it opens, and which lease these belong to matters to the user
 * alone, as the program walks nobody else.
 */
_Noreturn void lend(int socket, const struct ucred *peer, int set, const struct lend_opts *opts);

/* Replies with an errno that the request is refused now, and ends this process. */
_Noreturn void lend_refuse(int socket, int error);

#endif
