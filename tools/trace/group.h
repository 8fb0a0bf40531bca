/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * group.h - threads with equal stacks are shown as one.
 */
#ifndef TOOLS_TRACE_GROUP_H
#define TOOLS_TRACE_GROUP_H

#include "tools/trace/trace.h"

/**
 * struct trace_group - threads that agree in all but their numbers and names
 * @threads: they.
 * @nr: how many.
 */
struct trace_group {
	struct trace_thread *const *threads;
	size_t nr;
};

/**
 * group_threads() - put together those that agree
 * @opts: the options; none agree if they say so.
 * @list: the threads; it is sorted by groups, each of which keeps the order.
 * @nr: how many.
 * @ret: room for @nr groups; receives them, in the order of the first thread of each.
 *
 * Return: number of groups.
 */
size_t group_threads(const struct trace_opts *opts, struct trace_thread **list, size_t nr,
		     struct trace_group *ret);

#endif
