/* SPDX-License-Identifier: GPL-2.0-or-later */
/* group.h - group threads with equal stacks, which are shown as one. */
#ifndef TOOLS_TRACE_GROUP_H
#define TOOLS_TRACE_GROUP_H

#include "tools/trace/trace.h"

/**
 * struct trace_group - threads that agree in everything but their IDs and names
 * @threads: the threads.
 * @nr: number of @threads.
 */
struct trace_group {
	struct trace_thread *const *threads;
	size_t nr;
};

/**
 * group_threads() - group the threads that agree
 * @opts: the options. Some of them ask for each thread on its own.
 * @list: the threads. They are sorted by group; the order within a group stays.
 * @nr: number of threads.
 * @ret: room for @nr groups; receives the groups, sorted by the place of their first threads.
 *
 * Return: number of groups.
 */
size_t group_threads(const struct trace_opts *opts, struct trace_thread **list, size_t nr,
		     struct trace_group *ret);

#endif
