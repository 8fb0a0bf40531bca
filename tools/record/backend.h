/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * backend.h - the interface between `shstk record` and the back end that records.
 *
 *   backend_agent.c   the agent in the processes takes samples (agent_recording.c, ledger.c)
 *   backend_perf.c    the kernel's perf events take samples (perf_recording.c)
 *   backend_heap.c    the heap agent in the processes counts allocations (heap.c)
 *   backend_probes.c  BPF probes report allocations of processes that run already (probe_records.c)
 *
 * record.c starts the command and calls the functions of one back end, which sampler.c chooses. No
 * other code asks which back end it is.
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
#include "libshstk/symbol/target.h"
#include "tools/reason.h"
#include "tools/record/options/options.h"
#include "tools/record/sample_counts.h"
#include "tools/record/targets/target.h"

/**
 * struct recording - one run of `shstk record`
 * @opts: the options that were given.
 * @argv: the words of the command line, the first of which is the command's name.
 * @nice: the priority with which the process was started.
 * @backend: the back end that records.
 * @state: the back end's own data, made by its begin().
 * @symbols: finds names for addresses; made by the back end's begin().
 * @profile: receives the samples; made by the back end's begin().
 * @target: the command, if there is one.
 * @pid: process ID of the command, 0 if there is none.
 * @began: CLOCK_MONOTONIC in ns, when recording began.
 * @part: CLOCK_MONOTONIC in ns, when the previous profile was written or, for the first one,
 *	recording began.
 * @started: CLOCK_MONOTONIC in ns, the beginning of the time that this profile covers.
 * @realtime: CLOCK_REALTIME in ns at @started.
 * @flushed: CLOCK_MONOTONIC in ns, when samples that are kept were last written.
 * @followed: CLOCK_MONOTONIC in ns before which follow() of the back end is not called again.
 * @told: CLOCK_MONOTONIC in ns, when systemd was last told how it goes (service.h).
 * @measured: CLOCK_MONOTONIC in ns, when figures were last written (metrics.h).
 * @before: counts of the profiles before this one: samples, and those lost and truncated.
 * @memory: the most private memory that the recorder had so far, in KiB.
 * @shared: the most memory that the recorder shared so far (@shared of struct backend), in KiB.
 * @kept: files of the profiles that are kept (output_list()), a ring of as many entries as profiles
 *	are kept; the oldest is at @nr_kept modulo that number. NULL if there is no limit.
 * @nr_kept: number of profiles so far.
 * @writer: the child process that writes the previous profile (series.h), or 0.
 * @left: the file that it finishes.
 * @known: names that the profiles before this one needed, or NULL.
 * @pusher: sends profiles, if they are to be sent.
 * @going: the back end has begun to record.
 * @again: the recording ends because another one with changed options follows (reload.h).
 * @unmeasured: the last page of figures could not be written.
 * @unwritten: an earlier profile could not be written to its file.
 * @said: the lines that were printed by caution.h.
 */
struct recording {
	struct record_opts *opts;
	char *const *argv;
	int nice;
	const struct backend *backend;
	void *state;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct target target;
	pid_t pid;
	uint64_t began;
	uint64_t part;
	uint64_t started;
	uint64_t realtime;
	uint64_t flushed;
	uint64_t told;
	uint64_t measured;
	struct sample_counts before;
	uint64_t followed;
	unsigned long memory;
	unsigned long shared;
	char **kept;
	unsigned long nr_kept;
	pid_t writer;
	struct shstk_left left;
	struct shstk_known_names *known;
	struct pusher pusher;
	bool going;
	bool again;
	bool unmeasured;
	bool unwritten;
	struct said *said;
};

/**
 * struct backend - a way to record
 * @object: the object that is preloaded into the command, or NULL.
 * @cumulative: a profile holds everything since recording began, also what earlier profiles hold.
 * @begin: makes the profile, and all else that can be made before the command exists. Returns 0 or
 *	a negative errno. @end is called in both cases.
 * @end: releases what @begin and @start made, except the profile.
 * @env: returns the value of REC_ENV for the command. Needed with @object.
 * @start: begins to record. @target is the command, which waits to be executed, or NULL if there is
 *	no command. Returns 0, or an exit status after printing the reason. NULL: @begin was enough.
 * @all_gone: returns whether everything that ran already and is recorded has ended. NULL: the back
 *	end records only commands.
 * @take: takes what was recorded since the last call; called all the time. Returns 0 or -ENOMEM.
 * @calm: returns whether the next @take may be @ns away. NULL: it may not.
 * @follow: adds to the profile what was counted since the last call, for formats that show how sums
 *	grew. Returns 0 or -ENOMEM. NULL: @take adds samples when they were taken.
 * @watch: looks for what came or went without an event, 4 times a second. May be NULL.
 * @complete: adds to a profile that is about to be written what is not in it yet. Returns 0 or
 *	-ENOMEM. NULL: nothing is ever missing.
 * @renew: makes a new @profile and new @symbols of the recording and stops using the old ones.
 *	Returns 0 or -ENOMEM. NULL: there is only one profile.
 * @stop: ends recording and takes what is left. If @ended, the command has ended and used @usage.
 *	Returns 0 or -ENOMEM.
 * @shared: returns how many bytes of memory the recorder shares with the kernel (rings) or with
 *	agents. Called after @start.
 * @count: gets the counts so far, of this profile or, if it is cumulative, of all; allocations count
 *	as samples. Called after @start.
 * @describe: writes the counts so far to @buf, for the line of progress.
 * @report_gaps: prints what the profile does not hold, each in one line, also with --quiet
 *	(caution.h). Called for each profile before it is written; @ended is false if another one
 *	follows.
 * @report: prints the last lines, after everything is written.
 */
struct backend {
	const char *object;
	bool cumulative;
	int (*begin)(struct recording *r);
	void (*end)(struct recording *r);
	const char *(*env)(const struct recording *r);
	int (*start)(struct recording *r, struct target *target);
	bool (*all_gone)(const struct recording *r);
	int (*take)(struct recording *r);
	bool (*calm)(const struct recording *r, uint64_t ns);
	int (*follow)(struct recording *r);
	void (*watch)(struct recording *r);
	int (*complete)(struct recording *r);
	int (*renew)(struct recording *r);
	int (*stop)(struct recording *r, bool ended, const struct rusage *usage);
	uint64_t (*shared)(const struct recording *r);
	void (*count)(const struct recording *r, struct sample_counts *ret);
	void (*describe)(const struct recording *r, char *buf, size_t size);
	void (*report_gaps)(struct recording *r, bool ended, const struct rusage *usage);
	void (*report)(struct recording *r, bool ended, const struct rusage *usage);
};

extern const struct backend backend_agent;
extern const struct backend backend_perf;
extern const struct backend backend_heap;
extern const struct backend backend_probes;

/*
 * Tells whether perf events of backend_perf would be permitted. Arguments and result are those of
 * perf_probe().
 */
int backend_perf_probe(const struct record_opts *o, bool *user_only, struct reason *why);

/* Returns the title for flame graphs. */
static inline const char *record_title(const struct record_opts *o)
{
	return o->command ? *o->command : SHSTK_TITLE_NO_COMMAND;
}

/* Returns the time between two samples in ns. */
static inline uint64_t record_period(const struct record_opts *o)
{
	return (1000000000 + o->freq / 2) / o->freq;
}

/* Returns the CPU time of @usage in seconds. */
static inline double rusage_seconds(const struct rusage *usage)
{
	return usage->ru_utime.tv_sec + usage->ru_utime.tv_usec / 1e6 + usage->ru_stime.tv_sec +
	       usage->ru_stime.tv_usec / 1e6;
}

/* Returns @kib KiB in MiB, rounded up. */
static inline unsigned long record_mib(unsigned long kib)
{
	return (kib + 1023) / 1024;
}

/* Writes a count with its noun to @buf: "1 process", "2 processes". */
static inline void plural(char *buf, size_t size, unsigned long long n, const char *one,
			  const char *many)
{
	snprintf(buf, size, "%llu %s", n, n == 1 ? one : many);
}

#endif
