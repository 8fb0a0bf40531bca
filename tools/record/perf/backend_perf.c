// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * backend_perf.c - the back end that samples by the kernel's perf events, with callchains (from
 * shadow stacks and by unwind rules with shstk_perf.ko) or copies of stacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/bpf/walker.h"
#include "tools/convert/stack_outer.h"
#include "tools/language/languages.h"
#include "tools/proc/script.h"
#include "tools/record/backend.h"
#include "tools/perf/borrow.h"
#include "tools/record/caution.h"
#include "tools/record/perf_module.h"
#include "tools/record/perf/losses.h"
#include "tools/record/perf/perf_recording.h"
#include "tools/record/samples.h"
#include "tools/record/targets/target.h"
#include "tools/rules/cache.h"
#include "tools/rules/helper.h"
#include "tools/shstk.h"

#define NICE -10
#define FEW_SAMPLES 100 /* shares near one half are right to ten points in 19 of 20 cases */
#define BRIEF 16 /* least number of threads that ended that matters */
#define OF_CPUS " of the CPUs, as there are too many threads for events of their own"
#define BY_BROKER " that the broker opened"

/**
 * struct perf_state - the state of this back end
 * @perf: the events and their rings, once started.
 * @chains: the kernel module's counts when recording started.
 * @helper: process ID of the process that loads unwind rules, or 0.
 * @wakers: finds who ends the waiting of threads, or NULL.
 * @walker: the BPF program that walks stacks, or NULL.
 * @languages: the languages whose functions are shown, or NULL.
 * @contexts: trace contexts of threads, or NULL.
 */
struct perf_state {
	struct perf_recording *perf;
	struct module_chains chains;
	pid_t helper;
	struct wakers *wakers;
	struct walker *walker;
	struct languages *languages;
	struct contexts *contexts;
};

/*
 * Starts a process of ours that loads unwind rules, if nobody else does and it may. Returns its
 * process ID or 0.
 */
static pid_t start_helper(const struct record_opts *o)
{
	struct rules_state state;

	if (o->via != VIA_RULES)
		return 0;
	rules_read_state(&state);
	return state.served || !state.may_load ? 0 : rules_helper_start();
}

static int begin(struct recording *r)
{
	struct perf_state *state = calloc(1, sizeof(*state));

	r->state = state;
	if (!state)
		return -ENOMEM;
	state->helper = start_helper(r->opts);
	return samples_begin(r);
}

static void end(struct recording *r)
{
	struct perf_state *state = r->state;

	if (state) {
		perf_recording_destroy(state->perf);
		wakers_destroy(state->wakers);
		rules_helper_end(state->helper);
		contexts_destroy(state->contexts);
		languages_destroy(state->languages);
		walker_destroy(state->walker);
	}
	free(state);
}

static struct perf_recording *perf_of(const struct recording *r)
{
	return ((struct perf_state *)r->state)->perf;
}

static unsigned int kernel_max_stack(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_stack", "re");
	unsigned int max = 127;

	if (file) {
		if (fscanf(file, "%u", &max) != 1 || !max || max > 65535)
			max = 127;
		fclose(file);
	}
	return max;
}

/*
 * Returns how many events there are from one sample to the next, 0 if that is not fixed. Of events
 * that the kernel itself counts each one is a sample, for as long as that can be afforded.
 */
static uint64_t event_count(const struct record_opts *o)
{
	if (o->count)
		return o->count;
	for (unsigned int i = 0; i < o->nr_events; i++)
		if (perf_event_by_kernel(&o->events[i]))
			return 1;
	return 0;
}

/*
 * Sets in @opts how much of each stack is copied, and the size of a ring. Copies of stacks fill it
 * fast: it must hold those of one second, of one thread that runs all the time.
 */
static void choose_sizes(const struct record_opts *o, struct perf_opts *opts)
{
	opts->ring_size = (size_t)(o->buffer ? o->buffer : RECORD_BUFFER) * 1024;
	opts->may_shrink = !o->buffer;
	if (o->via == VIA_COPIES)
		opts->copy = perf_first_copy(opts);
	if (opts->may_shrink && (opts->count || (opts->copy && opts->off)))
		opts->ring_size = perf_ring_size(opts->ring_size, SIZE_MAX);
	else if (opts->may_shrink)
		opts->ring_size = perf_ring_size(opts->ring_size, (size_t)opts->freq * opts->copy);
}

/*
 * Returns how to open the events: time on the CPU is sampled by an event, time off the CPU by
 * switches, wall-clock time by both.
 */
static struct perf_opts event_options(const struct record_opts *o)
{
	unsigned int max = kernel_max_stack();
	struct perf_opts opts = {
		.main = o->off_cpu ? NULL :
			o->event   ? o->event :
				     perf_event_find("cpu-clock"),
		.freq = o->freq,
		.count = event_count(o),
		.count_all = o->count,
		.off = o->off_cpu || o->wall,
		.kernel = o->kernel || o->kernel_alone,
		.max_stack = o->depth < max ? o->depth : max,
		.cgroup = -1,
		.pids = o->targets.nr_tids ? o->targets.tids : o->targets.pids,
		.nr_pids = o->targets.nr_pids + o->targets.nr_tids +
			   (o->command && !o->all && !o->cgroup),
		.borrow = true,
		.walk = { .max = o->lent ? o->depth : 0, .guesses = o->walk },
	};

	for (unsigned int i = 1; i < o->nr_events; i++)
		opts.more[opts.nr_more++] = &o->events[i];
	choose_sizes(o, &opts);
	return opts;
}

static int find_cgroup(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char below[PATH_MAX];

	if (fd < 0 &&
	    snprintf(below, sizeof(below), "/sys/fs/cgroup/%s", path) < (int)sizeof(below))
		fd = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		complain("cgroup %s: %s", path, strerror(errno));
	return fd;
}

int backend_perf_probe(const struct record_opts *o, bool *user_only, struct reason *why)
{
	struct perf_opts opts = event_options(o);

	return perf_probe(&opts, user_only, why);
}

/* Returns whether events of the CPUs, which see all processes and the kernel, may be opened. */
static bool may_see_all(struct perf_opts opts)
{
	bool user_only;
	struct reason why;

	opts.nr_pids = 0;
	opts.on_exec = false;
	return !perf_probe(&opts, &user_only, &why) && !user_only;
}

/* Returns a text that says where the stacks come from. @walked: some are walked by BPF. */
static const char *how(const struct record_opts *o, bool walked)
{
	if (walked)
		return "stacks walked by unwind rules in the kernel (BPF), or copied and unwound here";
	if (o->via == VIA_COPIES)
		return module_loaded() ?
			       "stacks copied and unwound here, or from shadow stacks (shstk_perf)" :
			       "stacks copied and unwound here (shstk_perf is not loaded)";
	if (o->via == VIA_RULES)
		return "callchains by unwind rules in the kernel, or from shadow stacks (shstk_perf)";
	return module_loaded() ? "callchains from shadow stacks (shstk_perf)" :
				 "callchains by frame pointers (shstk_perf is not loaded)";
}

/* Returns false if stacks are to be walked by unwind rules in the kernel and none are loaded. */
static bool has_rules(const struct record_opts *o)
{
	struct rules_state state;

	rules_read_state(&state);
	return o->via != VIA_RULES || state.tables;
}

/*
 * Creates the walker if stacks are to be walked by BPF, or plans it if they may be. Nobody waits
 * for one that was not asked for: the recording begins without it, and copies stacks. Returns
 * false, after printing the reason, if there is none but it was asked for.
 */
static bool start_walker(const struct recording *r, struct walker **ret)
{
	const struct record_opts *o = r->opts;
	const struct walker_opts opts = {
		.max = o->depth,
		.kernel = o->kernel,
		/* A copy shows more certainly who called code that was made at run time. */
		.records = o->walk ? WALK_RECORDS_NO_FILE : WALK_RECORDS_NEVER,
		.nice = o->walk ? NICE : r->nice,
		.cache = CACHE_FOLDER,
	};
	struct reason why;

	if (o->may_walk)
		*ret = walker_plan(&opts);
	if (!o->walk || o->lent || !walker_create(&opts, ret, &why))
		return true;
	complain("--via=bpf: %s", why.text);
	return false;
}

/* Loads the walker now, for a language. Returns its program, or NULL if it cannot be loaded. */
static const struct bpf_loaded *load_walker(void *arg)
{
	struct walker *walker = arg;
	struct reason unused;

	if (walker_start(walker, &unused) || walker_ready(walker, true, &unused) < 0)
		return NULL;
	return walker_loaded(walker);
}

/*
 * Returns the languages whose functions are shown, and what reads trace contexts; or NULL. A perf.data
 * file has no place for what is read, and its profile is to be the same.
 */
static struct languages *start_languages(const struct record_opts *o, struct walker *walker)
{
	struct languages *all;

	if (o->perf_data)
		return NULL;
	all = languages_create(o->walk && walker ? walker_loaded(walker) : NULL);
	/* An event has room for one program: that of the walker, if there is to be one. */
	if (all && walker && !o->walk)
		languages_load_by(all, load_walker, walker);
	return all;
}

/* Prepares for the functions of what the command @name runs, before it runs. */
static void expect_command(struct languages *all, const char *name)
{
	char *program;

	if (script_program(name, &program))
		return;
	languages_expect(all, program);
	free(program);
}

/* Returns how to record, as far as the options say it. */
static struct perf_record_opts perf_options(const struct record_opts *o)
{
	return (struct perf_record_opts){
		.rings = event_options(o),
		.depth = o->depth,
		.nr_threads = o->threads,
		.fold = o->fold,
		.kernel = o->kernel,
		.chains = module_loaded(),
		.mixed = o->mixed,
		.given = o->targets.nr_tids ? o->targets.nr_tids : o->targets.given,
		.threads = o->targets.nr_tids,
		/* A perf.data file says only once what a sample stands for. */
		.may_coarsen = !o->count && event_count(o) && !o->perf_data,
		.perf_data = o->perf_data,
		.off = !o->off_cpu  ? OFF_ALL :
		       o->preempted ? OFF_PREEMPTED :
				      OFF_WAITING,
		.keep_times = output_wants_times(&o->output),
		.labels = output_wants_labels(&o->output),
		/* Functions are placed in copies of stacks. */
		.functions = o->via == VIA_COPIES,
	};
}

/*
 * Begins what the recording needs beside events: who wakes threads, walks in the kernel, functions
 * of interpreters. Returns false, after printing the reason, if that is not possible.
 */
static bool start_others(const struct recording *r, struct perf_record_opts *opts)
{
	const struct record_opts *o = r->opts;
	struct perf_state *state = r->state;
	struct reason why;

	if (o->wakers && wakers_create(&state->wakers, &why)) {
		complain("%s", why.text);
		return false;
	}
	if (!start_walker(r, &state->walker))
		return false;
	*(o->walk ? &opts->walker : &opts->later) = state->walker;
	state->languages = start_languages(o, state->walker);
	opts->languages = state->languages;
	if (state->languages && opts->functions && o->command)
		expect_command(state->languages, *o->command);
	/* They are shown as labels. */
	if (state->languages && opts->labels)
		state->contexts = contexts_create(state->languages);
	opts->contexts = state->contexts;
	opts->wakers = state->wakers;
	opts->rings.wakings = wakers_event(state->wakers);
	if (!has_rules(o)) {
		complain("no unwind rules are loaded into the kernel; see shstk-rules(1)");
		return false;
	}
	return true;
}

/*
 * Returns whether the command's processes and threads can get periods that vary (vary.h): they inherit a
 * clock that is the one thing recorded, and samples say what it counted. A broker would open the events of
 * the command itself.
 */
static bool may_vary(const struct record_opts *o, struct perf_opts opts)
{
	bool user_only;
	struct reason why;

	if (!record_counts_time(o) || !opts.main || !opts.main->clock || opts.off || opts.more[0] ||
	    o->perf_data || perf_rings_may_be_lent(&opts))
		return false;
	opts.vary = true;
	opts.borrow = false;
	return !perf_probe(&opts, &user_only, &why);
}

/*
 * Returns whether events of the CPUs can take the place of those of processes. Switches of other processes
 * would fill the rings, and so would other processes' events of which each is a sample. For these, events
 * of the CPUs are opened only if there is no other way.
 */
static bool may_take_cpus(const struct record_opts *o, const struct perf_opts *opts)
{
	return !opts->off && !event_count(o) && may_see_all(*opts);
}

/*
 * Says whose events are opened: those of the command @target, if there is one, or of the cgroup.
 * Returns false, after printing the reason, if there is no such cgroup.
 */
static bool choose_targets(const struct record_opts *o, struct target *target,
			   struct perf_record_opts *opts)
{
	if (target && opts->rings.nr_pids) {
		opts->rings.pids = &target->pid;
		opts->rings.on_exec = true;
		opts->tree = may_take_cpus(o, &opts->rings);
		opts->rings.vary = !opts->tree && may_vary(o, opts->rings);
		target->apart = opts->rings.vary;
	} else if (opts->rings.nr_pids) {
		opts->may_widen = !opts->threads && may_take_cpus(o, &opts->rings);
	}
	if (o->cgroup)
		opts->rings.cgroup = find_cgroup(o->cgroup);
	return !o->cgroup || opts->rings.cgroup >= 0;
}

/*
 * Returns whether stacks are walked as far as that was asked for. If not, it prints the reason.
 */
static bool walks_as_asked(const struct record_opts *o, const struct perf_recording *perf)
{
	if (!o->walk || !o->lent || perf_recording_lent(perf))
		return true;
	complain(
		"--via=bpf: not permitted: be root, or have CAP_BPF and CAP_PERFMON; or ask for a user's own processes where root runs a broker that lends walks (see shstk-broker(1))");
	return false;
}

/* Begins to record. @target is the command, which waits to be executed, or NULL. */
static int start(struct recording *r, struct target *target)
{
	struct perf_record_opts opts = perf_options(r->opts);
	struct perf_state *state = r->state;
	struct reason why;
	int ret;

	if (!start_others(r, &opts) || !choose_targets(r->opts, target, &opts))
		return EXIT_OWN;
	/*
	 * A higher priority: on a busy machine the rings would be full before it is this process's
	 * turn, or a recorded process would have ended before copies of its stacks begin.
	 */
	if (r->opts->via == VIA_COPIES || r->opts->mixed)
		setpriority(PRIO_PROCESS, 0, NICE);
	module_read_chains(&state->chains);
	ret = perf_recording_create(&opts, r->symbols, r->profile, &state->perf, &why);
	if (opts.rings.cgroup >= 0)
		close(opts.rings.cgroup);
	if (ret) {
		complain("%s", why.text);
		return EXIT_OWN;
	}
	if (!walks_as_asked(r->opts, state->perf))
		return EXIT_OWN;
	if (r->opts->quiet)
		return 0;
	complain("sampling by perf events%s, %s%s",
		 perf_recording_borrowed(state->perf)		       ? BY_BROKER :
		 opts.may_widen && perf_recording_widened(state->perf) ? OF_CPUS :
									 "",
		 how(r->opts, r->opts->walk || perf_recording_lent(state->perf)),
		 perf_recording_user_only(state->perf) ?
			 "; user mode only (kernel.perf_event_paranoid)" :
			 "");
	return 0;
}

static int take(struct recording *r)
{
	const int ret = perf_recording_take(perf_of(r));

	if (!ret && r->target.starter)
		perf_recording_vary(perf_of(r));
	return ret;
}

static bool calm(const struct recording *r, uint64_t ns)
{
	return perf_recording_calm(perf_of(r), ns);
}

static int renew(struct recording *r)
{
	int err = samples_begin(r);

	if (!err)
		perf_recording_renew(perf_of(r), r->symbols, r->profile);
	return err;
}

static bool all_gone(const struct recording *r)
{
	return targets_any(&r->opts->targets) && !perf_recording_alive(perf_of(r));
}

/*
 * Returns how many ns or events there were to be sampled, 0 if that is not known. The command's CPU
 * time is that number only if nothing else is recorded, and for all profiles together.
 */
static uint64_t find_whole(const struct recording *r, bool ended, const struct rusage *usage)
{
	const struct record_opts *o = r->opts;
	uint64_t whole;

	if (perf_recording_whole(perf_of(r), PERF_MAIN, &whole))
		return whole;
	return ended && record_counts_time(o) && !o->all && !o->cgroup && !(o->every > 0) ?
		       rusage_seconds(usage) * 1e9 :
		       0;
}

/* Adds what has no sample of a further event to the profile, unless that event is a clock. */
static int add_unsampled_of(struct recording *r, const struct perf_event *event, int which)
{
	uint64_t weight = perf_recording_weight(perf_of(r), which), whole;

	if (event->clock || !perf_recording_whole(perf_of(r), which, &whole) || whole <= weight)
		return 0;
	return perf_recording_unsampled(perf_of(r), which, whole - weight, SHSTK_NOTE_UNSAMPLED);
}

/*
 * Returns the ns of CPU time in the kernel that have no sample, because only user mode may be
 * sampled. For a command it is at most what the kernel reports as its system time: a hypervisor may
 * have delayed samples.
 */
static uint64_t hidden_kernel(const struct recording *r, bool ended, const struct rusage *usage,
			      const struct sample_counts *c, const struct perf_counts *more)
{
	uint64_t whole = find_whole(r, ended, usage), hidden = whole - c->weight;
	uint64_t most = usage->ru_stime.tv_sec * 1000000000 + usage->ru_stime.tv_usec * 1000;
	const bool told = ended && r->pid;

	/*
	 * What runs already may have had short threads as well: nobody knows which part is whose.
	 */
	if (!record_counts_time(r->opts) || r->opts->wall || r->opts->off_cpu || c->lost ||
	    (more->stacks.unseen && !told) || whole <= c->weight ||
	    !perf_recording_user_only(perf_of(r)))
		return 0;
	return told && most < hidden ? most : hidden;
}

/*
 * Returns the ns of CPU time that have no sample because threads ended too soon: what is left
 * beside @kernel, the time in the kernel.
 */
static uint64_t short_threads(const struct recording *r, uint64_t whole, uint64_t kernel,
			      const struct sample_counts *c, const struct perf_counts *more)
{
	const uint64_t known = c->weight + kernel;

	if (!record_counts_time(r->opts) || r->opts->wall || r->opts->off_cpu || c->lost ||
	    more->throttled || !more->stacks.unseen || whole <= known)
		return 0;
	return whole - known;
}

#define DROPPED_PART 16 /* of the CPU time, and */
#define DROPPED_LEAST 32 /* periods are missing at least: a few do not end, or end late */

/*
 * Returns the ns of CPU time without a sample that the kernel dropped, or a hypervisor delayed, beside what was
 * counted as lost and what threads had at their ends. Where a program runs at events the kernel drops samples, and
 * counts none, while the CPU runs another BPF program or bpf(2) is in a map. One of several profiles ends before
 * all of its samples are read, so that nothing is known of it.
 */
static uint64_t dropped(const struct recording *r, uint64_t whole, const struct sample_counts *c,
			const struct perf_counts *more)
{
	const struct record_opts *o = r->opts;
	const bool walks = o->walk || more->stacks.walked;
	const uint64_t period = record_period(o);
	const uint64_t known = c->weight + (c->lost + more->stacks.ended) * period;
	uint64_t missing;

	if (!walks || !record_counts_time(o) || o->wall || o->off_cpu || o->every > 0 ||
	    more->throttled || more->stacks.unseen || more->refused_threads ||
	    perf_recording_user_only(perf_of(r)) || whole <= known)
		return 0;
	missing = whole - known;
	return missing > whole / DROPPED_PART && missing > DROPPED_LEAST * period ? missing : 0;
}

/*
 * Adds what has no sample to the profile: after losses, for events that are no clock, and for time
 * in the kernel. In other cases the rest consists of periods that did not end, and is left out.
 */
static int add_unsampled(struct recording *r, bool ended, const struct rusage *usage)
{
	uint64_t whole = find_whole(r, ended, usage), kernel, threads;
	struct perf_counts more;
	struct sample_counts c;
	int err = 0;

	for (unsigned int i = 1; !err && i < r->opts->nr_events; i++)
		err = add_unsampled_of(r, &r->opts->events[i], PERF_FIRST_MORE + i - 1);
	if (err)
		return err;
	perf_recording_count(perf_of(r), &c, &more);
	kernel = hidden_kernel(r, ended, usage, &c, &more);
	threads = short_threads(r, whole, kernel, &c, &more);
	if (kernel)
		err = perf_recording_unsampled(perf_of(r), PERF_MAIN, kernel, SHSTK_NOTE_KERNEL);
	if (threads && !err)
		err = perf_recording_unsampled(perf_of(r), PERF_MAIN, threads, SHSTK_NOTE_THREADS);
	if (kernel || threads)
		return err;
	if (whole <= c.weight || r->opts->wall ||
	    (record_counts_time(r->opts) && !c.lost && !more.throttled && !more.stacks.unseen &&
	     !dropped(r, whole, &c, &more)))
		return 0;
	return perf_recording_unsampled(perf_of(r), PERF_MAIN, whole - c.weight,
					SHSTK_NOTE_UNSAMPLED);
}

static int complete(struct recording *r)
{
	const struct rusage usage = { 0 };

	return add_unsampled(r, false, &usage);
}

static int stop(struct recording *r, bool ended, const struct rusage *usage)
{
	int err = perf_recording_stop(perf_of(r));

	return err ? err : add_unsampled(r, ended, usage);
}

static uint64_t shared(const struct recording *r)
{
	return perf_recording_shared(perf_of(r));
}

static void count(const struct recording *r, struct sample_counts *ret)
{
	perf_recording_count(perf_of(r), ret, NULL);
}

static void describe(const struct recording *r, char *buf, size_t size)
{
	struct sample_counts c;

	perf_recording_count(perf_of(r), &c, NULL);
	samples_describe(r, &c, buf, size);
}

/*
 * Reports processes that outlive the command. Not if records were lost, as these may have told that
 * processes end.
 */
static void report_left(struct recording *r, bool ended, bool lost)
{
	struct samples_left left = { .text = "" };

	if (!ended || lost)
		return;
	perf_recording_left(perf_of(r), samples_name_left, &left);
	samples_report_left(r, &left);
}

/* Reports stacks whose outer part does not come from their copy. */
static void report_outer(struct recording *r, uint64_t nr, uint64_t samples, enum outer_source by)
{
	if (nr)
		remark(r, "%llu of %llu stacks %s", (unsigned long long)nr,
		       (unsigned long long)samples, outer_words(by));
}

/* Reports how many stacks have the functions that an interpreter ran. */
static void report_languages(struct recording *r, const struct perf_counts *more)
{
	const struct language_counts *n = &more->languages;

	samples_report_interpreted(r, n, more->refused);
	if (r->opts->perf_data && more->stacks.interpreted)
		remark(r, "%llu of %llu stacks " CONVERT_INTERPRETED,
		       (unsigned long long)more->stacks.interpreted,
		       (unsigned long long)more->stacks.samples, more->stacks.interpreter);
	if (more->contexts_refused)
		remark(r, "trace contexts that threads publish are not shown: %s",
		       more->contexts_refused);
}

#define CUTS_NAMED 3

/* The files in which most walks ended too early, and how many there are. */
struct cuts {
	struct walk_cut most[CUTS_NAMED];
	unsigned int nr;
};

static void add_cut(void *arg, const struct walk_cut *cut)
{
	struct cuts *all = arg;
	struct walk_cut it = *cut;

	all->nr++;
	for (int i = 0; i < CUTS_NAMED; i++) {
		struct walk_cut other = all->most[i];

		if (it.count <= other.count)
			continue;
		all->most[i] = it;
		it = other;
	}
}

/* Reports what became of the walks in the kernel that were asked for. */
static void report_walks(struct recording *r, const struct walker *walker, uint64_t walked,
			 uint64_t samples)
{
	struct cuts cuts = { .nr = 0 };
	char text[256] = "";
	int len = 0;

	/* What the broker lends does not tell. */
	if (walker)
		walker_cuts(walker, add_cut, &cuts);
	for (int i = 0; i < CUTS_NAMED && cuts.most[i].count; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%s %llu", i ? ", " : "",
				cuts.most[i].name, (unsigned long long)cuts.most[i].count);
	remark(r, "%llu of %llu stacks were walked in the kernel, the others copied",
	       (unsigned long long)walked, (unsigned long long)samples);
	if (cuts.nr)
		remark(r,
		       "walks ended in %u files without unwind rules at that time, of all processes that ran: %s%s",
		       cuts.nr, text, cuts.nr > CUTS_NAMED ? ", ..." : "");
}

/* Reports stacks that are not complete, or whose parts come from different sources. */
static void report_stacks(struct recording *r, const struct sample_counts *c,
			  const struct perf_counts *more)
{
	const struct perf_state *state = r->state;
	const uint64_t known = more->stacks.cut + more->stacks.too_short + more->stacks.elsewhere +
			       more->stacks.no_shadow;

	if (more->stacks.cut)
		remark(r, "%llu samples were cut (see --depth%s)",
		       (unsigned long long)more->stacks.cut,
		       r->opts->via != VIA_COPIES ? " and kernel.perf_event_max_stack" : "");
	if (more->stacks.too_short)
		remark(r,
		       "%llu of %llu stacks continue beyond the %u bytes that were copied in the end: shown as [truncated]",
		       (unsigned long long)more->stacks.too_short, (unsigned long long)c->samples,
		       more->copy);
	if (more->stacks.elsewhere)
		remark(r, "%llu of %llu stacks " UNWOUND_ELSEWHERE,
		       (unsigned long long)more->stacks.elsewhere, (unsigned long long)c->samples);
	if (more->stacks.no_shadow)
		remark(r,
		       "%llu of %llu samples are of processes without a shadow stack, from before stacks were copied: shown as [truncated]",
		       (unsigned long long)more->stacks.no_shadow, (unsigned long long)c->samples);
	if (r->opts->walk)
		report_walks(r, state->walker, more->stacks.walked, c->samples);
	report_languages(r, more);
	report_outer(r, more->stacks.read, c->samples, OUTER_READ);
	report_outer(r, more->stacks.continued, c->samples, OUTER_BEFORE);
	report_outer(r, more->stacks.chained, c->samples, OUTER_CALLCHAIN);
	if (more->stacks.goroutines)
		remark(r,
		       "%llu of %llu stacks go on with that of their goroutine, which a BPF program copied at the same moment",
		       (unsigned long long)more->stacks.goroutines, (unsigned long long)c->samples);
	if (more->stacks.folded)
		remark(r, "%llu of %llu stacks " CONVERT_FOLDED,
		       (unsigned long long)more->stacks.folded, (unsigned long long)c->samples);
	if (c->truncated > known)
		remark(r,
		       "%llu of %llu stacks end at code without unwind information: shown as [truncated]",
		       (unsigned long long)(c->truncated - known), (unsigned long long)c->samples);
	/* A few are always there: in code that was replaced, or in the middle of a change. */
	if (more->stacks.java > c->samples / 50)
		remark(r,
		       "%llu of these are Java's: they end at frames that HotSpot's tables do not have",
		       (unsigned long long)more->stacks.java);
}

/* Reports CPU time in the kernel, which is in no sample of user mode. */
static void report_kernel(struct recording *r, uint64_t ns)
{
	if (ns >= 10000000)
		caution(r,
			"%.2f s of CPU time in the kernel are shown as [kernel], without a stack: only user mode may be sampled (--via=agent samples that time, too)",
			ns / 1e9);
}

/* Returns what makes the error of report_anew() smaller, or does not have it. */
static const char *cure_of_anew(const struct record_opts *o)
{
	if (o->command && !target_reason(*o->command))
		return "--via=agent samples them from a random moment on";
	return geteuid() ? "root may sample all CPUs; or see --freq" : "see --freq";
}

/*
 * Reports that shares of what short threads do first are too small, as the first period of each thread
 * is a whole one: half a period is lost in each, on average.
 */
static void report_anew(struct recording *r, const struct sample_counts *c,
			const struct perf_counts *more)
{
	const double lost = more->stacks.ended / 2.0 * record_period(r->opts);
	const double points = 100 * lost / (c->weight + lost);

	if (!more->anew || !record_counts_time(r->opts) || r->opts->off_cpu || !(points >= 1))
		return;
	caution(r,
		"%llu threads ended, in each of which sampling began anew: shares of what they do first are up to %.0f points too small (%s)",
		(unsigned long long)more->stacks.ended, points, cure_of_anew(r->opts));
}

/* Reports that most threads are so short that it matters what they do before the shortest period ends. */
static void report_brief(struct recording *r, const struct perf_counts *more)
{
	const struct convert_counts *n = &more->stacks;

	if (n->varied >= BRIEF && n->brief > n->varied / 2)
		caution(r,
			"%llu of %llu threads were shorter than half a period: what they do first is known only roughly (%s)",
			(unsigned long long)n->brief, (unsigned long long)n->varied,
			cure_of_anew(r->opts));
}

/* Reports threads that ended before their first sample, and @ns of CPU time that have none. */
static void report_unseen(struct recording *r, bool ended, uint64_t nr, uint64_t ns)
{
	const bool both = perf_recording_user_only(perf_of(r)) && !(ended && r->pid);
	const char *cure = "root may sample it; or see --freq";

	if (nr && ns)
		caution(r,
			"%llu threads ended before their first sample: %.2f s of CPU time without a sample, theirs%s, are shown as [unsampled threads] (%s)",
			(unsigned long long)nr, ns / 1e9, both ? " and the kernel's" : "", cure);
	else if (nr)
		caution(r,
			"%llu threads ended before their first sample: their time is missing (%s)",
			(unsigned long long)nr, cure);
}

/* Reports @ns of CPU time without a sample, of which nothing tells that samples were lost. */
static void report_dropped(struct recording *r, uint64_t ns, uint64_t whole)
{
	if (ns)
		caution(r,
			"%.2f of %.2f s of CPU time have no sample: the kernel takes none while a CPU runs another BPF program or changes a BPF map (--via=copies has them), or a hypervisor delayed them",
			ns / 1e9, whole / 1e9);
}

/* Reports events of which none can be counted, because they happen where nothing is sampled. */
static void report_uncounted(struct recording *r, bool user_only)
{
	for (unsigned int i = 0; i < r->opts->nr_events; i++) {
		const struct perf_event *event = &r->opts->events[i];

		if (perf_event_in_kernel(event) && (event->no_kernel || user_only))
			caution(r,
				"%s: all of these are in the kernel, and only user mode %s sampled: none is counted",
				event->name, event->no_kernel ? "is" : "may be");
	}
}

static void report_none(const struct record_opts *o, bool user_only)
{
	char idle[200];

	targets_describe(&o->targets, idle, sizeof(idle));
	if (o->command && geteuid() && target_gains(*o->command))
		complain(
			"no samples: %s is set-user-ID, set-group-ID or has file capabilities: the kernel ends the events of ordinary users there",
			*o->command);
	else if (o->off_cpu)
		complain(
			"no samples: no thread left a CPU and came back (what sleeps all the time does not count)%s",
			idle);
	else if (!record_counts_time(o))
		complain("no samples: no %s, or too few for one%s%s", o->event->name, idle,
			 user_only ? "; only user mode may be sampled" : "");
	else
		complain("no samples: nothing ran for as long as a period (%.1f ms)%s%s",
			 1e3 / o->freq, idle, user_only ? "; only user mode may be sampled" : "");
}

static void report_lost(struct recording *r, const struct sample_counts *c, uint64_t whole)
{
	char sum[200] = "", cpus[LOSSES_ROOM];
	struct perf_losses losses;

	if (!c->lost)
		return;
	if (whole > c->weight)
		samples_sum(r->opts, c, whole, sum, sizeof(sum));
	perf_recording_lost(perf_of(r), &losses);
	losses_describe(&losses, cpus, sizeof(cpus));
	caution(r, "lost %llu records: a ring was full (see --buffer)%s%s%s%s%s",
		(unsigned long long)c->lost, *sum ? "; " : "", sum, *sum ? " are here" : "",
		*cpus ? "; " : "", cpus);
}

/*
 * Reports that shares are known only roughly, if each sample stands for many events and there are
 * few samples.
 */
static void report_estimate(struct recording *r, const struct sample_counts *c,
			    const struct perf_counts *more)
{
	const struct record_opts *o = r->opts;

	if (record_counts_time(o) || more->count == 1 || !c->samples)
		return;
	if (more->count > 1 && !o->count)
		remark(r,
		       "more than %d %s in a second: from then on one of %llu was sampled (see --count)",
		       PERF_AFFORDED, o->event->name, (unsigned long long)more->count);
	if (c->samples < FEW_SAMPLES)
		caution(r,
			"an estimate from %llu samples: shares are right to %.0f points (see %s)",
			(unsigned long long)c->samples, 100 / sqrt(c->samples),
			more->count ? "--count" : "--freq and --count");
}

/* Returns why no events could be opened for a thread. */
static const char *refused_why(struct recording *r, int error)
{
	switch (error) {
	case -EMFILE:
		return "too many open files (see ulimit -n)";
	case -E2BIG:
		return "too many threads began before their beginning could be seen";
	default:
		return perf_recording_borrowed(perf_of(r)) ? borrow_error(error) : strerror(-error);
	}
}

/* Reports that threads have no samples, as no events could be opened for them. */
static void report_refused(struct recording *r, const struct perf_counts *more)
{
	if (more->refused_threads)
		caution(r, "no events could be opened for %zu threads, which have no samples: %s",
			more->refused_threads, refused_why(r, more->refused_why));
}

static void report_gaps(struct recording *r, bool ended, const struct rusage *usage)
{
	const struct record_opts *o = r->opts;
	struct perf_state *state = r->state;
	struct module_chains chains;
	struct perf_counts more;
	struct sample_counts c;
	uint64_t whole = find_whole(r, ended, usage), kernel;

	perf_recording_count(state->perf, &c, &more);
	kernel = hidden_kernel(r, ended, usage, &c, &more);
	module_read_chains(&chains);
	report_lost(r, &c, whole);
	report_estimate(r, &c, &more);
	report_uncounted(r, perf_recording_user_only(state->perf));
	if (more.stacks.other_off)
		remark(r,
		       o->preempted ?
			       "%.2f s more off the CPU are of threads that waited: see --off-cpu" :
			       "%.2f s more off the CPU are of threads that could run, but others did: see --preempted",
		       more.stacks.other_off / 1e9);
	if (more.throttled)
		caution(r, "the kernel held samples back %llu times: a lower --freq helps",
			(unsigned long long)more.throttled);
	report_refused(r, &more);
	report_stacks(r, &c, &more);
	report_anew(r, &c, &more);
	report_brief(r, &more);
	report_dropped(r, dropped(r, whole, &c, &more), whole);
	report_unseen(r, ended, more.stacks.unseen, short_threads(r, whole, kernel, &c, &more));
	if (more.unwritten)
		caution(r, "%s is not complete: %s", o->perf_data, strerror(-more.unwritten));
	if (more.stacks.compat)
		remark(r, "%llu samples of 32-bit code followed frame pointers",
		       (unsigned long long)more.stacks.compat);
	if (!more.copy && chains.other > state->chains.other)
		remark(r,
		       "%llu of %llu callchains that the kernel took meanwhile followed frame pointers, not a shadow stack%s",
		       (unsigned long long)(chains.other - state->chains.other),
		       (unsigned long long)(chains.other - state->chains.other + chains.exact -
					    state->chains.exact),
		       o->via == VIA_RULES ? ", or unwind rules not to the outermost frame" : "");
	/*
	 * Where stacks are copied, only unread shadow stacks matter: stacks without a shadow stack
	 * are copied, and the other callchains are complete.
	 */
	if (more.copy && chains.unread > state->chains.unread)
		remark(r,
		       "%llu callchains that the kernel took meanwhile followed frame pointers: the thread's shadow stack could not be read",
		       (unsigned long long)(chains.unread - state->chains.unread));
	report_kernel(r, kernel);
	report_left(r, ended, c.lost);
	/* If records were lost, that is the reason. */
	if (!c.samples && !c.lost)
		report_none(o, perf_recording_user_only(state->perf));
}

/* Reports how much of each further event is in the profile. */
static void report_more(struct recording *r)
{
	const struct record_opts *o = r->opts;

	for (unsigned int i = 1; i < o->nr_events; i++) {
		const int which = PERF_FIRST_MORE + i - 1;
		const char *unit = o->events[i].clock ? " ns" : "";
		uint64_t weight = perf_recording_weight(perf_of(r), which), whole;

		if (perf_recording_whole(perf_of(r), which, &whole))
			complain("%s: %llu of %llu%s", o->events[i].name,
				 (unsigned long long)weight, (unsigned long long)whole, unit);
		else
			complain("%s: %llu%s", o->events[i].name, (unsigned long long)weight, unit);
	}
}

/* Says who took the samples. Walks in the kernel are part of that where they were not asked for. */
static void report(struct recording *r, bool ended, const struct rusage *usage)
{
	struct perf_counts more;
	struct sample_counts c;
	char who[128];
	int len;

	perf_recording_count(perf_of(r), &c, &more);
	report_more(r);
	len = snprintf(who, sizeof(who), "by perf events%s",
		       perf_recording_borrowed(perf_of(r)) ? BY_BROKER : "");
	if (more.stacks.walked && !r->opts->walk)
		snprintf(who + len, sizeof(who) - len,
			 " (%llu of %llu stacks were walked in the kernel)",
			 (unsigned long long)more.stacks.walked, (unsigned long long)c.samples);
	samples_report(r, &c, who, find_whole(r, ended, usage));
}

const struct backend backend_perf = {
	.begin = begin,
	.end = end,
	.start = start,
	.all_gone = all_gone,
	.take = take,
	.calm = calm,
	.complete = complete,
	.renew = renew,
	.stop = stop,
	.shared = shared,
	.count = count,
	.describe = describe,
	.report_gaps = report_gaps,
	.report = report,
};
