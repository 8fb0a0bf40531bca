// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * samples.c - makes the profile of samples, and writes the lines about it, for all back ends that
 * take samples. See samples.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/language/languages.h"
#include "tools/proc/tasks.h"
#include "tools/record/caution.h"
#include "tools/record/samples.h"
#include "tools/record/series.h"
#include "tools/shstk.h"

#define MAX_LEFT_NAMES 5

/* Returns the name of the value that a profile has beside the number of samples. */
static const char *value_type(const struct record_opts *o)
{
	if (o->event && !o->event->clock)
		return o->event->name;
	return o->wall ? "wall" : o->preempted ? "preempted" : o->off_cpu ? "off-cpu" : "cpu";
}

/*
 * Adds a value to the profile for each further event. Outputs that show one value show the first
 * event.
 */
static int add_types(struct recording *r)
{
	struct record_opts *o = r->opts;
	int err = 0;

	for (unsigned int i = 1; err >= 0 && i < o->nr_events; i++)
		err = shstk_profile_add_type(r->profile, o->events[i].name,
					     o->events[i].clock ? "nanoseconds" : "count");
	if (o->nr_events > 1)
		o->output.type = 2;
	return err < 0 ? err : 0;
}

int samples_begin(struct recording *r)
{
	const struct record_opts *o = r->opts;
	int err;
	struct shstk_symbols_opts names = {
		.no_lines = !output_wants_lines(&o->output),
		.kernel = o->kernel || o->kernel_alone,
		.full_names = o->output.full_names,
		.known = r->known,
	};

	read_limit_apply(&o->read_limit, &names);
	/* For events other than clocks only the rate is known, not the period. */
	err = output_begin(&names, value_type(o), record_counts_time(o) ? "nanoseconds" : "count",
			   record_counts_time(o) ? record_period(o) : 1, &r->symbols, &r->profile);
	return err ? err : add_types(r);
}

void samples_describe(const struct recording *r, const struct sample_counts *c, char *buf,
		      size_t size)
{
	char samples[48], threads[48], processes[48];

	plural(samples, sizeof(samples), c->samples, "sample", "samples");
	plural(threads, sizeof(threads), c->threads, "thread", "threads");
	plural(processes, sizeof(processes), c->processes, "process", "processes");
	snprintf(buf, size, "%s, %llu lost, %s, %s, %.1f s", samples, (unsigned long long)c->lost,
		 threads, processes, (now_ns(CLOCK_MONOTONIC) - r->started) / 1e9);
}

void samples_name_left(void *arg, int pid)
{
	struct samples_left *left = arg;
	size_t room = sizeof(left->text) - left->length;
	struct task_stat stat;
	int n;

	if (process_gone(pid) || process_is_zombie(pid))
		return;
	left->nr++;
	if (left->named >= MAX_LEFT_NAMES || task_stat(pid, 0, &stat))
		return;
	n = snprintf(left->text + left->length, room, "%s%s (%.2f s of CPU time so far)",
		     left->named ? ", " : ": ", stat.name, stat.cpu / 1e9);
	if (n < 0 || (size_t)n >= room)
		return;
	left->length += n;
	left->named++;
}

void samples_report_left(struct recording *r, const struct samples_left *left)
{
	if (left->nr)
		caution(r, "%u %s outlived the command: not recorded further%.*s%s", left->nr,
			left->nr == 1 ? "process" : "processes", (int)left->length, left->text,
			left->named && left->named < left->nr ? " and others" : "");
}

#define SUM_ROOM 200

/* Writes to @buf how much was sampled and, after "of", the whole @whole if that is known. */
static void describe_part(const struct record_opts *o, uint64_t weight, uint64_t whole, char *buf,
			  size_t size)
{
	const char *time = o->wall	? "wall-clock" :
			   o->preempted ? "preempted" :
			   o->off_cpu	? "off-CPU" :
					  "CPU";

	if (!record_counts_time(o) && whole)
		snprintf(buf, size, "%llu of %llu %s", (unsigned long long)weight,
			 (unsigned long long)whole, value_type(o));
	else if (!record_counts_time(o))
		snprintf(buf, size, "%llu %s", (unsigned long long)weight, value_type(o));
	else if (whole && !o->wall && !o->off_cpu)
		snprintf(buf, size, "%.2f of %.2f s CPU time", weight / 1e9, whole / 1e9);
	else
		snprintf(buf, size, "%.2f s of %s time", weight / 1e9, time);
}

/* Returns ns in units of 10 ms, rounded as describe_part() prints them. */
static uint64_t printed(uint64_t ns)
{
	return (ns + 5000000) / 10000000;
}

/*
 * Returns a text that explains why the sampled part is larger than the whole, which is the CPU time
 * of the command and of the children that it waited for; "" if it is not larger.
 */
static const char *why_larger(const struct record_opts *o, const struct sample_counts *c,
			      uint64_t whole)
{
	if (!whole || !record_counts_time(o) || o->wall || o->off_cpu ||
	    printed(c->weight) <= printed(whole))
		return "";
	return c->weight - whole <= (c->threads + 1) * record_period(o) ?
		       " (more, as a sample counts a whole period)" :
		       " (more: of processes that the command did not wait for, or that a hypervisor took)";
}

void samples_sum(const struct record_opts *o, const struct sample_counts *c, uint64_t whole,
		 char *buf, size_t size)
{
	char part[80];

	describe_part(o, c->weight, whole, part, sizeof(part));
	snprintf(buf, size, "%s%s", part, why_larger(o, c, whole));
}

void samples_report(const struct recording *r, const struct sample_counts *c, const char *who,
		    uint64_t whole)
{
	char *files = output_names(&r->opts->output);
	bool many;
	const double share = series_guessed(r, &many);
	char line[200], sum[SUM_ROOM], guessed[64] = "";

	if (!files)
		return;
	samples_describe(r, c, line, sizeof(line));
	samples_sum(r->opts, c, whole, sum, sizeof(sum));
	if (many)
		snprintf(guessed, sizeof(guessed), "; %.2f %% in stacks with a guessed entry",
			 share);
	complain("%s; %s, sampled %s%s; recorder: %lu MiB and %lu MiB shared at most%s%s", line,
		 sum, who, guessed, record_mib(r->memory), record_mib(r->shared), *files ? ";" : "",
		 files);
	free(files);
}

void samples_report_interpreted(struct recording *r, const struct language_counts *n,
				const char *refused)
{
	if (n->too_deep)
		caution(r, "%llu of %llu stacks of interpreters " LANGUAGES_TOO_DEEP,
			(unsigned long long)n->too_deep, (unsigned long long)n->samples);
	if (n->samples)
		remark(r,
		       "%llu of %llu stacks of interpreters show the functions of their programs, the others only the interpreter's own",
		       (unsigned long long)n->placed, (unsigned long long)n->samples);
	if (n->in_heap)
		remark(r,
		       "%llu stacks are of virtual threads whose outer callers are in Java's heap and not on the stack: shown as [callers in the heap]",
		       (unsigned long long)n->in_heap);
	if (refused)
		remark(r, "functions of programs in an interpreter are not shown: %s", refused);
}
