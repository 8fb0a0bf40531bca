/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lend.h - a process of the broker's that answers one connection.
 */
#ifndef TOOLS_BROKER_LEND_H
#define TOOLS_BROKER_LEND_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LEND_SECONDS 10 /* that one connection may last */

/**
 * struct lend_opts - what a user may have
 * @events: of each CPU, at a time.
 * @kernel_time: clocks also take samples while the kernel works for the thread; with no address
 *	of the kernel's, as always.
 */
struct lend_opts {
	unsigned int events;
	bool kernel_time;
};

/**
 * lend() - answer what comes by a connection, until it ends, and end this process
 * @socket: the connection.
 * @peer: who asks, as the kernel says.
 * @set: his events (held.h).
 * @opts: what he may have.
 *
 * Takes on the user's identity first; of root's rights only that to open perf events is left, and
 * is in force only while one is opened. So all that is looked up in /proc is what the kernel
 * shows to that user. All other descriptors are closed.
 */
_Noreturn void lend(int socket, const struct ucred *peer, int set, const struct lend_opts *opts);

/* Tells that it cannot be now, with an errno, and ends this process. */
_Noreturn void lend_refuse(int socket, int error);

#endif
