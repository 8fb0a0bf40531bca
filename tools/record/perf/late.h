/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * late.h - finds threads that have no events, because they began while events were being opened.
 *
 * Events of a thread are inherited by what it starts. A thread that is started while events of all
 * threads are opened, by one that has none yet, inherits nothing, and neither does what it starts.
 * Where each thread starts the next one and ends, none would ever have events.
 */
#ifndef TOOLS_RECORD_PERF_LATE_H
#define TOOLS_RECORD_PERF_LATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_recording;
struct perf_rings;
struct perf_opts;
struct perf_fork;

#define LATE_MOST 4096 /* threads that are given events */
#define LATE_KEPT 64

/**
 * struct doubt - a thread of which it is not known whether it inherited events
 * @pid: its process.
 * @tid: its thread ID.
 * @cpu: CPU time in ns that it had used when it was first seen.
 * @samples: samples that it had by then.
 */
struct doubt {
	pid_t pid;
	pid_t tid;
	uint64_t cpu;
	uint64_t samples;
};

/**
 * struct late - what is known of such threads
 * @next: CLOCK_MONOTONIC in ns, when they are looked for next.
 * @pause: ns from that moment to the one after it.
 * @doubts: threads that began while events were being opened.
 * @nr_doubts: number of @doubts.
 * @added: threads that were given events, the last LATE_KEPT of them.
 * @since: for each of @added, CLOCK_MONOTONIC in ns before the look that found it. The kernel shows
 *	a thread a moment before it reports its beginning.
 * @nr_added: how many threads were given events.
 * @nr_refused: how many threads could be given none, though they had not ended.
 * @refused: why, of the last of these, as a negative errno; -E2BIG: LATE_MOST others were given some.
 */
struct late {
	uint64_t next;
	uint64_t pause;
	struct doubt *doubts;
	size_t nr_doubts;
	pid_t added[LATE_KEPT];
	uint64_t since[LATE_KEPT];
	size_t nr_added;
	size_t nr_refused;
	int refused;
};

/**
 * late_begin() - look for threads that began while the rings of @d were being opened
 * @d: the recording.
 * @opened: the threads whose events were opened.
 * @nr: number of @opened.
 *
 * Return: 0 or -ENOMEM.
 */
int late_begin(struct perf_recording *d, const pid_t *opened, size_t nr);

/**
 * late_listed() - give events of new rings to threads that were not listed as they began just before
 * @d: the recording, whose rings still record. Their records were taken.
 * @rings: the new rings.
 * @opts: with which these are opened.
 * @listed: the threads whose events were opened in the new rings.
 * @nr: number of @listed.
 * @since: CLOCK_MONOTONIC in ns before they were listed. Who began earlier than that and was not
 *	listed inherited events of the old rings only. Who began later may have inherited new ones, and
 *	is given others only where switches alone are recorded: one that comes twice counts once.
 *
 * Return: 0 or -ENOMEM.
 */
int late_listed(struct perf_recording *d, struct perf_rings *rings, const struct perf_opts *opts,
		const pid_t *listed, size_t nr, uint64_t since);

/*
 * Looks for such threads again if it is time. Called after the records in the rings were taken.
 * Returns 0 or -ENOMEM.
 */
int late_find(struct perf_recording *d);

/*
 * Takes the beginning of a thread. If it was given events a moment before, it has inherited some
 * too, and loses the others.
 */
void late_fork(struct perf_recording *d, const struct perf_fork *f);

void late_deinit(struct late *l);

#endif
