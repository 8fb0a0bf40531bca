// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * file.c - hands the records of a perf.data file to the converter, and counts samples that it does
 * not take. See file.h.
 */
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>

#include "tools/convert/file.h"

static void on_time(void *arg, uint64_t time)
{
	struct convert_file *f = arg;

	convert_at(f->convert, time);
}

static int on_map(void *arg, const struct perf_map *m)
{
	struct convert_file *f = arg;

	return strlen(m->path) < PATH_MAX ? convert_map(f->convert, m) : 0;
}

static int on_comm(void *arg, const struct perf_comm *m)
{
	struct convert_file *f = arg;

	return convert_comm(f->convert, m);
}

static int on_fork(void *arg, const struct perf_fork *fork)
{
	struct convert_file *f = arg;

	return convert_fork(f->convert, fork);
}

static int on_end(void *arg, const struct perf_fork *fork)
{
	struct convert_file *f = arg;

	/* With events of CPUs a thread is sampled until it is reaped. */
	return convert_exit(f->convert, fork, true);
}

static void on_lost(void *arg, uint64_t nr)
{
	struct convert_file *f = arg;

	f->lost += nr;
}

/* Returns whether a sample has a stack of user space, and counts it if it has none. */
static bool has_stack(struct convert_file *f, const struct perf_sample *s)
{
	const bool chain = perf_sample_user(s).nr;

	if (s->pid <= 0 || s->tid <= 0 || (f->event->has_stacks ? !s->abi : !chain)) {
		f->without++;
		return false;
	}
	if (f->event->has_stacks && s->abi == PERF_SAMPLE_REGS_ABI_32 && !chain) {
		f->compat++;
		return false;
	}
	return true;
}

static int on_sample(void *arg, const struct perfdata_event *event, const struct perf_sample *s)
{
	struct convert_file *f = arg;

	if (event != f->event) {
		f->others++;
		return 0;
	}
	if (f->sample)
		return f->sample(f->arg, s);
	if (!has_stack(f, s))
		return 0;
	if (s->time && !f->first)
		f->first = s->time;
	f->last = s->time;
	return convert_sample(f->convert, PERF_MAIN, s, NULL);
}

enum stack_source convert_file_source(const struct perfdata_event *event)
{
	return event->has_stacks ? STACK_COPIES : STACK_CHAINS;
}

int convert_file(struct convert_file *f)
{
	static const struct perfdata_handler handler = {
		.at = on_time,
		.sample = on_sample,
		.map = on_map,
		.comm = on_comm,
		.fork = on_fork,
		.exit = on_end,
		.lost = on_lost,
	};

	int err = perfdata_read(f->pd, &handler, f);

	return err ? err : convert_settle(f->convert);
}
