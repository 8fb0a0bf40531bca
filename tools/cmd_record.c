// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk record - profile a command and its children, or what runs already.
 *
 * The agent (tools/agent/) samples inside the processes, or the kernel does,
 * if its callchains are exact (record_via.h); here the rings are emptied, and at
 * the end the profile is named and written. The exit status is the command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/agent/ring.h"
#include "tools/output.h"
#include "tools/record.h"
#include "tools/record_heap.h"
#include "tools/record_perf.h"
#include "tools/record_via.h"
#include "tools/shstk.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define CPU_SUPPORTED 1
#else
#define CPU_SUPPORTED 0
#endif

#define DEFAULT_FREQ	199
#define MAX_FREQ	10000
#define MAX_LOST_LINES	20
#define MAX_PIDS	64
#define DRAIN_NS	20000000	/* how often the rings are emptied */
#define WATCH_NS	250000000	/* how often threads are counted */

struct record {
	struct output output;
	unsigned long freq;
	unsigned long depth;
	unsigned long buffer;
	double duration;
	bool wall;
	bool quiet;
	char *const *command;	/* NULL: what runs already */
	enum via via;
	pid_t pids[MAX_PIDS];
	unsigned int nr_pids;
	const char *cgroup;
	const struct perf_event *event;
	bool all;
	bool off_cpu;
	bool kernel;
	bool check;
	bool heap;
	bool heap_mmap;
	unsigned long heap_sample;
	const char *heap_show;

	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct drain *drain;
	struct perf_drain *perf;	/* set: instead of @drain */
	struct heap_drain *blocks;	/* likewise */
	struct via_chains chains;
	pid_t pid;
	uint64_t started;
	uint64_t realtime;
	unsigned int losers;
	bool interrupted;
	bool stopped;
	bool progress;
};

enum {
	OPT_WALL = 256,
	OPT_DURATION,
	OPT_DEPTH,
	OPT_BUFFER,
	OPT_VIA,
	OPT_CGROUP,
	OPT_OFF_CPU,
	OPT_KERNEL,
	OPT_CHECK,
	OPT_HEAP,
	OPT_HEAP_SAMPLE,
	OPT_HEAP_MMAP,
	OPT_HEAP_SHOW,
};

static const struct argp_option options[] = {
	{ "freq", 'F', "HZ", 0, "samples per second and thread, 1 to 10000 (199)", 0 },
	{ "wall", OPT_WALL, NULL, 0, "sample wall-clock time, also of sleeping threads, not CPU time", 0 },
	{ "duration", OPT_DURATION, "SECONDS", 0, "stop recording after this time; the command goes on", 0 },
	{ "depth", OPT_DEPTH, "N", 0, "most frames of a stack, 16 to 4096 (1024)", 0 },
	{ "buffer", OPT_BUFFER, "KIB", 0, "ring per thread, a power of two (256)", 0 },
	{ "via", OPT_VIA, "WHO", 0, "who samples: agent (in the process), perf (the kernel) or auto", 0 },
	{ "pid", 'p', "PID", 0, "record a running process, with all it starts; may be repeated", 0 },
	{ "all", 'a', NULL, 0, "record the whole system, as long as COMMAND runs if there is one", 0 },
	{ "cgroup", OPT_CGROUP, "PATH", 0, "record a cgroup, as long as COMMAND runs if there is one", 0 },
	{ "event", 'e', "NAME", 0, "sample by another event than cpu-clock, such as cycles", 0 },
	{ "off-cpu", OPT_OFF_CPU, NULL, 0, "where threads wait, and how long, instead of where they run", 0 },
	{ "kernel", OPT_KERNEL, NULL, 0, "with the kernel's functions", 0 },
	{ "check-sources", OPT_CHECK, NULL, 0, "take each stack from hardware and by software, and compare", 0 },
	{ "heap", OPT_HEAP, NULL, 0, "record allocations: what is allocated where, in use, and never freed", 0 },
	{ "heap-sample", OPT_HEAP_SAMPLE, "BYTES", 0, "with --heap: sample one allocation in BYTES (524288 as Go does), not all; implies --heap", 0 },
	{ "heap-mmap", OPT_HEAP_MMAP, NULL, 0, "with --heap: mmap() too; implies --heap", 0 },
	{ "heap-show", OPT_HEAP_SHOW, "TYPE", 0, "with --heap: what is shown where one value is: inuse_space, peak_space (the default), alloc_space, ...", 0 },
	{ "quiet", 'q', NULL, 0, "no progress line, no summary", 0 },
	{ 0 },
};

static double parse_seconds(struct argp_state *state, const char *arg)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end || !(value > 0) || value > 1e9)
		argp_failure(state, EXIT_OWN, 0,
			     "duration '%s' is not a number of seconds", arg);
	return value;
}

static void parse_via(struct argp_state *state, struct record *r,
		      const char *arg)
{
	static const char *const names[] = { "auto", "agent", "perf" };

	for (unsigned int i = 0; i < 3; i++) {
		if (!strcmp(arg, names[i])) {
			r->via = i;
			return;
		}
	}
	argp_failure(state, EXIT_OWN, 0, "'%s' is not agent, perf or auto", arg);
}

static void parse_pid(struct argp_state *state, struct record *r,
		      const char *arg)
{
	if (r->nr_pids == MAX_PIDS)
		argp_failure(state, EXIT_OWN, 0, "more than %d processes",
			     MAX_PIDS);
	r->pids[r->nr_pids++] = parse_number(state, "process ID", arg, 1,
					     INT_MAX);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record *r = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &r->output;
		return 0;
	case 'F':
		r->freq = parse_number(state, "frequency", arg, 1, MAX_FREQ);
		return 0;
	case OPT_WALL:
		r->wall = true;
		return 0;
	case OPT_DURATION:
		r->duration = parse_seconds(state, arg);
		return 0;
	case OPT_DEPTH:
		r->depth = parse_number(state, "depth", arg, REC_MIN_DEPTH,
					REC_MAX_DEPTH);
		return 0;
	case OPT_BUFFER:
		r->buffer = parse_number(state, "buffer", arg, 16, 65536);
		return 0;
	case OPT_VIA:
		parse_via(state, r, arg);
		return 0;
	case 'p':
		parse_pid(state, r, arg);
		return 0;
	case 'a':
		r->all = true;
		return 0;
	case OPT_CGROUP:
		r->cgroup = arg;
		return 0;
	case 'e':
		r->event = perf_event_find(arg);
		if (!r->event)
			argp_failure(state, EXIT_OWN, 0,
				     "unknown event '%s'; known are %s", arg,
				     perf_event_names());
		return 0;
	case OPT_OFF_CPU:
		r->off_cpu = true;
		return 0;
	case OPT_CHECK:
		r->check = true;
		r->via = VIA_AGENT;
		return 0;
	case OPT_KERNEL:
		r->kernel = true;
		return 0;
	case OPT_HEAP:
		r->heap = true;
		return 0;
	case OPT_HEAP_SAMPLE:
		r->heap_sample = parse_number(state, "heap-sample", arg, 1,
					      1ul << 40);
		r->heap = true;
		return 0;
	case OPT_HEAP_MMAP:
		r->heap = r->heap_mmap = true;
		return 0;
	case OPT_HEAP_SHOW:
		if (!heap_find_type(arg))
			argp_failure(state, EXIT_OWN, 0,
				     "heap-show: there is no '%s'", arg);
		r->heap_show = arg;
		return 0;
	case 'q':
		r->quiet = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &output_argp, 0, NULL, 0 },
	{ 0 },
};

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "[--] COMMAND [ARGUMENT...]\n-p PID\n-a|--cgroup=PATH [[--] COMMAND [ARGUMENT...]]",
	.doc = "Profile COMMAND and its children, or what runs already."
	       "\v"
	       "By default each thread is sampled by its CPU time. The kernel "
	       "checks CPU-time timers in its tick: more samples per second than "
	       "CONFIG_HZ (250 on Debian) come as fewer, heavier ones.\n\n"
	       "The exit status is that of COMMAND (128+N if signal N ended it); "
	       "125 if recording failed, 126 if COMMAND could not be executed, "
	       "127 if it was not found.",
};

static int check_buffer(const struct record *r)
{
	if (r->buffer & (r->buffer - 1)) {
		complain("buffer of %lu KiB is not a power of two", r->buffer);
		return EXIT_OWN;
	}
	if (r->buffer * 1024 < rec_min_ring(r->depth)) {
		complain("a depth of %lu frames needs a buffer of %u KiB or more",
			 r->depth, rec_min_ring(r->depth) / 1024);
		return EXIT_OWN;
	}
	return 0;
}

/* What a sample counts beside itself. */
static const char *value_type(const struct record *r)
{
	if (r->event && !r->event->clock)
		return r->event->name;
	return r->wall ? "wall" : r->off_cpu ? "off-cpu" : "cpu";
}

static bool counts_time(const struct record *r)
{
	return !r->event || r->event->clock;
}

static int make_heap_profile(struct record *r)
{
	struct heap_opts opts = {
		.sample = r->heap_sample,
		.with_mmap = r->heap_mmap,
		.per_thread = r->output.per_thread,
		.max_depth = r->depth,
	};
	int err = shstk_symbols_create(NULL, &r->symbols);

	if (!err)
		err = shstk_profile_create(r->symbols, &r->profile);
	if (!err)
		err = heap_add_types(r->profile, &opts);
	if (!err)
		err = heap_drain_create(&opts, r->symbols, r->profile,
					&r->blocks);
	if (!err)
		return 0;
	complain("cannot set up recording: %s", strerror(-err));
	return EXIT_OWN;
}

static int make_profile(struct record *r)
{
	const char *type = value_type(r);
	const char *unit = counts_time(r) ? "nanoseconds" : "count";
	struct drain_opts opts = {
		.clock = r->wall ? REC_CLOCK_WALL : REC_CLOCK_CPU,
		.period = (1000000000 + r->freq / 2) / r->freq,
		.ring_size = r->buffer * 1024,
		.max_depth = r->depth,
		.keep_times = output_wants_times(&r->output),
		.check = r->check,
	};
	struct shstk_symbols_opts names = { .kernel = r->kernel };
	int err;

	if (r->heap)
		return make_heap_profile(r);
	/* Of other events than clocks only the rate is known. */
	err = output_begin(&names, type, unit, counts_time(r) ? opts.period : 1,
			   &r->symbols, &r->profile);
	if (!err && r->via == VIA_AGENT)
		err = drain_create(&opts, r->symbols, r->profile, &r->drain);
	if (!err)
		return 0;
	complain("cannot set up recording: %s", strerror(-err));
	return EXIT_OWN;
}

static void plural(char *buf, size_t size, unsigned long long n,
		   const char *one, const char *many)
{
	snprintf(buf, size, "%llu %s", n, n == 1 ? one : many);
}

static void count(const struct record *r, struct drain_counts *ret)
{
	if (r->perf)
		perf_drain_count(r->perf, ret, NULL);
	else
		drain_count(r->drain, ret);
}

static void describe_heap(const struct record *r, char *buf, size_t size)
{
	char live[32], peak[32], processes[48];
	struct heap_counts c;

	heap_drain_count(r->blocks, &c);
	shstk_format_value(live, sizeof(live), c.live, "bytes");
	shstk_format_value(peak, sizeof(peak), c.peak, "bytes");
	plural(processes, sizeof(processes), c.processes, "process",
	       "processes");
	snprintf(buf, size, "%s in use, peak %s, %s, %.1f s", live, peak,
		 processes, (now_ns(CLOCK_MONOTONIC) - r->started) / 1e9);
}

static void describe(const struct record *r, char *buf, size_t size)
{
	char samples[48], threads[48], processes[48];
	struct drain_counts c;

	count(r, &c);
	plural(samples, sizeof(samples), c.samples, "sample", "samples");
	plural(threads, sizeof(threads), c.threads, "thread", "threads");
	plural(processes, sizeof(processes), c.processes, "process",
	       "processes");
	snprintf(buf, size, "%s, %llu lost, %s, %s, %.1f s", samples,
		 (unsigned long long)c.lost, threads, processes,
		 (now_ns(CLOCK_MONOTONIC) - r->started) / 1e9);
}

static void show_progress(struct record *r)
{
	char line[200];

	if (!r->progress)
		return;
	if (r->blocks)
		describe_heap(r, line, sizeof(line));
	else
		describe(r, line, sizeof(line));
	fprintf(stderr, "\r\033[Kshstk record: %s", line);
}

static void clear_progress(struct record *r)
{
	if (r->progress)
		fputs("\r\033[K", stderr);
	r->progress = false;
}

/* SIGINT from the terminal reached the command as well; from kill(2) not. */
static void on_interrupt(struct record *r, const siginfo_t *si)
{
	if (r->interrupted || !r->pid) {
		r->stopped = true;
		return;
	}
	r->interrupted = true;
	if (si->si_code <= 0)
		kill(r->pid, si->si_signo);
}

static void control_signals(sigset_t *set)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP,
				       SIGQUIT };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(set, signals[i]);
}

static bool has_ended(struct record *r, int *status, struct rusage *usage)
{
	if (r->pid)
		return wait4(r->pid, status, WNOHANG, usage) == r->pid;
	return r->nr_pids && !perf_drain_alive(r->perf);
}

static int take(struct record *r)
{
	/* Counters wait; ended processes do not hold their memory for long. */
	if (r->blocks)
		return heap_drain_watch(r->blocks);
	return r->perf ? perf_drain_take(r->perf) : drain_rings(r->drain);
}

/* Until the command ends or recording is to stop. Returns 0 or -ENOMEM. */
static int record_loop(struct record *r, int *status, bool *ended,
		       struct rusage *usage)
{
	uint64_t watch = 0, at;
	struct timespec pause = { .tv_nsec = DRAIN_NS };
	sigset_t set;
	siginfo_t si;
	int ret;

	control_signals(&set);
	while (!r->stopped) {
		int signo = sigtimedwait(&set, &si, &pause);

		if (signo > 0 && signo != SIGCHLD)
			on_interrupt(r, &si);
		*ended = has_ended(r, status, usage);
		if (*ended)
			break;
		ret = take(r);
		if (ret)
			return ret;
		at = now_ns(CLOCK_MONOTONIC);
		if (at - watch >= WATCH_NS) {
			if (r->drain)
				drain_watch(r->drain);
			show_progress(r);
			watch = at;
		}
		if (r->duration > 0 && at - r->started >= r->duration * 1e9)
			r->stopped = true;
	}
	return 0;
}

static void warn_lost_thread(void *arg, int pid, int tid, const char *comm,
			     uint64_t lost, uint64_t taken)
{
	struct record *r = arg;
	char text[160];

	if (++r->losers > MAX_LOST_LINES)
		return;
	snprintf(text, sizeof(text),
		 "lost %llu of %llu samples of thread %d of process %d (%s): the ring was full",
		 (unsigned long long)lost, (unsigned long long)taken, tid, pid,
		 comm);
	complain("%s", text);
	shstk_profile_comment(r->profile, text);
}

static double seconds(struct timeval tv)
{
	return tv.tv_sec + tv.tv_usec / 1e6;
}

/* What the profile does not hold, each in one line; never silent. */
static void report_gaps(struct record *r, bool ended,
			const struct rusage *usage)
{
	struct drain_counts c;
	unsigned int alive;
	double cpu;

	drain_count(r->drain, &c);
	drain_lost(r->drain, warn_lost_thread, r);
	if (r->losers > MAX_LOST_LINES)
		complain("lost samples of %u more threads",
			 r->losers - MAX_LOST_LINES);
	if (c.no_slot)
		complain("%u threads were not sampled: more than 4096 at once",
			 c.no_slot);
	if (c.no_timer)
		complain("%u threads were not sampled: no more timers (see ulimit -i)",
			 c.no_timer);
	if (c.sandboxed)
		complain("%u threads or processes were not sampled: they began in a sandbox",
			 c.sandboxed);
	if (c.damaged)
		complain("the target wrote into the rings: samples lost %u times",
			 c.damaged);
	if (c.late > c.weight / 10 && c.late > 100000000)
		complain("%.0f%% of the CPU time was sampled late, as threads ran between the kernel's ticks: it is charged to where they were next",
			 100.0 * c.late / c.weight);
	alive = drain_alive(r->drain);
	if (r->check)
		complain("hardware and software: %u stacks are the same, %u are not, %u were not taken from hardware",
			 c.same, c.differ, c.unchecked);
	if (ended && alive)
		complain("%u %s outlived the command: not recorded further",
			 alive, alive == 1 ? "process" : "processes");
	if (!c.images) {
		complain("no samples: %s did not load the agent", *r->command);
		return;
	}
	if (c.samples)
		return;
	cpu = seconds(usage->ru_utime) + seconds(usage->ru_stime);
	if (ended && !r->wall && cpu * r->freq > 100)
		complain("no samples, though %.1f s of CPU time were used: the command took all signals, or ran where the agent cannot enter",
			 cpu);
	else if (r->wall || !ended)
		complain("no samples: nothing ran for as long as a period (%.1f ms)",
			 1e3 / r->freq);
	else
		complain("no samples: the command used %.1f ms of CPU time (a period is %.1f ms)",
			 cpu * 1e3, 1e3 / r->freq);
}

static void report_perf_gaps(struct record *r)
{
	struct via_chains chains;
	struct perf_counts more;
	struct drain_counts c;

	perf_drain_count(r->perf, &c, &more);
	via_read_chains(&chains);
	if (c.lost)
		complain("lost %llu records: a ring was full (see --buffer)",
			 (unsigned long long)c.lost);
	if (more.throttled)
		complain("the kernel held samples back %llu times: a lower --freq helps",
			 (unsigned long long)more.throttled);
	if (more.cut)
		complain("%llu samples were cut (see --depth and kernel.perf_event_max_stack)",
			 (unsigned long long)more.cut);
	if (chains.other > r->chains.other)
		complain("%llu of %llu callchains that the kernel took meanwhile followed frame pointers, not a shadow stack",
			 (unsigned long long)(chains.other - r->chains.other),
			 (unsigned long long)(chains.other - r->chains.other +
					      chains.exact - r->chains.exact));
	if (!c.samples)
		complain("no samples: nothing ran for as long as a period (%.1f ms)",
			 1e3 / r->freq);
}

static void report_heap_gaps(struct record *r)
{
	struct heap_counts c;

	heap_drain_count(r->blocks, &c);
	if (!c.processes)
		complain("nothing recorded: %s did not load the agent",
			 *r->command);
	if (c.lost)
		complain("%llu allocations are missing: memory for recording ran out",
			 (unsigned long long)c.lost);
	if (c.foreign)
		complain("%u %s a malloc() of its own, whose allocations are not seen",
			 c.foreign,
			 c.foreign == 1 ? "program has" : "programs have");
	if (c.allocator)
		complain("%s%s has an allocator linked into it (%s), whose allocations are not seen",
			 c.inside,
			 c.more_inside ? ", and not it alone," : "",
			 c.allocator);
}

static void comment_command(struct record *r)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fputs("command:", out);
	for (char *const *arg = r->command; arg && *arg; arg++)
		fprintf(out, " %s", *arg);
	for (unsigned int i = 0; i < r->nr_pids; i++)
		fprintf(out, " -p %d", r->pids[i]);
	if (r->cgroup)
		fprintf(out, " --cgroup=%s", r->cgroup);
	else if (r->all)
		fputs(" -a", out);
	fclose(out);
	shstk_profile_comment(r->profile, text);
	free(text);
}

static int write_outputs(struct record *r)
{
	if (r->heap)
		r->output.type = heap_find_type(r->heap_show ? r->heap_show :
							       "peak_space");
	return output_write(&r->output, r->profile,
			    r->command ? *r->command : "shstk record") ?
		       0 : EXIT_OWN;
}

static void report_heap(struct record *r, bool ended)
{
	char bytes[32], left[32], peak[32];
	struct heap_counts c;
	char *text;

	if (r->quiet)
		return;
	heap_drain_count(r->blocks, &c);
	shstk_format_value(bytes, sizeof(bytes), c.bytes, "bytes");
	shstk_format_value(left, sizeof(left), c.left_bytes, "bytes");
	shstk_format_value(peak, sizeof(peak), c.peak, "bytes");
	complain("%s%llu allocations of %s from %llu stacks in %u %s",
		 r->heap_sample ? "about " : "", (unsigned long long)c.objects,
		 bytes, (unsigned long long)c.stacks, c.processes,
		 c.processes == 1 ? "process" : "processes");
	if (c.processes > 1)
		complain("peak %s after %.2f s, in process %d", peak,
			 c.peak_time / 1e9, c.peak_pid);
	else
		complain("peak %s after %.2f s", peak, c.peak_time / 1e9);
	complain("%llu temporary, freed before the thread's next allocation (%.1f%%)",
		 (unsigned long long)c.temporary,
		 c.objects ? 100.0 * c.temporary / c.objects : 0);
	complain("%s in %llu blocks %s", left, (unsigned long long)c.left,
		 ended ? "not freed at the end" : "in use");
	text = output_names(&r->output);
	if (text && *text)
		complain("%s", text + 1);
	free(text);
}

/* @cpu: seconds that the command and its children used, 0 if not known. */
static void report_done(struct record *r, double cpu)
{
	const char *who = r->perf ? "by perf events" : "in process";
	struct drain_counts c;
	char line[200];
	char *text;

	if (r->quiet)
		return;
	count(r, &c);
	text = output_names(&r->output);
	if (!text)
		return;
	describe(r, line, sizeof(line));
	if (!counts_time(r))
		complain("%s; %llu %s, sampled %s;%s", line,
			 (unsigned long long)c.weight, value_type(r), who, text);
	else if (cpu > 0 && !r->wall && !r->off_cpu)
		complain("%s; %.2f of %.2f s CPU time, sampled %s;%s", line,
			 c.weight / 1e9, cpu, who, text);
	else
		complain("%s; %.2f s of %s time, sampled %s;%s", line,
			 c.weight / 1e9,
			 r->wall ? "wall-clock" : r->off_cpu ? "off-CPU" : "CPU",
			 who, text);
	free(text);
}

static int finish(struct record *r, bool ended, const struct rusage *usage)
{
	int ret = r->blocks ? heap_drain_stop(r->blocks) :
		  r->perf   ? perf_drain_stop(r->perf) :
			      drain_stop(r->drain);
	int status;

	clear_progress(r);
	if (ret)
		complain("out of memory: the profile is not complete");
	comment_command(r);
	shstk_profile_set_time(r->profile, r->realtime,
			       now_ns(CLOCK_MONOTONIC) - r->started);
	if (r->blocks)
		report_heap_gaps(r);
	else if (r->perf)
		report_perf_gaps(r);
	else
		report_gaps(r, ended, usage);
	status = write_outputs(r);
	if (!status && r->blocks)
		report_heap(r, ended);
	else if (!status)
		report_done(r, ended ? seconds(usage->ru_utime) +
				       seconds(usage->ru_stime) : 0);
	return status ? status : ret ? EXIT_OWN : 0;
}

static int command_status(int status)
{
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* The profile is written; the command goes on. */
static int wait_command(struct record *r, int *status)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	while (waitpid(r->pid, status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* The command as the agent's target. */
static int hold_for_agent(struct record *r, struct target *target)
{
	const char *name = r->heap ? "libshstk-heap.so" : "libshstk-agent.so";
	char agent[4096];

	if (find_object(name, agent, sizeof(agent))) {
		complain("%s is missing: looked for it beside the command and in %s",
			 name, SHSTK_OBJDIR);
		return EXIT_OWN;
	}
	if (strpbrk(agent, " :")) {
		complain("%s cannot be preloaded: its path has a space or colon",
			 agent);
		return EXIT_OWN;
	}
	return target_hold(r->command, agent,
			   r->heap ? heap_drain_env(r->blocks) :
				     drain_env(r->drain), target);
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

/* On time is sampled by an event, off time by switches, wall time by both. */
static struct perf_opts perf_options(const struct record *r)
{
	unsigned int max = kernel_max_stack();

	return (struct perf_opts){
		.main = r->off_cpu ? NULL :
			r->event   ? r->event :
				     perf_event_find("cpu-clock"),
		.freq = r->freq,
		.off = r->off_cpu || r->wall,
		.kernel = r->kernel,
		.max_stack = r->depth < max ? r->depth : max,
		.ring_size = r->buffer * 1024,
		.cgroup = -1,
		.pids = r->pids,
		.nr_pids = r->nr_pids + (r->command && !r->all && !r->cgroup),
	};
}

static int find_cgroup(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char below[PATH_MAX];

	if (fd < 0 && snprintf(below, sizeof(below), "/sys/fs/cgroup/%s",
			       path) < (int)sizeof(below))
		fd = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		complain("cgroup %s: %s", path, strerror(errno));
	return fd;
}

/* @target: the command, which waits; or NULL. */
static int start_perf(struct record *r, const struct target *target)
{
	struct perf_record_opts opts = {
		.rings = perf_options(r),
		.keep_times = output_wants_times(&r->output),
	};
	char err[256];
	int ret;

	if (target && opts.rings.nr_pids) {
		opts.rings.pids = &target->pid;
		opts.rings.on_exec = true;
	}
	if (r->cgroup) {
		opts.rings.cgroup = find_cgroup(r->cgroup);
		if (opts.rings.cgroup < 0)
			return EXIT_OWN;
	}
	via_read_chains(&r->chains);
	ret = perf_drain_create(&opts, r->symbols, r->profile, &r->perf, err,
				sizeof(err));
	if (opts.rings.cgroup >= 0)
		close(opts.rings.cgroup);
	if (ret) {
		complain("%s", err);
		return EXIT_OWN;
	}
	if (r->quiet)
		return 0;
	complain("sampling by perf events, %s%s",
		 via_module_loaded() ?
			 "callchains from shadow stacks (shstk_perf)" :
			 "callchains by frame pointers (shstk_perf is not loaded)",
		 perf_drain_user_only(r->perf) ?
			 "; user mode only (kernel.perf_event_paranoid)" : "");
	return 0;
}

static int start(struct record *r)
{
	struct target target;
	int ret;

	if (!r->command)
		return start_perf(r, NULL);
	if (r->via == VIA_AGENT)
		ret = hold_for_agent(r, &target);
	else
		ret = target_hold(r->command, NULL, NULL, &target);
	if (ret)
		return ret;
	if (r->via == VIA_PERF) {
		ret = start_perf(r, &target);
		if (ret) {
			target_drop(&target);
			return ret;
		}
	}
	r->pid = target.pid;
	return target_go(r->command, &target);
}

static int run(struct record *r)
{
	struct rusage usage = { 0 };
	bool ended = false;
	int status = 0, own;
	sigset_t set;

	control_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->started = now_ns(CLOCK_MONOTONIC);
	r->realtime = now_ns(CLOCK_REALTIME);
	own = start(r);
	if (own)
		return own;
	r->progress = !r->quiet && isatty(STDERR_FILENO);
	if (record_loop(r, &status, &ended, &usage))
		complain("out of memory: recording stops here");
	own = finish(r, ended, &usage);
	if (!ended && r->pid) {
		if (r->interrupted)
			return own ? own : EXIT_SIGNAL + SIGINT;
		wait_command(r, &status);
	}
	return own ? own : command_status(status);
}

/* Exact callchains, or why not. NULL: they are. */
static const char *inexact(const struct record *r)
{
	static char text[160];

	if (!via_module_loaded())
		return "the module shstk_perf is not loaded";
	for (unsigned int i = 0; i < r->nr_pids; i++) {
		int has = via_has_shadow_stack(r->pids[i]);

		if (has > 0)
			continue;
		snprintf(text, sizeof(text), "process %d %s", r->pids[i],
			 has ? strerror(-has) : "runs without a shadow stack");
		return text;
	}
	if (r->command && !r->all && !r->cgroup &&
	    !via_will_have_shadow_stack(r->command))
		return "the command is not started with shadow stacks (see shstk run)";
	return NULL;
}

/* What only the kernel can do; NULL: nothing. */
static const char *needs_kernel(const struct record *r)
{
	return r->nr_pids ? "--pid" : r->all ? "--all" :
	       r->cgroup ? "--cgroup" : r->event ? "--event" :
	       r->off_cpu ? "--off-cpu" : r->kernel ? "--kernel" : NULL;
}

static int check_options(struct record *r)
{
	int targets = !!r->nr_pids + r->all + !!r->cgroup;

	if (!r->command && !targets)
		complain("no command given; see shstk record --help");
	else if (targets > 1 || (r->command && r->nr_pids))
		complain("more than one of --pid, --all, --cgroup and a command to record");
	else if (r->off_cpu && (r->event || r->wall))
		complain("--off-cpu does not go with --event or --wall");
	else if (r->wall && !counts_time(r))
		complain("--wall does not go with an event that is no clock");
	else if (r->heap && (r->via == VIA_PERF || r->wall || needs_kernel(r)))
		complain("%s does not go with --heap",
			 needs_kernel(r) ? needs_kernel(r) :
			 r->wall	 ? "--wall" : "--via=perf");
	else if (r->heap_show && !r->heap)
		complain("--heap-show goes with --heap only");
	else if (r->via == VIA_AGENT && needs_kernel(r))
		complain("%s does not go with --via=agent", needs_kernel(r));
	else
		return 0;
	return EXIT_OWN;
}

/* Decides who samples. */
static int choose(struct record *r)
{
	const char *reason = inexact(r), *option = needs_kernel(r);
	struct perf_opts opts = perf_options(r);
	bool user_only;
	char err[256];

	if (r->heap)
		r->via = VIA_AGENT;
	if (r->via != VIA_AUTO)
		return 0;
	if (option && reason) {
		complain("%s takes the kernel's callchains, which would not be exact: %s; --via=perf takes them all the same",
			 option, reason);
		return EXIT_OWN;
	}
	r->via = VIA_PERF;
	if (option)
		return 0;
	if (!reason && perf_probe(&opts, &user_only, err, sizeof(err)))
		reason = err;
	if (!reason && user_only)
		reason = "kernel.perf_event_paranoid hides the time in the kernel";
	if (!reason)
		return 0;
	r->via = VIA_AGENT;
	if (!r->quiet && via_module_loaded())
		complain("sampling in process: %s", reason);
	return 0;
}

static int check_target(const struct record *r)
{
	if (!r->command)
		return 0;
	return r->via == VIA_AGENT ? target_check(*r->command) :
				     target_find(*r->command);
}

int cmd_record(int argc, char **argv)
{
	struct record r = {
		.freq = DEFAULT_FREQ,
		.depth = 1024,
		.buffer = 256,
	};
	int first = command_parse(&argp, argc, argv, EXIT_OWN, &r);
	int status;

	if (!CPU_SUPPORTED) {
		complain("this CPU is not supported: only x86-64 and arm64 are");
		return EXIT_OWN;
	}
	r.command = first < argc ? argv + first : NULL;
	status = check_options(&r);
	if (!status)
		status = check_buffer(&r);
	if (!status)
		status = output_check(&r.output) ? 0 : EXIT_OWN;
	if (!status)
		status = choose(&r);
	if (!status)
		status = check_target(&r);
	if (!status)
		status = make_profile(&r);
	if (!status)
		status = run(&r);
	drain_destroy(r.drain);
	perf_drain_destroy(r.perf);
	heap_drain_destroy(r.blocks);
	shstk_profile_destroy(r.profile);
	shstk_symbols_destroy(r.symbols);
	return status;
}
