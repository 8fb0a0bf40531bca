/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * backend.h - who records, and how `shstk record` uses it.
 *
 *   backend_agent.c  the agent in the processes samples (drain.c, ledger.c)
 *   backend_perf.c   the kernel's perf events sample (perf.c)
 *   backend_heap.c   an agent counts allocations (heap.c)
 *   backend_probed.c probes tell of allocations of what already runs (probed.c)
 *
 * record.c starts the command and calls the functions of one back end, which via.c
 * chooses. Nothing else asks which one it is.
 */
#ifndef TOOLS_RECORD_BACKEND_H
#define TOOLS_RECORD_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "libshstk/symbol/profile.h"
#include "tools/reason.h"
#include "tools/record/options/options.h"
#include "tools/record/targets/target.h"

/**
 * struct recording - one run of `shstk record`
 * @opts: what was asked for.
 * @backend: who records.
 * @state: of the back end, made by its begin().
 * @symbols: name what is found; made by begin().
 * @profile: receives it; made by begin().
 * @pid: the command, 0 if there is none.
 * @began: CLOCK_MONOTONIC in ns, when recording began.
 * @part: when the last profile before this one was written, or recording began.
 * @started: when what this profile holds began, and
 * @realtime: CLOCK_REALTIME in ns, at the same time.
 * @memory: the most that the recorder itself had of its own so far, in KiB, and
 * @shared: the most that it shared, see struct backend, in KiB.
 * @kept: files of the profiles that are kept (output_list()), the oldest one at
 *	@nr_kept modulo their number; NULL: there is no limit.
 * @nr_kept: number of profiles so far.
 * @writer: the process that writes the last profile before (parts.h), or 0.
 * @unwritten: one before could not be written where it should.
 * @said: the lines of caution.h that were printed.
 */
struct recording {
	struct record_opts *opts;
	const struct backend *backend;
	void *state;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	pid_t pid;
	uint64_t began;
	uint64_t part;
	uint64_t started;
	uint64_t realtime;
	unsigned long memory;
	unsigned long shared;
	char **kept;
	unsigned long nr_kept;
	pid_t writer;
	bool unwritten;
	struct said *said;
};

/**
 * struct backend - who records
 * @object: preloaded into the command; NULL: nothing is.
 * @cumulative: a profile holds all since recording began, also if there was one before.
 * @begin: makes the profile, and all that can be made before the command is there.
 *	Returns 0 or a negative errno; end() follows in both cases.
 * @end: releases what begin() and start() made, but for the profile.
 * @env: value of REC_ENV for the command; needed with @object.
 * @start: begins to record. @target is the command, which waits, or NULL: there is
 *	none. Returns 0; or an exit status, and it was said why. NULL: begin() was enough.
 * @all_gone: nothing is left of what ran already and was to be recorded. NULL: only
 *	commands can be.
 * @take: takes what was recorded meanwhile; called all the time. Returns 0 or -ENOMEM.
 * @calm: may take() be left for @ns? NULL: it may not.
 * @watch: looks for what came or went unseen, 4 times a second; or NULL.
 * @complete: adds to the profile, which is about to be written, what is not in it yet.
 *	Returns 0 or -ENOMEM. NULL: all is.
 * @renew: makes other @profile and @symbols of the recording: nothing of the old may be
 *	used any more. Returns 0 or -ENOMEM. NULL: there is only one profile.
 * @stop: records no more and takes what is left. @ended: the command has ended, and had
 *	used @usage. Returns 0 or -ENOMEM.
 * @shared: bytes of the memory that it shares with the kernel (rings) or with agents. Called
 *	after start().
 * @describe: how far it is, for the line of progress.
 * @report_gaps: what the profile does not hold, each in one line; never silent (caution.h).
 *	Called for each profile before it is written; @ended is false if another one follows.
 * @report: the last lines, when all is written.
 */
struct backend {
	const char *object;
	bool cumulative;
	int (*begin)(struct recording *r);
	void (*end)(struct recording *r);
	const char *(*env)(const struct recording *r);
	int (*start)(struct recording *r, const struct target *target);
	bool (*all_gone)(const struct recording *r);
	int (*take)(struct recording *r);
	bool (*calm)(const struct recording *r, uint64_t ns);
	void (*watch)(struct recording *r);
	int (*complete)(struct recording *r);
	int (*renew)(struct recording *r);
	int (*stop)(struct recording *r, bool ended, const struct rusage *usage);
	uint64_t (*shared)(const struct recording *r);
	void (*describe)(const struct recording *r, char *buf, size_t size);
	void (*report_gaps)(struct recording *r, bool ended, const struct rusage *usage);
	void (*report)(struct recording *r, bool ended, const struct rusage *usage);
};

extern const struct backend backend_agent;
extern const struct backend backend_perf;
extern const struct backend backend_heap;
extern const struct backend backend_probed;

/* Would backend_perf be permitted to begin? As perf_probe(). */
int backend_perf_probe(const struct record_opts *o, bool *user_only, struct reason *why);

/* What flame graphs are called. */
static inline const char *record_title(const struct record_opts *o)
{
	return o->command ? *o->command : "shstk record";
}

/* ns between two samples. */
static inline uint64_t record_period(const struct record_opts *o)
{
	return (1000000000 + o->freq / 2) / o->freq;
}

/* CPU time in seconds. */
static inline double rusage_seconds(const struct rusage *usage)
{
	return usage->ru_utime.tv_sec + usage->ru_utime.tv_usec / 1e6 + usage->ru_stime.tv_sec +
	       usage->ru_stime.tv_usec / 1e6;
}

/* KiB as MiB, rounded up. */
static inline unsigned long record_mib(unsigned long kib)
{
	return (kib + 1023) / 1024;
}

/* "1 process", "2 processes" */
static inline void plural(char *buf, size_t size, unsigned long long n, const char *one,
			  const char *many)
{
	snprintf(buf, size, "%llu %s", n, n == 1 ? one : many);
}

#endif
