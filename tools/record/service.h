/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service.h - a recording that systemd, or another starter of services, has started: it is told that
 * recording has begun, that it goes on, and how. A recording of a command tells nothing: the command
 * may be the service.
 */
#ifndef TOOLS_RECORD_SERVICE_H
#define TOOLS_RECORD_SERVICE_H

#include "tools/record/backend.h"

/* Tells that recording has begun. */
void service_ready(const struct recording *r);
/* Tells that recording goes on and what was counted so far, once a second; called more often. */
void service_watch(struct recording *r, uint64_t at);
/* Tells that recording ends because another one, with changed options, follows in its place. */
void service_reloads(const struct recording *r);
/* Tells that recording ends. */
void service_ends(const struct recording *r);

#endif
