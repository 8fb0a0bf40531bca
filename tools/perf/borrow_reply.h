/* SPDX-License-Identifier: GPL-2.0-or-later */
/* borrow_reply.h - send and receive replies of the broker, with a descriptor (borrow_protocol.h). */
#ifndef TOOLS_PERF_BORROW_REPLY_H
#define TOOLS_PERF_BORROW_REPLY_H

#include <stdbool.h>

#include "tools/perf/borrow_protocol.h"

/*
 * Sends a reply without waiting, with the descriptor @fd unless it is negative: who does not read gets
 * none. Returns whether it was sent.
 */
bool broker_send(int socket, const struct broker_reply *reply, int fd);

/* Receives a reply. Returns the descriptor that came with it, or a negative errno. */
int broker_receive(int socket, struct broker_reply *ret);

#endif
