/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scope.h - which processes and threads are recorded by perf events.
 */
#ifndef TOOLS_RECORD_PERF_SCOPE_H
#define TOOLS_RECORD_PERF_SCOPE_H

#include <poll.h>

#include "tools/convert/population.h"
#include "tools/record/perf/perf.h"

/**
 * enum scope_kind - whose events there are, and which of their records are wanted
 * @SCOPE_GIVEN: events of threads, those given and what they start: all is wanted.
 * @SCOPE_ALL: events of the CPUs or of a cgroup: all is wanted.
 * @SCOPE_OURS: events of the CPUs: wanted are processes that are marked (&struct process.ours),
 *	and so are their children.
 *
 * It begins as SCOPE_OURS, without a process that is marked, for a command that is about to be
 * executed: the command is marked when it is (@awaited). SCOPE_GIVEN becomes SCOPE_OURS, with all
 * processes marked that are known, by scope_widen().
 */
enum scope_kind {
	SCOPE_GIVEN,
	SCOPE_ALL,
	SCOPE_OURS,
};

/**
 * struct scope - who is recorded
 * @kind: see there.
 * @awaited: process that is marked when it executes a program; 0: none is awaited.
 * @threads: @pids are threads: other threads of their processes are not recorded.
 * @pids: the processes or threads that were asked for, and their children so far.
 * @nr_pids: number of @pids.
 * @nr_given: the first so many of @pids were asked for.
 * @ends: of each of these, what is readable when it has ended; descriptor -1: it has none.
 */
struct scope {
	enum scope_kind kind;
	int awaited;
	bool threads;
	pid_t *pids;
	size_t nr_pids;
	size_t nr_given;
	struct pollfd *ends;
};

/* Returns 0 or -ENOMEM; scope_deinit() follows. */
int scope_init(struct scope *s, const struct perf_record_opts *opts);
void scope_deinit(struct scope *s);

/**
 * scope_targets() - what events are to be opened of
 * @s: who is recorded.
 * @opts: receives it; it has what was asked for.
 * @ret: receives a list for free() that @opts refers to, or NULL.
 *
 * Return: 0, -ENOMEM, or -ESRCH: nobody is left.
 */
int scope_targets(const struct scope *s, struct perf_opts *opts, pid_t **ret);

/* The same later: of all threads that are known and live. */
int scope_targets_now(const struct population *all, struct perf_opts *opts, pid_t **ret);

/* Meets who is there already: only those that recording does not see begin. 0 or -ENOMEM. */
int scope_look_around(const struct scope *s, struct population *all);

/* Is a record wanted? Marks who is awaited. */
bool scope_has(const struct scope *s, struct population *all, const struct perf_record *r);

/* The events are the CPUs' from now on; all who are known are recorded, with their children. */
void scope_widen(struct scope *s, struct population *all);

/* Number of those asked for that still live. */
unsigned int scope_alive(const struct scope *s);

#endif
