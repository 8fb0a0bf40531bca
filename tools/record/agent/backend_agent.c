// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * backend_agent.c - the back end whose samples are taken by the agent (tools/inject/agent/) inside
 * the recorded processes.
 */
#include <stdio.h>

#include "tools/convert/convert.h"
#include "tools/inject/agent/ring.h"
#include "tools/record/agent/agent_recording.h"
#include "tools/record/agent/ledger.h"
#include "tools/record/backend.h"
#include "tools/record/caution.h"
#include "tools/record/samples.h"
#include "tools/shstk.h"

#define MAX_LOST_LINES 20
#define MAX_GAP_LINES 10
#define MIN_GAP_NS 10000000

/* Lines about gaps that were printed so far. */
struct lines {
	struct recording *recording;
	unsigned int losers;
	unsigned int gaps;
};

/*
 * Says, at the start and in the profile, that fewer samples can come than were asked for: at most
 * @most a second of each thread; 0 means that there is no such limit.
 */
static void warn_limit(const struct recording *r, unsigned int most)
{
	char text[160];

	if (!most)
		return;
	snprintf(
		text, sizeof(text),
		"at most %u samples a second of each thread, not %lu: the kernel's tick (CONFIG_HZ) limits the rate here",
		most, r->opts->freq);
	if (!r->opts->quiet)
		complain("%s", text);
	shstk_profile_comment(r->profile, text);
}

static int begin(struct recording *r)
{
	const struct record_opts *o = r->opts;
	struct agent_recording_opts opts = {
		.clock = o->wall ? REC_CLOCK_WALL : REC_CLOCK_CPU,
		.period = record_period(o),
		.ring_size = (o->buffer ? o->buffer : RECORD_BUFFER) * 1024,
		.max_depth = o->depth,
		.fold = o->fold,
		.keep_times = output_wants_times(&o->output),
		.labels = output_wants_labels(&o->output),
	};
	struct agent_recording *agents = NULL;
	int err = samples_begin(r);

	if (o->why && !o->quiet)
		complain("sampling in process: %s", o->why);
	if (!err)
		err = agent_recording_create(&opts, r->symbols, r->profile, &agents);
	if (!err)
		warn_limit(r, agent_recording_most(agents));
	r->state = agents;
	return err;
}

static void end(struct recording *r)
{
	agent_recording_destroy(r->state);
}

static const char *env(const struct recording *r)
{
	return agent_recording_env(r->state);
}

static int take(struct recording *r)
{
	return agent_recording_take(r->state);
}

static void watch(struct recording *r)
{
	agent_recording_watch(r->state);
}

static int stop(struct recording *r, bool ended, const struct rusage *usage)
{
	if (ended)
		agent_recording_reaped(r->state, r->pid, rusage_seconds(usage) * 1e9);
	return agent_recording_stop(r->state);
}

static uint64_t shared(const struct recording *r)
{
	return agent_recording_shared(r->state);
}

static void count(const struct recording *r, struct sample_counts *ret)
{
	agent_recording_count(r->state, ret);
}

static void describe(const struct recording *r, char *buf, size_t size)
{
	struct sample_counts c;

	agent_recording_count(r->state, &c);
	samples_describe(r, &c, buf, size);
}

static void warn_lost_thread(void *arg, const struct lossy_thread *thread)
{
	struct lines *l = arg;

	if (++l->losers > MAX_LOST_LINES)
		return;
	caution(l->recording,
		"lost %llu of %llu samples of thread %d of process %d (%s): the ring was full",
		(unsigned long long)thread->lost, (unsigned long long)thread->taken, thread->tid,
		thread->pid, thread->comm);
}

/*
 * Reports CPU time during which no agent was in a process. An amount that is lost in the noise of
 * the sums is not worth a line.
 */
static void warn_gap(void *arg, const struct ledger_gap *gap)
{
	struct lines *l = arg;
	char processes[48] = "";

	if (gap->ns < MIN_GAP_NS || ++l->gaps > MAX_GAP_LINES)
		return;
	if (gap->processes > 1)
		snprintf(processes, sizeof(processes), " in %u processes", gap->processes);
	caution(l->recording, "%.2f s of CPU time%s not sampled: %s %s", gap->ns / 1e9, processes,
		gap->program, gap->reason);
}

/* Reports threads that were not sampled, or less often than asked for. */
static void report_threads(struct recording *r, const struct sample_counts *c)
{
	if (c->no_slot)
		caution(r, "%u threads were not sampled: more than 4096 at once", c->no_slot);
	if (c->no_timer)
		caution(r, "%u threads were not sampled: no more timers (see ulimit -i)",
			c->no_timer);
	if (c->sandboxed)
		caution(r, "%u threads or processes were not sampled: they began in a sandbox",
			c->sandboxed);
	if (c->stretch > 1)
		remark(r, "threads that waited were sampled every %.3g ms only, as there were many",
		       c->stretch * 1e3 / r->opts->freq);
}

/* Reports samples that are missing or incomplete. */
static void report_samples(struct recording *r, const struct sample_counts *c)
{
	if (c->left_out)
		caution(r,
			"%llu samples were left out, as only the first %u processes are recorded",
			(unsigned long long)c->left_out, AGENT_RECORDING_MAX_PROCESSES);
	if (c->damaged)
		caution(r, "the target wrote into the rings: samples lost %u times", c->damaged);
	if (c->late > c->weight / 10 && c->late > 100000000)
		remark(r,
		       "%.0f%% of the CPU time passed between the kernel's ticks, where nothing could be sampled: it is shown as [between ticks]",
		       100.0 * c->late / c->weight);
	if (c->folded)
		remark(r, "%llu of %llu stacks " CONVERT_FOLDED, (unsigned long long)c->folded,
		       (unsigned long long)c->samples);
	samples_report_interpreted(r, &c->interpreted, c->refused);
	if (c->truncated)
		remark(r, "%llu of %llu stacks are cut at the outer end: shown as [truncated]",
		       (unsigned long long)c->truncated, (unsigned long long)c->samples);
}

/* Reports why there is no sample at all. */
static void report_nothing(const struct recording *r, bool ended, double cpu,
			   const struct sample_counts *c)
{
	if (!c->images)
		complain("no samples: %s did not load the agent", *r->opts->command);
	else if (ended && !r->opts->wall && cpu * r->opts->freq > 100)
		complain(
			"no samples, though %.1f s of CPU time were used: the command took all signals, or ran where the agent cannot enter",
			cpu);
	else if (r->opts->wall || !ended)
		complain("no samples: nothing ran for as long as a period (%.1f ms)",
			 1e3 / r->opts->freq);
	else
		complain("no samples: the command used %.1f ms of CPU time (a period is %.1f ms)",
			 cpu * 1e3, 1e3 / r->opts->freq);
}

/* Reports what the profile does not hold, each in one line, also with --quiet. */
static void report_gaps(struct recording *r, bool ended, const struct rusage *usage)
{
	struct lines lines = { .recording = r };
	struct samples_left left = { .text = "" };
	struct agent_recording *agents = r->state;
	struct sample_counts c;

	agent_recording_count(agents, &c);
	agent_recording_lost(agents, warn_lost_thread, &lines);
	if (lines.losers > MAX_LOST_LINES)
		caution(r, "lost samples of %u more threads", lines.losers - MAX_LOST_LINES);
	report_threads(r, &c);
	report_samples(r, &c);
	agent_recording_gaps(agents, warn_gap, &lines);
	if (lines.gaps > MAX_GAP_LINES)
		caution(r, "%u more programs were not sampled either", lines.gaps - MAX_GAP_LINES);
	agent_recording_alive(agents, samples_name_left, &left);
	if (ended)
		samples_report_left(r, &left);
	if (!c.images || !c.samples)
		report_nothing(r, ended, ended ? rusage_seconds(usage) : 0, &c);
}

static void report(struct recording *r, bool ended, const struct rusage *usage)
{
	struct sample_counts c;

	agent_recording_count(r->state, &c);
	samples_report(r, &c, "in process", ended ? rusage_seconds(usage) * 1e9 : 0);
}

const struct backend backend_agent = {
	.object = "libshstk-agent.so",
	.begin = begin,
	.end = end,
	.env = env,
	.take = take,
	.watch = watch,
	.stop = stop,
	.shared = shared,
	.count = count,
	.describe = describe,
	.report_gaps = report_gaps,
	.report = report,
};
