/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * losses.h - says in a few words which CPUs lost how many records.
 */
#ifndef TOOLS_RECORD_PERF_LOSSES_H
#define TOOLS_RECORD_PERF_LOSSES_H

#include <stddef.h>

#include "tools/perf/rings.h"

#define LOSSES_ROOM 200 /* bytes that hold every such text */

/*
 * Writes to @buf the CPUs that lost most, and the sum of the others: "800 on CPU 3, 300 on CPU 17, 34
 * on 5 others", or "all on CPU 3"; "" if no CPU is known.
 */
void losses_describe(const struct perf_losses *l, char *buf, size_t size);

#endif
