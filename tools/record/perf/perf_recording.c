// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf_recording.c - a recording by perf events: opens the rings, and hands the records in them to the
 * converter.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/convert/living_files.h"
#include "tools/language/languages.h"
#include "tools/proc/tasks.h"
#include "tools/record/perf/perf_recording_private.h"
#include "tools/shstk.h"

#define CALM 200000000 /* ns without a new process, program or mapping */
#define LOOK_MEANWHILE \
	20000000 /* ns between two looks into the rings while something else goes on */
#define ENDED 16 /* least number of threads that ended that matters */
#define ENDED_PART 50 /* and there must be more than one for as many samples */
#define LEAVE_AGAIN 1000000000 /* ns after which the walker is told again to leave a process */

/* ---- Records ---- */

/* Returns whether the frames of the process's interpreter are read by a program behind the walker. */
static bool read_behind_walker(const struct perf_recording *d, const struct process *p)
{
	return d->languages && languages_read_behind(d->languages, p->language);
}

/*
 * For Go programs the goroutine's stack and labels are wanted too, and for Java's the tables of the
 * code that was made. Only a copy leads to them. So such a process is not walked by the BPF program
 * any more. The program forgets processes if there are many, so it is told again from time to time.
 */
static void leave(struct perf_recording *d, struct process *p, uint64_t time)
{
	if (time < p->leave_at || !(mappings_has_go(p->mappings) || mappings_has_jit(p->mappings) ||
				    read_behind_walker(d, p)))
		return;
	p->leave_at = time + LEAVE_AGAIN;
	walker_leave(d->walker, p->pid);
}

void perf_recording_leave(struct perf_recording *d)
{
	struct process *p, *next;

	HASH_ITER(hh, d->convert->all.processes, p, next)
	{
		leave(d, p, d->convert->all.time);
	}
}

/* A languages_tell_fn. The rings may be others than those with which the process was told before. */
static int tell_lent(void *arg, int pid, const struct lent_process *process)
{
	const struct perf_recording *d = arg;

	return perf_rings_read_process(d->rings, pid, process);
}

void perf_recording_tell(struct perf_recording *d)
{
	if (d->languages && perf_rings_lent(d->rings))
		languages_tell_again(d->languages);
}

static int take_sample(struct perf_recording *d, const struct perf_record *r)
{
	const struct converter *c = d->convert;
	struct memory_piece pieces[GOMOMENTS_PIECES];
	struct memory_pieces more = { .pieces = pieces };
	const struct task *task;
	struct perf_sample sample;
	int ret;

	if (r->pid <= 0 || r->tid <= 0 ||
	    !perf_sample_parse(r, stacks_are_copied(&c->stacks), d->opts.max_stack, &sample))
		return 0;
	if (d->vary.step)
		sample.period = vary_weight(&d->vary, sample.period, sample.counted);
	callchain_beside_add(&d->beside, &sample);
	more.nr = gomoments_find(d->moments, r, &sample, pieces);
	ret = convert_sample(d->convert, r->which, &sample, &more);
	task = d->walker ? population_find_task(&d->convert->all, r->tid) : NULL;
	if (task)
		leave(d, task->process, r->time);
	return ret;
}

static int take_switch(struct perf_recording *d, const struct perf_record *r)
{
	if (!(r->misc & PERF_RECORD_MISC_SWITCH_OUT))
		return convert_return(d->convert, r->tid, r->time);
	/* Kernels before 4.17 do not tell whether the thread was preempted. */
	convert_leave(d->convert, r->tid, r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	return 0;
}

/*
 * Takes the end of a thread. A CPU's own events still see it leave the CPU until it is reaped. Returns 0 or a
 * negative errno.
 */
static int take_exit(struct perf_recording *d, const struct perf_fork *f)
{
	const int ret = convert_exit(d->convert, f, d->scope.kind != SCOPE_GIVEN || d->next);
	const struct process *p = population_find_process(&d->convert->all, f->pid);

	if (d->languages && (!p || (p->leader_ended && !p->living)))
		languages_ended(d->languages, f->pid);
	return ret;
}

/* Takes a record of what processes and threads do. */
static int take_event(struct perf_recording *d, const struct perf_record *r)
{
	struct perf_map map;
	struct perf_comm comm;
	struct perf_fork fork;

	switch (r->type) {
	case PERF_RECORD_MMAP2:
		return perf_record_map(r, &map) ? convert_map(d->convert, &map) : 0;
	case PERF_RECORD_COMM:
		return perf_record_comm(r, &comm) ? convert_comm(d->convert, &comm) : 0;
	case PERF_RECORD_FORK:
		if (!perf_record_fork(r, &fork))
			return 0;
		late_fork(d, &fork);
		return convert_fork(d->convert, &fork);
	case PERF_RECORD_EXIT:
		return perf_record_fork(r, &fork) ? take_exit(d, &fork) : 0;
	default:
		return 0;
	}
}

/*
 * Passes over a record of a process that is not recorded. If a thread begins there, an earlier
 * thread with its number has ended. Returns 0 or a negative errno.
 */
static int pass_over(struct perf_recording *d, const struct perf_record *r)
{
	struct perf_fork fork;

	return r->type == PERF_RECORD_FORK && perf_record_fork(r, &fork) ?
		       convert_forget(d->convert, fork.tid) :
		       0;
}

static int take(struct perf_recording *d, const struct perf_record *r)
{
	convert_at(d->convert, r->time);
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(d, r);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return take_switch(d, r);
	default:
		return take_event(d, r);
	}
}

/* Takes what a BPF program read at a sample, which follows. Returns 0 or a negative errno. */
static int take_read(struct perf_recording *d, const struct perf_record *r)
{
	int ret;

	if (callchain_beside_take(&d->beside, r->tid, r->body, r->size))
		return 0;
	ret = convert_read(d->convert, r->tid);
	if (!ret && d->contexts)
		ret = contexts_take(d->contexts, r->tid, r->time, r->body, r->size);
	if (!ret && d->languages)
		ret = languages_take(d->languages, r->tid, r->time, r->body, r->size);
	return ret < 0 ? ret : 0;
}

/* Returns whether the sample, or a later one of its thread, was taken from earlier rings. */
static bool was_taken(const struct perf_recording *d, const struct perf_record *r)
{
	const struct task *t = r->time < d->until ? population_find_task(&d->convert->all, r->tid) :
						    NULL;

	return t && r->time <= t->taken;
}

static int take_record(void *arg, const struct perf_record *r)
{
	struct perf_recording *d = arg;
	struct waking waking;
	int ret;

	if (r->language)
		return take_read(d, r);
	if (d->languages && r->type == PERF_RECORD_LOST)
		languages_lost(d->languages);
	if (d->contexts && r->type == PERF_RECORD_LOST)
		contexts_lost(d->contexts);
	if (d->wakers && wakers_parse(d->wakers, r, &waking)) {
		convert_waking(d->convert, &waking, r->time);
		return 0;
	}
	d->adapt.came += sums_take(&d->sums, r) + (r->type == PERF_RECORD_SAMPLE);
	if (!scope_has(&d->scope, &d->convert->all, r))
		return pass_over(d, r);
	if (r->type == PERF_RECORD_SAMPLE && was_taken(d, r))
		return 0;
	ret = take(d, r);
	/*
	 * The record is written after the mappings that were looked up for it: readers of the file
	 * need them first.
	 */
	if (d->writer)
		perf_writer_add(d->writer, r);
	return ret;
}

int perf_recording_read(struct perf_recording *d, bool all)
{
	int ret = perf_rings_read(d->rings, all, take_record, d);

	return ret ? ret : convert_settle(d->convert);
}

/* ---- Begin and end ---- */

/* Returns whether the events count more than what is recorded. */
static bool counts_others(const struct perf_recording *d)
{
	const struct perf_opts *o = &d->opts;

	return !o->main || d->scope.kind == SCOPE_OURS ||
	       (!o->nr_pids && o->cgroup < 0 && o->main->clock);
}

static void write_vdso(struct perf_recording *d)
{
	struct build_id id;
	uint64_t size = live_vdso(d->convert->all.live, &id);

	if (size)
		perf_writer_vdso(d->writer, size, &id);
}

static enum stack_source first_source(const struct perf_record_opts *opts)
{
	if (opts->rings.copy)
		return opts->chains ? STACK_SHADOW_OR_COPIES : STACK_COPIES;
	return opts->mixed ? STACK_SHADOW : STACK_CHAINS;
}

static struct converter *create_converter(const struct perf_record_opts *opts,
					  struct shstk_symbols *symbols,
					  struct shstk_profile *profile)
{
	const struct convert_opts how = {
		.source = first_source(opts),
		.kernel = opts->kernel ? KERNEL_ALWAYS : KERNEL_ALONE,
		.depth = opts->depth,
		.fold = opts->fold,
		.labels = opts->labels,
		.keep_times = opts->keep_times,
		.off = opts->off,
		.wakers = opts->wakers,
		.languages = opts->functions ? opts->languages : NULL,
		.contexts = opts->contexts,
		.threads = opts->nr_threads,
		.period = opts->rings.freq ? 1000000000 / opts->rings.freq : 0,
	};

	return converter_create(&how, symbols, profile, NULL);
}

/* The population's look at what it was not told yet. There are no rings while they are being opened. */
static bool executes(const void *arg, int pid, uint64_t time)
{
	const struct perf_recording *d = arg;

	return (d->rings && perf_rings_executes(d->rings, pid, time)) ||
	       (d->next && perf_rings_executes(d->next, pid, time));
}

static int create_writer(struct perf_recording *d, const struct perf_record_opts *opts,
			 struct reason *why)
{
	int err;

	if (!opts->perf_data)
		return 0;
	err = perf_writer_create(opts->perf_data, &opts->rings, &d->writer);
	if (err) {
		because(why, "cannot write %s: %s", opts->perf_data, strerror(-err));
		return err;
	}
	d->convert->all.writer = d->writer;
	write_vdso(d);
	return 0;
}

static void find_language(void *arg, int pid)
{
	const struct perf_recording *d = arg;

	convert_language(d->convert, pid);
}

/* Looks which of the processes that exist already have an interpreter. */
static void find_languages(struct perf_recording *d)
{
	if (!d->languages || d->scope.kind == SCOPE_ALL)
		return;
	population_alive(&d->convert->all, d->scope.kind == SCOPE_OURS, find_language, d);
	read_languages(d);
	/* If the walker reads for them, it runs from the first sample on, too. */
	begin_walking(d);
}

/*
 * Takes what is in the rings, while it is looked which processes exist already: for each of them
 * files of /proc are read, which takes a second for 10,000. Returns 0 or -ENOMEM.
 */
static int take_meanwhile(void *arg)
{
	struct perf_recording *d = arg;
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (now - d->looked < LOOK_MEANWHILE)
		return 0;
	d->looked = now;
	return perf_recording_read(d, false);
}

/* Opens the rings, and looks which processes exist already. Returns 0 or a negative errno. */
static int begin(struct perf_recording *d, const struct perf_record_opts *opts, struct reason *why)
{
	struct perf_opts rings = opts->rings;
	pid_t *list;
	int ret = scope_targets(&d->scope, &rings, &list);

	/* Callchains from shadow stacks are wanted with each sample. */
	rings.no_user = d->walker && !opts->chains &&
			!walker_write_callchains(d->walker, rings.max_stack);
	if (!ret)
		ret = perf_rings_open(&rings, &d->rings, why);
	if (!ret && d->walker) {
		ret = walker_begin(d->walker, d->rings);
		because(why, "cannot open the events of the BPF walk: %s", strerror(-ret));
	}
	if (!ret && d->languages && perf_rings_lent(d->rings))
		languages_lend(d->languages, tell_lent, d);
	d->opts = rings;
	d->opts.pids = NULL;
	d->opts.on_exec = false;
	/*
	 * An event that is a clock needs no total: the CPU time of the command is known at its end.
	 */
	if (!ret && d->scope.awaited && rings.main && !rings.main->clock)
		d->sums.total = perf_total_open(&opts->rings, perf_rings_user_only(d->rings));
	if (ret == -ESRCH)
		because(why, "%s %d: %s", d->scope.threads ? "thread" : "process",
			*opts->rings.pids, process_gone_why(*opts->rings.pids));
	d->looked = now_ns(CLOCK_MONOTONIC);
	/* The command is not the process whose events these are. */
	if (rings.vary)
		d->scope.nr_pids = 0;
	if (!ret)
		ret = scope_look_around(&d->scope, &d->convert->all, take_meanwhile, d);
	if (!ret && list)
		ret = late_begin(d, list, rings.nr_pids);
	free(list);
	if (!ret)
		find_languages(d);
	return ret;
}

int perf_recording_create(const struct perf_record_opts *opts, struct shstk_symbols *symbols,
			  struct shstk_profile *profile, struct perf_recording **ret,
			  struct reason *why)
{
	struct perf_recording *d = calloc(1, sizeof(*d));
	int err;

	because(why, "cannot set up recording: %s", strerror(ENOMEM));
	if (!d)
		return -ENOMEM;
	d->sums.total = -1;
	d->chains = opts->chains;
	d->wakers = opts->wakers;
	d->walker = opts->walker;
	d->later = opts->later;
	d->began = now_ns(CLOCK_MONOTONIC);
	d->languages = opts->languages;
	d->contexts = opts->contexts;
	if (!opts->may_coarsen)
		d->adapt.refused |= 1u << CHANGE_PERIOD;
	d->convert = create_converter(opts, symbols, profile);
	err = d->convert ? scope_init(&d->scope, opts) : -ENOMEM;
	if (!err) {
		d->convert->all.executes = executes;
		d->convert->all.executes_arg = d;
	}
	if (!err)
		err = create_writer(d, opts, why);
	if (!err)
		err = begin(d, opts, why);
	if (err) {
		perf_recording_destroy(d);
		return err;
	}
	*ret = d;
	return 0;
}

void perf_recording_destroy(struct perf_recording *d)
{
	if (!d)
		return;
	if (d->sums.total >= 0)
		close(d->sums.total);
	perf_rings_close(d->rings);
	gomoments_destroy(d->moments);
	perf_writer_close(d->writer);
	converter_destroy(d->convert);
	scope_deinit(&d->scope);
	late_deinit(&d->late);
	free(d);
}

/*
 * Returns whether many threads ended after few samples, so that it matters that each began with a whole
 * period.
 */
static bool many_are_short(const struct perf_recording *d)
{
	const struct convert_counts *n = &d->convert->counts;

	return n->ended >= ENDED && n->ended > n->samples / ENDED_PART;
}

void perf_recording_vary(struct perf_recording *d)
{
	if (!d->opts.vary)
		return;
	if (!d->vary.step) {
		if (!many_are_short(d))
			return;
		vary_init(&d->vary, d->convert->opts.period);
		d->convert->varied = now_ns(CLOCK_MONOTONIC);
	}
	perf_rings_vary(d->rings, vary_next(&d->vary));
}

int perf_recording_take(struct perf_recording *d)
{
	int ret = perf_recording_read(d, false);

	if (!ret)
		ret = late_find(d);
	if (!ret)
		ret = adapt(d);
	return ret;
}

int perf_recording_stop(struct perf_recording *d)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC);
	int ret;

	perf_rings_stop(d->rings);
	ret = perf_recording_read(d, true);
	if (!ret)
		ret = convert_end(d->convert, end);
	d->unwritten = perf_writer_close(d->writer);
	d->writer = d->convert->all.writer = NULL;
	return ret;
}

void perf_recording_renew(struct perf_recording *d, struct shstk_symbols *symbols,
			  struct shstk_profile *profile)
{
	converter_renew(d->convert, symbols, profile);
	sums_renew(&d->sums, d->rings, counts_others(d));
	if (d->languages)
		languages_count_anew(d->languages);
}

/* ---- State and counts ---- */

bool perf_recording_calm(const struct perf_recording *d, uint64_t ns)
{
	const struct convert_learnt *l = &d->convert->learnt;

	return !l->go && !l->made && now_ns(CLOCK_MONOTONIC) - l->moved > CALM &&
	       !perf_rings_news(d->rings) && perf_rings_last(d->rings, ns);
}

int perf_recording_unsampled(struct perf_recording *d, int which, uint64_t value, int note)
{
	return convert_unsampled(d->convert, which, value, note);
}

bool perf_recording_whole(const struct perf_recording *d, int which, uint64_t *ret)
{
	return sums_counted(&d->sums, d->rings, counts_others(d), which, ret);
}

void perf_recording_left(struct perf_recording *d, void (*fn)(void *arg, int pid), void *arg)
{
	if (d->scope.kind != SCOPE_ALL)
		population_alive(&d->convert->all, d->scope.kind == SCOPE_OURS, fn, arg);
}

unsigned int perf_recording_alive(const struct perf_recording *d)
{
	return scope_alive(&d->scope);
}

uint64_t perf_recording_shared(const struct perf_recording *d)
{
	return perf_rings_memory(d->rings);
}

bool perf_recording_user_only(const struct perf_recording *d)
{
	return perf_rings_user_only(d->rings);
}

bool perf_recording_widened(const struct perf_recording *d)
{
	return d->scope.kind == SCOPE_OURS && !d->scope.awaited;
}

uint64_t perf_recording_weight(const struct perf_recording *d, int which)
{
	return d->convert->weights[which];
}

bool perf_recording_borrowed(const struct perf_recording *d)
{
	return perf_rings_borrowed(d->rings);
}

bool perf_recording_lent(const struct perf_recording *d)
{
	return perf_rings_lent(d->rings);
}

void perf_recording_lost(const struct perf_recording *d, struct perf_losses *ret)
{
	sums_lost(&d->sums, d->rings, ret);
}

void perf_recording_count(const struct perf_recording *d, struct sample_counts *ret,
			  struct perf_counts *more)
{
	const struct convert_counts *c = &d->convert->counts;
	struct perf_losses lost;

	sums_lost(&d->sums, d->rings, &lost);
	*ret = (struct sample_counts){
		.samples = c->samples,
		.weight = c->weight,
		.truncated = c->truncated,
		.threads = c->threads,
		.processes = c->processes,
		.lost = lost.all,
	};
	if (!more)
		return;
	*more = (struct perf_counts){
		.stacks = *c,
		.copy = d->opts.copy,
		.count = d->opts.count,
		.anew = d->opts.nr_pids,
		.throttled = d->sums.throttled,
		.refused_threads = d->late.nr_refused,
		.refused_why = d->late.refused,
		.unwritten = d->unwritten,
	};
	if (d->languages) {
		languages_count(d->languages, &more->languages);
		more->refused = languages_refused(d->languages);
		more->contexts_refused = languages_contexts_refused(d->languages);
	}
	/* Time of short threads is missing only if events of the CPUs were refused. */
	if (!(d->adapt.refused & 1u << CHANGE_SCOPE))
		more->stacks.unseen = 0;
}
