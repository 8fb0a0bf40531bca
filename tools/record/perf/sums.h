/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sums.h - what the events of a recording counted themselves, sampled or not, and what was lost.
 *
 * The kernel counts for as long as rings are open. Rings are replaced while recording, and one
 * profile follows another: so of each number it is kept what those before had.
 */
#ifndef TOOLS_RECORD_PERF_SUMS_H
#define TOOLS_RECORD_PERF_SUMS_H

#include "tools/perf/rings.h"

/**
 * struct sums - numbers of the kernel
 * @counted: what each event counted in earlier rings, less what the rings that followed had
 *	counted when they took over. By sums_take_over().
 * @counted_before: what each event had counted when this profile began. By sums_renew().
 * @lost: records that earlier rings lost. By sums_close().
 * @lost_before: records that were lost when this profile began. By sums_renew().
 * @lost_told: records of this profile of which a record says that they were lost.
 * @throttled: times in this profile that the kernel held an event back.
 * @total: an event that counts all of the command, without sampling; -1: there is none.
 */
struct sums {
	uint64_t counted[PERF_WHICH];
	uint64_t counted_before[PERF_WHICH];
	uint64_t lost;
	uint64_t lost_before;
	uint64_t lost_told;
	uint64_t throttled;
	int total;
};

/* What a record of the kernel's says of the recording itself. Returns how many samples it lost. */
uint64_t sums_take(struct sums *s, const struct perf_record *r);

/* Both rings are open, @next from now on. */
void sums_take_over(struct sums *s, const struct perf_rings *old, const struct perf_rings *next);

/* All of @old is read, and it is about to be closed. */
void sums_close(struct sums *s, const struct perf_rings *old);

/* Records that were lost in this profile, so far. */
uint64_t sums_lost(const struct sums *s, const struct perf_rings *rings);

/*
 * What event @which counted in this profile. False: it is not known, as @rings count more than is
 * recorded (@foreign), or are not asked.
 */
bool sums_counted(const struct sums *s, const struct perf_rings *rings, bool foreign, int which,
		  uint64_t *ret);

/* The next profile begins. */
void sums_renew(struct sums *s, const struct perf_rings *rings, bool foreign);

#endif
