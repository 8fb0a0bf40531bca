/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * borrow_reply.h - what goes over the broker's sockets (borrow_protocol.h): the size of requests, and
 * replies with a descriptor.
 */
#ifndef TOOLS_PERF_BORROW_REPLY_H
#define TOOLS_PERF_BORROW_REPLY_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/perf/borrow_protocol.h"

/* Returns whether so many bytes at @packet are a whole request. */
bool broker_is_whole(const union broker_packet *packet, ssize_t size);

/**
 * broker_answer() - answer a request, without waiting: who does not read gets no answer
 * @socket: the socket.
 * @reply: the reply without its @error.
 * @ret: a descriptor, which is sent and closed here; a negative errno; or anything if @reply has
 *	BROKER_DONE.
 *
 * Return: whether it was sent.
 */
bool broker_answer(int socket, struct broker_reply *reply, int ret);

/*
 * Receives a reply. Returns the descriptor that came with it; 0 if the reply has BROKER_DONE; or a
 * negative errno: -EMFILE if this process has no number for that descriptor.
 */
int broker_receive(int socket, struct broker_reply *ret);

#endif
