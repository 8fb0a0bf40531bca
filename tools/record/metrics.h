/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * metrics.h - figures of a recording, in a file in Prometheus' text format (--metrics). Each page
 * takes the place of the one before at once, so a reader never sees half of one.
 */
#ifndef TOOLS_RECORD_METRICS_H
#define TOOLS_RECORD_METRICS_H

#include "tools/record/backend.h"

/*
 * Writes the first page, before recording begins. Returns 0, or an exit status after a message if it
 * can't be written.
 */
int metrics_begin(struct recording *r);
/* Writes a page every few seconds; called more often. */
void metrics_watch(struct recording *r, uint64_t at);
/* Keeps what was counted in a profile, before the counts of the next one begin. */
void metrics_add_profile(struct recording *r);
/* Writes the last page, after everything that is to be sent now was sent. */
void metrics_end(struct recording *r);

#endif
