/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sums.h - what the events of a recording counted themselves, sampled or not, and what was lost.
 *
 * The kernel counts for as long as rings are open. Rings are replaced while recording goes on, and
 * one profile follows another. So this keeps, of each number, what earlier rings and profiles had.
 */
#ifndef TOOLS_RECORD_PERF_SUMS_H
#define TOOLS_RECORD_PERF_SUMS_H

#include "tools/perf/rings.h"

/**
 * struct sums - numbers that the kernel counted
 * @counted: what each event counted in earlier rings, minus what the rings that followed had
 *	counted when they took over. Set by sums_take_over().
 * @counted_before: what each event had counted when this profile began. Set by sums_renew().
 * @lost: records that earlier rings lost, by CPU. Set by sums_close().
 * @lost_before: records that were lost when this profile began, by CPU. Set by sums_renew().
 * @lost_told: lost records of this profile, by CPU, as records in the rings tell.
 * @throttled: how often the kernel held an event back during this profile.
 * @total: descriptor of an event that counts all of the command without sampling; -1: there is
 *	none.
 */
struct sums {
	uint64_t counted[PERF_WHICH];
	uint64_t counted_before[PERF_WHICH];
	struct perf_losses lost;
	struct perf_losses lost_before;
	struct perf_losses lost_told;
	uint64_t throttled;
	int total;
};

/*
 * Takes a record in which the kernel tells of losses or throttling; ignores others. Returns how
 * many records it says were lost.
 */
uint64_t sums_take(struct sums *s, const struct perf_record *r);

/* Adds what the rings @old counted, while both are open and @next is about to take over. */
void sums_take_over(struct sums *s, const struct perf_rings *old, const struct perf_rings *next);

/* Adds what the rings @old lost. Called after all of @old was read, before it is closed. */
void sums_close(struct sums *s, const struct perf_rings *old);

/* Writes to @ret how many records were lost in this profile so far. */
void sums_lost(const struct sums *s, const struct perf_rings *rings, struct perf_losses *ret);

/*
 * Writes to @ret what event @which counted during this profile. Returns false if that is not known,
 * because @rings count more than what is recorded (@foreign) or the kernel does not tell.
 */
bool sums_counted(const struct sums *s, const struct perf_rings *rings, bool foreign, int which,
		  uint64_t *ret);

/* Begins the next profile: keeps what was counted and lost before it. */
void sums_renew(struct sums *s, const struct perf_rings *rings, bool foreign);

#endif
