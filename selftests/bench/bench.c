/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench.c - measures libshstk and its peers side by side; see Documentation/bench.rst for what is
 * measured and how far it can be trusted.
 *
 *	bench [-q] [-t SECONDS] [-o CSV] [-k NAME,...]
 *	bench --cold SOURCE		prints the first captures of this process, in ns
 *	bench --instr DEPTH		runs under callgrind: see instr.c
 *	bench --old LIB --new LIB ...	measures two builds of the library too: see versus
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base.h"
#include "cell.h"
#include "instr.h"
#include "shstk_marker.h"
#include "versus.h"

const unsigned int depths[NR_DEPTHS] = { 8, 32, 128, 512 };

struct cell cells[NR_SCENARIOS][NR_CHAINS][NR_DEPTHS][MAX_SOURCES];

#define MAX_REPS 151
#define STATUS_MISSED 3 /* exit status if a bar of Documentation/bench.rst is not met */

static struct {
	double seconds;
	const char *csv;
	const char *only;
	bool quick;
	const char *cold;
	const char *old, *new;
	unsigned int instr_depth;
	int status;
} opt = {
	.seconds = 90,
};

static double ns_per_tick = 1;
static uint64_t cell_budget; /* in ns, for each cell and round */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double run_batch(struct job *j, unsigned int batch)
{
	uint64_t start = now_ns(), elapsed;

	j->ticks = 0;
	job_repeat(j, batch);
	elapsed = now_ns() - start;
	if (j->scenario == FIRST)
		return (double)j->ticks * ns_per_tick / batch;
	return (double)elapsed / batch / job_captures(j);
}

/*
 * Warms up for as long as the measurement will take. Returns the time of one run in ns. In the
 * scenario FIRST it goes through all functions of the chain, if that is not too slow, so that all
 * code was seen before.
 */
static uint64_t warm_up(struct job *j)
{
	/*
	 * The first run may have to look at the place, as floor-loads does; so there are at least
	 * two.
	 */
	unsigned int runs = j->scenario == FIRST ? j->set->count : 2;
	uint64_t start, elapsed, first = now_ns();

	do {
		start = now_ns();
		job_once(j);
		elapsed = now_ns();
		runs -= runs > 0;
	} while (elapsed - first < cell_budget || (runs && elapsed - first < 20 * cell_budget));
	return elapsed - start;
}

/* Returns the median of as many batches as the budget allows, in ns for one capture. */
static double run_median(struct job *j, uint64_t once)
{
	double reps[MAX_REPS];
	uint64_t start;
	unsigned int batch = 1, n = 0;

	/* A batch takes at least 10 us, so that the time to read the clock is negligible. */
	if (once < 10000)
		batch = (unsigned int)(10000 / (once + 1)) + 1;
	/*
	 * In this scenario the memo is used and left out in turns, so a batch must have enough
	 * captures.
	 */
	if (j->scenario == FIRST && batch < 32 && once < 20000)
		batch = 32;
	j->frames = 0;
	j->captures = 0;
	start = now_ns();
	do {
		reps[n++] = run_batch(j, batch);
	} while (n < MAX_REPS && now_ns() - start < cell_budget);
	qsort(reps, n, sizeof(reps[0]), by_value);
	return reps[n / 2];
}

struct round {
	struct job job;
	struct cell *cell;
};

static void run_cell(struct job *j)
{
	struct round *r = (struct round *)j;
	uint64_t once = warm_up(j), start = now_ns();

	r->cell->rounds[r->cell->nr++] = run_median(j, once);
	r->cell->slow = now_ns() - start > 8 * cell_budget;
	if (j->captures)
		r->cell->frames = (double)j->frames / (double)j->captures;
}

static bool is_name(const char *name, const char *at, size_t len)
{
	return strlen(name) == len && !strncmp(name, at, len);
}

static bool names(const char *name)
{
	const char *at;

	for (at = opt.only; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (is_name(name, at, strcspn(at, ",")))
			return true;
	}
	return false;
}

/*
 * Returns true if -k does not exclude this cell. If -k names any scenarios, only these are wanted;
 * the same holds for chains and for sources.
 */
static bool is_wanted(enum scenario scenario, unsigned int chain, unsigned int s)
{
	bool some[3] = { false }, named[3];
	unsigned int i;

	if (!opt.only)
		return true;
	for (i = 0; i < NR_SCENARIOS; i++)
		some[0] |= names(scenario_names[i]);
	for (i = 0; i < NR_CHAINS; i++)
		some[1] |= names(chain_sets[i].name);
	for (i = 0; i < nr_sources; i++)
		some[2] |= names(sources[i].name);
	named[0] = names(scenario_names[scenario]);
	named[1] = names(chain_sets[chain].name);
	named[2] = names(sources[s].name) || !strcmp(sources[s].name, "none");
	for (i = 0; i < 3; i++)
		if (some[i] && !named[i])
			return false;
	return true;
}

/* Returns true if the @len characters at @at are a name that -k accepts. */
static bool is_known(const char *at, size_t len)
{
	bool known = false;
	unsigned int i;

	for (i = 0; i < NR_SCENARIOS; i++)
		known |= is_name(scenario_names[i], at, len);
	for (i = 0; i < NR_CHAINS; i++)
		known |= is_name(chain_sets[i].name, at, len);
	for (i = 0; i < nr_sources; i++)
		known |= is_name(sources[i].name, at, len);
	return known;
}

static bool only_is_known(void)
{
	const char *at = opt.only;

	while (at) {
		size_t len = strcspn(at, ",");

		if (!is_known(at, len)) {
			fprintf(stderr, "bench: no scenario, chain or source '%.*s'\n", (int)len,
				at);
			return false;
		}
		at = at[len] ? at + len + 1 : NULL;
	}
	return true;
}

bool source_runs(unsigned int s, unsigned int chain)
{
	return sources[s].chains & chain_sets[chain].on && !sources[s].missing;
}

bool source_runs_in(unsigned int s, enum scenario scenario, unsigned int chain)
{
	return source_runs(s, chain) && is_wanted(scenario, chain, s) &&
	       (scenario == FIXED || !(sources[s].chains & ONLY_FIXED));
}

/* Returns how many entries "memcpy" copies: as many as the chain has frames. */
static int entries_at(enum scenario scenario, unsigned int chain, unsigned int depth)
{
	unsigned int glibc = (unsigned int)(source_find("glibc") - sources);
	int n = checks[chain][depth][glibc].expected;

	if (scenario == RAMP)
		n -= (int)depths[depth] / 2;
	if (scenario == OSC)
		n += (int)OSC_LEVELS;
	return n;
}

static void run_group(enum scenario scenario, unsigned int chain, unsigned int depth,
		      unsigned int round)
{
	static struct round r;

	memcpy_entries = entries_at(scenario, chain, depth);
	source_place++;
	for (unsigned int s = 0; s < nr_sources; s++) {
		r.cell = &cells[scenario][chain][depth][s];
		if (!source_runs_in(s, scenario, chain) || (r.cell->slow && round % 4))
			continue;
		memset(&r.job, 0, offsetof(struct job, pcs));
		r.job.source = &sources[s];
		r.job.scenario = scenario;
		r.job.set = &chain_sets[chain];
		r.job.depth = depths[depth];
		r.job.run = run_cell;
		job_start(&r.job);
		shstk_marker_withdraw(); /* the other sources must walk, too */
	}
}

static void run_round(unsigned int round)
{
	for (enum scenario i = 0; i < NR_SCENARIOS; i++)
		for (unsigned int c = 0; c < NR_CHAINS; c++)
			for (unsigned int d = 0; d < NR_DEPTHS; d++)
				run_group(i, c, d, round);
}

static unsigned int run_rounds(void)
{
	uint64_t start = now_ns();
	unsigned int round = 0;
	double elapsed = 0;

	/* Start another round only if it fits into the time, judged by the rounds so far. */
	while (round < MAX_ROUNDS && (round < 2 || elapsed + elapsed / round < opt.seconds)) {
		run_round(round++);
		elapsed = (double)(now_ns() - start) / 1e9;
	}
	return round;
}

static double raw_ns(const struct cell *c)
{
	double best = -1;

	for (unsigned int i = 0; i < c->nr; i++)
		if (best < 0 || c->rounds[i] < best)
			best = c->rounds[i];
	return best;
}

double cell_ns(enum scenario scenario, unsigned int chain, unsigned int depth, unsigned int s)
{
	struct cell *row = cells[scenario][chain][depth];
	unsigned int none = (unsigned int)(source_find("none") - sources);
	double ns = raw_ns(&row[s]);

	if (ns < 0 || scenario == FIXED)
		return ns;
	ns -= raw_ns(&row[none]);
	return ns > 0 ? ns : 0;
}

double cell_spread(const struct cell *c, unsigned int rank)
{
	double sorted[MAX_ROUNDS];

	if (rank >= c->nr)
		return 1;
	memcpy(sorted, c->rounds, c->nr * sizeof(sorted[0]));
	qsort(sorted, c->nr, sizeof(sorted[0]), by_value);
	return sorted[0] > 0 ? sorted[rank] / sorted[0] : 1;
}

/* Measures how long a tick is, by two clocks over 20 ms. */
static void calibrate_ticks(void)
{
	uint64_t ns = now_ns(), ticks = now_ticks(), end;

	do {
		end = now_ns();
	} while (end - ns < 20000000);
	ns_per_tick = (double)(end - ns) / (double)(now_ticks() - ticks);
}

static void run_all(void *arg)
{
	unsigned int rounds;

	(void)arg;
	if (check_all()) {
		opt.status = 1;
		return;
	}
	rounds = run_rounds();
	printf("%u rounds; each figure is the smallest of the rounds' medians.\n", rounds);
	report_tables();
	report_noise();
	report_memory();
	if (opt.csv)
		opt.status = report_csv(opt.csv);
	if (!opt.status && report_missed())
		opt.status = STATUS_MISSED;
}

/*
 * Prints the times of the first captures of a process, when nothing is loaded, compiled or cached.
 */
static void run_cold(void *arg)
{
	static struct job j;
	struct source *source = arg;

	j.source = source;
	j.scenario = FIRST;
	j.set = &chain_sets[CHAIN_NOFP1024];
	j.depth = 32;
	for (int i = 0; i < 3; i++) {
		j.ticks = 0;
		job_once(&j);
		printf("%.0f%c", (double)j.ticks * ns_per_tick, i < 2 ? ' ' : '\n');
	}
}

static void print_machine(bool fifo, int cpu)
{
	char line[256], *model = NULL;
	struct utsname uts;
	FILE *f = fopen("/proc/cpuinfo", "re");

	while (f && !model && fgets(line, sizeof(line), f))
		if (!strncmp(line, "model name", 10))
			model = strchr(line, ':');
	if (f)
		fclose(f);
	uname(&uts);
	printf("%s, Linux %s, gcc %s; pinned to CPU %d, %s\n",
	       model ? strtok(model + 2, "\n") : uts.machine, uts.release, __VERSION__, cpu,
	       fifo ? "SCHED_FIFO" : "without real-time priority");
	for (unsigned int s = 0; s < nr_sources; s++)
		if (sources[s].missing)
			printf("not measured: %s (%s)\n", sources[s].name, sources[s].missing);
}

/*
 * Pins the process to the last CPU that it may use, with real-time priority if that is allowed.
 * Returns the CPU, or -1; *@fifo receives whether the priority was set.
 */
static int pin(bool *fifo)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t set;
	int cpu = -1;

	if (!sched_getaffinity(0, sizeof(set), &set)) {
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &set))
				cpu = i;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	*fifo = !getenv("BENCH_NO_FIFO") && !sched_setscheduler(0, SCHED_FIFO, &param);
	return cpu;
}

static void find_stack(void)
{
	pthread_attr_t attr;
	void *low = NULL;
	size_t size = 0;

	if (!pthread_getattr_np(pthread_self(), &attr)) {
		pthread_attr_getstack(&attr, &low, &size);
		pthread_attr_destroy(&attr);
	}
	fp_loop_bounds((uintptr_t)low, (uintptr_t)low + size);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench [-q] [-t SECONDS] [-o CSV] [-k NAME,...] [--old LIB --new LIB] | --cold SOURCE | --instr DEPTH\n");
	return 2;
}

static int parse(int argc, char **argv)
{
	static const struct option longs[] = { { "cold", required_argument, NULL, 'c' },
					       { "instr", required_argument, NULL, 'i' },
					       { "old", required_argument, NULL, 'O' },
					       { "new", required_argument, NULL, 'N' },
					       {} };
	int c;

	while ((c = getopt_long(argc, argv, "qt:o:k:", longs, NULL)) != -1) {
		switch (c) {
		case 'q':
			opt.quick = true;
			opt.seconds = 15;
			break;
		case 't':
			opt.seconds = strtod(optarg, NULL);
			break;
		case 'o':
			opt.csv = optarg;
			break;
		case 'k':
			opt.only = optarg;
			break;
		case 'c':
			opt.cold = optarg;
			break;
		case 'O':
			opt.old = optarg;
			break;
		case 'N':
			opt.new = optarg;
			break;
		case 'i':
			opt.instr_depth = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		default:
			return -EINVAL;
		}
	}
	return optind == argc && !opt.old == !opt.new ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	bool fifo;
	int cpu;

	if (parse(argc, argv))
		return usage();
	if (opt.old && !versus_load(opt.old, opt.new))
		return 2;
	source_list();
	if (!only_is_known())
		return 2;
	cell_budget = opt.quick ? 500000 : 1500000;
	find_stack();
	calibrate_ticks();
	if (opt.cold) {
		struct source *source = source_find(opt.cold);

		if (!source || source_load(source)) {
			fprintf(stderr, "bench: no source %s\n", opt.cold);
			return 2;
		}
		base_call(run_cold, source);
		return 0;
	}
	for (unsigned int s = 0; s < nr_sources; s++)
		source_load(&sources[s]);
	if (opt.instr_depth) {
		base_call(instr_run, &opt.instr_depth);
		return 0;
	}
	cpu = pin(&fifo);
	print_machine(fifo, cpu);
	base_call(run_all, NULL);
	return opt.status;
}
