// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * options.c - the options of `shstk record` and `shstk top`: their tables, how they are parsed, and
 * which of them cannot be combined.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/convert/ahead.h"
#include "tools/inject/agent/ring.h"
#include "tools/record/heap/heap.h"
#include "tools/record/heap/heap_values.h"
#include "tools/record/options/config.h"
#include "tools/record/options/options.h"
#include "tools/shstk.h"

#define DEFAULT_FREQ 199
#define MAX_FREQ 10000
#define DEFAULT_DELAY 2
#define MIN_DELAY 0.05
#define HEAP_DURATION 60 /* seconds with --heap -p: the processes run slower meanwhile */

enum {
	OPT_WALL = 256,
	OPT_DURATION,
	OPT_EVERY,
	OPT_DEPTH,
	OPT_THREADS,
	OPT_BUFFER,
	OPT_VIA,
	OPT_CGROUP,
	OPT_OFF_CPU,
	OPT_PREEMPTED,
	OPT_WAKERS,
	OPT_KERNEL,
	OPT_PERF_DATA,
	OPT_HEAP,
	OPT_HEAP_SAMPLE,
	OPT_HEAP_MMAP,
	OPT_HEAP_PYTHON,
	OPT_HEAP_SHOW,
	OPT_KEEP,
	OPT_CALL_GRAPH,
	OPT_PUSH,
	OPT_CONFIG,
	OPT_DRY_RUN,
	OPT_METRICS,
};

/*
 * The options, each once: BOTH of `shstk record` and `shstk top`, with the text of each, RECORD of
 * the first alone, TOP of the second alone. The texts are what --help and completions show. The
 * table is not formatted because texts would be broken anywhere.
 */
/* clang-format off */
#define OPTIONS(BOTH, RECORD, TOP)                                                                 \
	BOTH("freq", 'F', "HZ",                                                                    \
	     "samples per second and thread, 1 to 10000 (199)",                                    \
	     "samples per second and thread, 1 to 10000 (199)")                                    \
	TOP("delay", 'd', "TIME",                                                                  \
	    "time from one table to the next, in seconds or with a unit (2s)")                     \
	RECORD("wall", OPT_WALL, NULL,                                                             \
	       "sample wall-clock time, also of sleeping threads, not CPU time")                   \
	BOTH("duration", OPT_DURATION, "TIME",                                                     \
	     "stop recording after this time, in seconds or with a unit (500ms, 1.5s, 10m, 2h, 1d);" \
	     " the command goes on",                                                               \
	     "end after this time")                                                                \
	RECORD("every", OPT_EVERY, "TIME",                                                         \
	       "write a profile each time that much has passed, and begin the next one;"           \
	       " with --heap: one of all so far")                                                  \
	RECORD("keep", OPT_KEEP, "N",                                                              \
	       "with --every: keep the last N profiles, and remove those before")                  \
	RECORD("push", OPT_PUSH, "URL",                                                            \
	       "send each profile to a server, as shstk push does, while recording goes on")       \
	RECORD("depth", OPT_DEPTH, "N", "most frames of a stack, 16 to 4096 (1024)")               \
	RECORD("threads", OPT_THREADS, "N",                                                        \
	       "how many threads unwind copies of stacks and make the profile, 1 to 33 (1)")       \
	RECORD("buffer", OPT_BUFFER, "KIB", "ring per thread, or per CPU, a power of two")         \
	BOTH("via", OPT_VIA, "WHO",                                                                \
	     "who samples: agent (in the process), perf (the kernel's callchains), copies (of"     \
	     " stacks, by the kernel), rules (callchains by unwind rules in the kernel), bpf (the" \
	     " same without a module, copies of other stacks) or auto",                            \
	     "who samples, as for shstk record")                                                   \
	BOTH("all", 'a', NULL,                                                                     \
	     "record the whole system, as long as COMMAND runs if there is one",                   \
	     "show the whole system")                                                              \
	BOTH("cgroup", OPT_CGROUP, "PATH",                                                         \
	     "record a cgroup, as long as COMMAND runs if there is one",                           \
	     "show a cgroup")                                                                      \
	BOTH("event", 'e', "EVENT",                                                                \
	     "sample by another event than cpu-clock: cycles, faults, rHEX, PMU/TERM=VALUE/,"      \
	     " sched:sched_switch, a name of libpfm4; :u or :k behind it; up to 8, each is a value" \
	     " of the profile",                                                                    \
	     "sample by another event than cpu-clock, such as cycles")                             \
	BOTH("count", 'c', "N",                                                                    \
	     "with --event: a sample at each N-th event, whatever the rate",                       \
	     "with --event: a sample at each N-th event, whatever the rate")                       \
	BOTH("off-cpu", OPT_OFF_CPU, NULL,                                                         \
	     "where threads wait, and how long, instead of where they run",                        \
	     "where threads wait, and how long, instead of where they run")                        \
	BOTH("preempted", OPT_PREEMPTED, NULL,                                                     \
	     "where threads that could run are put off their CPU, and how long; implies --off-cpu", \
	     "where threads that could run are put off their CPU, and how long; implies --off-cpu") \
	RECORD("wakers", OPT_WAKERS, NULL,                                                         \
	       "with --off-cpu: by whom threads were woken, as a label, and waiting up to that"    \
	       " moment (root)")                                                                   \
	BOTH("kernel", OPT_KERNEL, NULL,                                                           \
	     "with the kernel's functions",                                                        \
	     "with the kernel's functions")                                                        \
	RECORD("perf-data", OPT_PERF_DATA, "FILE",                                                 \
	       "write what the kernel recorded to FILE as well, for shstk unwind")                 \
	RECORD("heap", OPT_HEAP, NULL,                                                             \
	       "record allocations: what is allocated where, in use, and never freed")             \
	RECORD("heap-sample", OPT_HEAP_SAMPLE, "BYTES",                                            \
	       "with --heap: sample one allocation in BYTES (524288 as Go does), not all; implies" \
	       " --heap")                                                                          \
	RECORD("heap-mmap", OPT_HEAP_MMAP, NULL, "with --heap: mmap() too; implies --heap")        \
	RECORD("heap-python", OPT_HEAP_PYTHON, NULL,                                               \
	       "with --heap: Python's own objects too, each of them; implies --heap")              \
	RECORD("heap-show", OPT_HEAP_SHOW, "TYPE",                                                 \
	       "with --heap: what is shown where one value is: inuse_space, peak_space (the"       \
	       " default), alloc_space, ...; with --every also growth_space; implies --heap")      \
	RECORD("metrics", OPT_METRICS, "FILE",                                                     \
	       "keep figures of the recording in FILE, a page for Prometheus")                     \
	RECORD("config", OPT_CONFIG, "FILE",                                                       \
	       "take options from FILE, too, each on a line; SIGHUP has them read again")          \
	RECORD("dry-run", OPT_DRY_RUN, NULL, "check the options, and record nothing")              \
	BOTH("quiet", 'q', NULL, "no progress line, no summary", "no summary")

#define RECORD_TEXT(name, key, argument, record, top) { name, key, argument, 0, record, 0 },
#define TOP_TEXT(name, key, argument, record, top) { name, key, argument, 0, top, 0 },
#define TEXT(name, key, argument, text) { name, key, argument, 0, text, 0 },
#define NONE(name, key, argument, text)

static const struct argp_option options[] = {
	OPTIONS(RECORD_TEXT, TEXT, NONE)
	READ_LIMIT_OPTION,
	{ "call-graph", OPT_CALL_GRAPH, "MODE", OPTION_HIDDEN, NULL, 0 },
	{ NULL, 'g', NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

static const struct argp_option top_options[] = {
	OPTIONS(TOP_TEXT, NONE, TEXT)
	READ_LIMIT_OPTION,
	{ 0 },
};
/* clang-format on */

/* Parses a number with a unit; without a unit it is in seconds. Returns seconds. */
static double parse_time(struct argp_state *state, const char *arg)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {
		{ "", 1 }, { "ms", 1e-3 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 },
	};
	char *end;
	double value = strtod(arg, &end);

	for (size_t i = 0; end != arg && i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].name) && value > 0 && value * units[i].seconds <= 1e9)
			return value * units[i].seconds;
	argp_failure(
		state, EXIT_USAGE, 0,
		"duration '%s' is not a time: a number above 0 with ms, s, m, h or d behind it, or of seconds",
		arg);
	return 0;
}

static void parse_via(struct argp_state *state, struct record_opts *o, const char *arg)
{
	static const char *const names[] = { "auto", "agent", "perf", "copies", "rules" };

	/* With "bpf", a BPF program walks stacks, and those it cannot walk are copied. */
	o->walk = !strcmp(arg, "bpf");
	if (o->walk) {
		o->via = VIA_COPIES;
		return;
	}
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(arg, names[i])) {
			o->via = i;
			return;
		}
	}
	argp_failure(state, EXIT_USAGE, 0, "'%s' is not agent, perf, copies, rules, bpf or auto",
		     arg);
}

static void add_event(struct argp_state *state, struct record_opts *o, const char *name)
{
	struct reason why;

	if (o->nr_events == 1 + PERF_MORE)
		argp_failure(state, EXIT_USAGE, 0, "more than %d events", 1 + PERF_MORE);
	if (perf_event_parse(name, &o->events[o->nr_events], &why))
		argp_failure(state, EXIT_USAGE, 0, "%s", why.text);
	for (unsigned int i = 0; i < o->nr_events; i++)
		if (!strcmp(o->events[i].name, name))
			argp_failure(state, EXIT_USAGE, 0, "event '%s' is given twice", name);
	o->event = &o->events[0];
	o->nr_events++;
}

/*
 * Returns the length of the first event's name in a list. It ends at a comma that is not between
 * slashes.
 */
static size_t event_length(const char *list)
{
	bool inside = false;
	size_t n = 0;

	for (; list[n] && (inside || list[n] != ','); n++)
		inside ^= list[n] == '/';
	return n;
}

/*
 * Adds all events of a list. Their names are never freed, as they are needed until the command
 * ends.
 */
static void parse_events(struct argp_state *state, struct record_opts *o, const char *arg)
{
	size_t n;
	char *name;

	do {
		n = event_length(arg);
		name = strndup(arg, n);
		if (!name)
			argp_failure(state, EXIT_OWN, ENOMEM, "event");
		add_event(state, o, name);
		arg += n;
	} while (*arg++);
}

static void parse_heap_show(struct argp_state *state, struct record_opts *o, const char *arg)
{
	o->output.type = heap_find_type(arg);
	if (!o->output.type)
		argp_failure(state, EXIT_USAGE, 0, "heap-show: there is no '%s', known are %s", arg,
			     heap_type_names());
}

/* Returns the member that an option without an argument sets; NULL for other options. */
static bool *find_switch(struct record_opts *o, int key)
{
	switch (key) {
	case OPT_WALL:
		return &o->wall;
	case 'a':
		return &o->all;
	case OPT_OFF_CPU:
		return &o->off_cpu;
	case OPT_PREEMPTED:
		return &o->preempted;
	case OPT_WAKERS:
		return &o->wakers;
	case OPT_KERNEL:
		return &o->kernel;
	case OPT_HEAP:
		return &o->heap;
	case OPT_HEAP_MMAP:
		return &o->heap_mmap;
	case OPT_HEAP_PYTHON:
		return &o->heap_python;
	case OPT_DRY_RUN:
		return &o->dry_run;
	case 'q':
		return &o->quiet;
	default:
		return NULL;
	}
}

/* Sets what an option implies beside its own meaning. */
static void parse_implied(struct record_opts *o, int key)
{
	o->off_cpu |= key == OPT_PREEMPTED || key == OPT_WAKERS;
	if (key == OPT_HEAP_SAMPLE || key == OPT_HEAP_MMAP || key == OPT_HEAP_PYTHON ||
	    key == OPT_HEAP_SHOW)
		o->heap = true;
}

static error_t parse_argument(int key, char *arg, struct argp_state *state, struct record_opts *o)
{
	switch (key) {
	case 'F':
		o->freq = parse_number(state, "frequency", arg, 1, MAX_FREQ);
		return 0;
	case OPT_DURATION:
		o->duration = parse_time(state, arg);
		return 0;
	case 'd':
		o->delay = parse_time(state, arg);
		if (o->delay < MIN_DELAY)
			argp_failure(state, EXIT_USAGE, 0, "delay '%s' is less than 50ms", arg);
		return 0;
	case OPT_EVERY:
		o->every = parse_time(state, arg);
		if (o->every < MIN_DELAY)
			argp_failure(state, EXIT_USAGE, 0, "every '%s' is less than 50ms", arg);
		return 0;
	case OPT_KEEP:
		o->keep = parse_number(state, "keep", arg, 1, 100000);
		return 0;
	case 'g':
	case OPT_CALL_GRAPH:
		o->call_graph = true;
		return 0;
	case OPT_DEPTH:
		o->depth = parse_number(state, "depth", arg, REC_MIN_DEPTH, REC_MAX_DEPTH);
		o->fold = false;
		return 0;
	case OPT_THREADS:
		o->threads = parse_number(state, "threads", arg, 1, 1 + AHEAD_MAX_THREADS);
		return 0;
	case OPT_BUFFER:
		o->buffer = parse_number(state, "buffer", arg, 16, 65536);
		return 0;
	case OPT_VIA:
		parse_via(state, o, arg);
		return 0;
	case OPT_CGROUP:
		o->cgroup = arg;
		return 0;
	case 'e':
		parse_events(state, o, arg);
		return 0;
	case 'c':
		o->count = parse_number(state, "count", arg, 1, 1ul << 40);
		return 0;
	case OPT_PERF_DATA:
		o->perf_data = arg;
		return 0;
	case OPT_PUSH:
		o->push.to = arg;
		return 0;
	case OPT_METRICS:
		o->metrics = arg;
		return 0;
	case OPT_CONFIG:
		o->config = arg;
		config_read(state, &record_argp, o, arg);
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &o->read_limit);
		return 0;
	case OPT_HEAP_SAMPLE:
		o->heap_sample = parse_number(state, "heap-sample", arg, 1, 1ul << 40);
		return 0;
	case OPT_HEAP_SHOW:
		parse_heap_show(state, o, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record_opts *o = state->input;
	bool *on;

	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = &o->targets;
		if (!o->live) {
			state->child_inputs[1] = &o->output;
			state->child_inputs[2] = state->child_inputs[3] = &o->push;
		}
		return 0;
	}
	parse_implied(o, key);
	on = find_switch(o, key);
	if (!on)
		return parse_argument(key, arg, state, o);
	*on = true;
	return 0;
}

static const struct argp_child children[] = {
	{ &targets_argp, 0, NULL, 0 },
	{ &output_argp, 0, NULL, 0 },
	{ &push_way_argp, 0, NULL, 0 },
	{ &push_spool_argp, 0, NULL, 0 },
	{ 0 },
};

static const struct argp_child top_children[] = {
	{ &targets_argp, 0, NULL, 0 },
	{ 0 },
};

const struct argp record_argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc =
		"[--] COMMAND [ARGUMENT...]\n-p PID|--name=NAME|-t TID\n-a|--cgroup=PATH [[--] COMMAND [ARGUMENT...]]",
	.doc = "Profile COMMAND and its children, or what runs already."
	       "\v"
	       "By default each thread is sampled by its CPU time. Where perf events are "
	       "not permitted (kernel.perf_event_paranoid), the kernel's tick limits the "
	       "rate: more samples per second than CONFIG_HZ (250 on Debian) come as fewer, "
	       "heavier ones, which is said.\n\n"
	       "The exit status is that of COMMAND (128+N if signal N ended it); "
	       "2 if options are wrong, 125 if recording failed, 126 if COMMAND "
	       "could not be executed, 127 if it was not found.",
};

const struct argp top_argp = {
	.options = top_options,
	.parser = parse,
	.children = top_children,
	.args_doc =
		"[--] COMMAND [ARGUMENT...]\n-p PID|--name=NAME|-t TID\n-a|--cgroup=PATH [[--] COMMAND [ARGUMENT...]]",
	.doc = "Show the hottest functions of COMMAND, or of what runs already."
	       "\v"
	       "On a terminal the table is drawn anew after each interval, until "
	       "q is pressed; elsewhere one table is printed after another.\n\n"
	       "The exit status is as that of shstk record.",
};

bool record_counts_time(const struct record_opts *o)
{
	return !o->event || o->event->clock;
}

static int check_buffer(const struct record_opts *o)
{
	unsigned long buffer = o->buffer ? o->buffer : RECORD_BUFFER;

	if (buffer & (buffer - 1)) {
		complain("buffer of %lu KiB is not a power of two", buffer);
		return EXIT_USAGE;
	}
	if (o->via == VIA_AGENT && buffer * 1024 < rec_min_ring(o->depth)) {
		complain("a depth of %lu frames needs a buffer of %u KiB or more", o->depth,
			 rec_min_ring(o->depth) / 1024);
		return EXIT_USAGE;
	}
	return 0;
}

/* Returns the first given option that only the kernel can serve, or NULL. */
const char *record_needs_kernel(const struct record_opts *o)
{
	return targets_any(&o->targets) ? targets_option(&o->targets) :
	       o->perf_data		? "--perf-data" :
	       o->every > 0 && !o->heap ? "--every" :
	       o->all			? "--all" :
	       o->cgroup		? "--cgroup" :
	       o->event			? "--event" :
	       o->off_cpu		? "--off-cpu" :
	       o->kernel		? "--kernel" :
					  NULL;
}

/* Returns a given option that only recordings of time or events can have, or NULL. */
static const char *against_heap(const struct record_opts *o)
{
	struct record_opts others = *o;

	others.targets = (struct targets){ .nr_tids = o->targets.nr_tids };
	return record_needs_kernel(&others);
}

/* Returns whether a path is a symbolic link to a regular file or to nothing. */
static bool is_link_to_file(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode) && (stat(path, &st) || S_ISREG(st.st_mode));
}

/* Checks a file of --every. Returns an exit status. */
static int check_part(const char *path)
{
	if (!strcmp(path, "-"))
		complain("--every needs files: it does not go with standard output");
	else if (is_link_to_file(path))
		complain(
			"--every writes several files, and '%s' is a symbolic link to one: give a name in the folder that they are to be in",
			path);
	else
		return EXIT_OK;
	return EXIT_USAGE;
}

static int check_targets(const struct record_opts *o)
{
	const struct targets *t = &o->targets;
	int targets = targets_any(t) + o->all + !!o->cgroup;

	if (!o->command && !targets)
		complain("nothing to %s: give a command, -p PID or -a; see shstk %s --help",
			 o->live ? "show" : "record", o->live ? "top" : "record");
	else if (targets > 1 || (o->command && targets_any(t)))
		complain("more than one of %s, --all, --cgroup and a command to record",
			 targets_any(t) ? targets_option(t) : "--pid");
	else if (t->nr_tids && (t->nr_pids || t->nr_names))
		complain(
			"--tid does not go with --pid and --name: record them one after the other");
	else if (t->alone && !t->nr_pids && !t->nr_names)
		complain("--no-children goes with --pid and --name only");
	else if (o->perf_data && o->wall)
		complain("--perf-data does not go with --wall: such a file holds one event");
	else if (o->keep && !o->every)
		complain("--keep needs --every: it limits how many of its profiles are kept");
	else if (o->push.given && !o->push.to)
		complain("options that say how profiles are sent need --push=URL");
	else if (o->push.key && !o->push.cert)
		complain("--key needs --cert");
	else if (o->nr_events > 1 && (o->perf_data || o->wall || o->live))
		complain("more than one --event does not go with %s",
			 o->perf_data ? "--perf-data: such a file holds one event" :
			 o->wall      ? "--wall" :
					"shstk top, which shows one value");
	else if (o->off_cpu && (o->event || o->wall))
		complain("--off-cpu does not go with --event or --wall");
	else if (o->count && record_counts_time(o))
		complain("--count needs an --event that is not a clock; for clocks see --freq");
	else if (o->wall && !record_counts_time(o))
		complain("--wall does not go with an event that is not a clock");
	else if (o->heap && targets_any(t) && o->heap_mmap)
		complain(
			"--heap-mmap does not go with --pid: only a program that is started shows its mmap()");
	else if (o->heap && targets_any(t) && o->heap_python)
		complain(
			"--heap-python does not go with --pid: probes do not see most of Python's objects");
	else if (o->heap && heap_type_is_growth(o->output.type) && !o->every)
		complain("--heap-show=%s needs --every: it shows what grew between two profiles",
			 heap_type_name(o->output.type));
	else if (o->heap && (o->via > VIA_AGENT || o->wall || against_heap(o)))
		complain("%s does not go with --heap", against_heap(o) ? against_heap(o) :
						       o->wall	       ? "--wall" :
									 "--via");
	else if (o->walk && o->perf_data)
		complain(
			"--perf-data does not go with --via=bpf: the file needs copies of all stacks");
	else if (o->via == VIA_AGENT && record_needs_kernel(o))
		complain("%s does not go with --via=agent", record_needs_kernel(o));
	else
		return 0;
	return EXIT_USAGE;
}

void record_options_init(struct record_opts *o)
{
	*o = (struct record_opts){
		.freq = DEFAULT_FREQ,
		.depth = 1024,
		.threads = 1,
		.fold = true,
		.delay = DEFAULT_DELAY,
	};
	push_init(&o->push);
}

int record_options_check(struct record_opts *o)
{
	int status = check_targets(o);

	if (!status)
		status = check_buffer(o);
	o->output.sent = o->push.to != NULL;
	if (o->push.to) {
		push_choose_protocol(&o->push);
		o->push.read_limit = o->read_limit;
	}
	o->output.streams = true;
	if (!status && !o->live)
		status = output_check(&o->output, EXIT_OWN);
	for (unsigned int i = 0; !status && o->every > 0 && i < o->output.nr; i++)
		status = check_part(o->output.paths[i]);
	if (o->heap && targets_any(&o->targets) && !o->duration)
		o->duration = HEAP_DURATION;
	if (o->heap && !o->output.type)
		o->output.type = heap_find_type(o->every > 0 ? "inuse_space" : "peak_space");
	o->push.type = o->output.type;
	return status;
}
