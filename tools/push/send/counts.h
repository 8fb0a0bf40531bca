/* SPDX-License-Identifier: GPL-2.0-or-later */
/* counts.h - sends what was counted of a spool to the server, as metrics of OpenTelemetry. */
#ifndef TOOLS_PUSH_SEND_COUNTS_H
#define TOOLS_PUSH_SEND_COUNTS_H

#include "tools/push/send/send.h"
#include "tools/push/spool.h"

/**
 * struct counting - how counts are sent
 * @send: where to, with which token and certificates.
 * @to: the URL, to be freed.
 * @connection: what requests share.
 * @connected: @connection was initialised.
 * @on: counts are sent: that is wanted, and the server did not refuse them.
 */
struct counting {
	struct send send;
	char *to;
	struct connection connection;
	bool connected;
	bool on;
};

/* Prepares requests. counting_deinit() must be called. */
void counting_init(struct counting *counting, const struct send *send);
void counting_deinit(struct counting *counting);
/*
 * Sends the counts of a spool once, which may take @most_ms. @lock is the descriptor that spool_lock()
 * returned. A server that refuses them is not asked again.
 */
void counting_send(struct counting *counting, const struct spool *spool, int lock, long most_ms);

#endif
