/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scope.h - which processes and threads a recording by perf events covers.
 */
#ifndef TOOLS_RECORD_PERF_SCOPE_H
#define TOOLS_RECORD_PERF_SCOPE_H

#include <poll.h>

#include "tools/convert/population.h"
#include "tools/record/perf/perf_recording.h"

/**
 * enum scope_kind - whose events are opened, and which of their records are wanted
 * @SCOPE_GIVEN: events of the given threads and of what they start; all records are wanted.
 * @SCOPE_ALL: events of the CPUs or of a cgroup; all records are wanted.
 * @SCOPE_OURS: events of the CPUs; only records of marked processes (&struct process.ours) are
 *	wanted. Children of a marked process are marked too.
 *
 * For a command that is about to be executed the kind is SCOPE_OURS from the beginning, without a
 * marked process; the command is marked when it is executed (@awaited). scope_targets() turns
 * SCOPE_GIVEN into SCOPE_OURS if there are too many threads for events of their own; each process is
 * marked when it is met. scope_widen() does it later, and marks all known processes.
 */
enum scope_kind {
	SCOPE_GIVEN,
	SCOPE_ALL,
	SCOPE_OURS,
};

/**
 * struct scope - which processes are recorded
 * @kind: whose events there are, and which of their records are wanted.
 * @awaited: process ID of the process that is marked when it executes a program; 0: none.
 * @threads: @pids are threads: other threads of their processes are not recorded.
 * @may_widen: events of the CPUs may be opened instead of those of @pids.
 * @expected: @pids in the order of their numbers while scope_look_around() meets them one after the
 *	other, and records of all processes come already; else NULL.
 * @pids: the processes or threads that were asked for, and their children at the start.
 * @nr_pids: number of @pids.
 * @nr_given: how many of @pids, from the first on, were asked for.
 * @nr_ends: how many of these have a file that shows their end, at most.
 * @ends: a pidfd for each of the @nr_ends first @pids, which becomes readable when the process has
 *	ended; -1 where there is none, and for the others up to @nr_given.
 */
struct scope {
	enum scope_kind kind;
	int awaited;
	bool threads;
	bool may_widen;
	pid_t *expected;
	pid_t *pids;
	size_t nr_pids;
	size_t nr_given;
	size_t nr_ends;
	struct pollfd *ends;
};

/* Returns 0 or -ENOMEM. scope_deinit() must follow in both cases. */
int scope_init(struct scope *s, const struct perf_record_opts *opts);
void scope_deinit(struct scope *s);

/**
 * scope_targets() - find the threads for which events are to be opened
 * @s: which processes are recorded. It becomes SCOPE_OURS if the threads are too many: each has an event
 *	on each CPU, which is an open file, and ten thousand on two CPUs took 1.8 s of CPU time to begin and to
 *	end where events of the CPUs take nothing.
 * @opts: has the targets that were asked for, and receives the threads.
 * @ret: receives a list to which @opts refers and which the caller frees, or NULL.
 *
 * Return: 0; -ENOMEM; -ESRCH if no thread is left.
 */
int scope_targets(struct scope *s, struct perf_opts *opts, pid_t **ret);

/* Does the same as scope_targets() later, for all threads that are known and live. */
int scope_targets_now(const struct population *all, struct perf_opts *opts, pid_t **ret);

/**
 * scope_look_around() - add the processes and threads that exist already
 * @s: which processes are recorded.
 * @all: receives those whose beginning the recording does not see.
 * @meanwhile: called between processes, as there may be tens of thousands, and rings that fill.
 *	Another value than 0 ends the search.
 * @arg: passed to @meanwhile.
 *
 * Return: 0, -ENOMEM, or what @meanwhile returned.
 */
int scope_look_around(struct scope *s, struct population *all, int (*meanwhile)(void *arg),
		      void *arg);

/*
 * Returns whether a record is wanted. Marks the awaited process when it executes its program, and meets
 * processes that were asked for and not met yet.
 */
bool scope_has(const struct scope *s, struct population *all, const struct perf_record *r);

/*
 * Notes that the events are those of the CPUs from now on, and marks all known processes as
 * recorded.
 */
void scope_widen(struct scope *s, struct population *all);

/* Returns how many of the processes or threads that were asked for still live. */
unsigned int scope_alive(const struct scope *s);

#endif
