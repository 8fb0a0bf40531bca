/* SPDX-License-Identifier: GPL-2.0-or-later */
/* report.c - makes tables, bars, noise, memory and bench.csv from the cells. */

#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "shstk.h"

/**
 * struct bar - a ratio that should be reached
 * @scenario: the scenario of the ratio.
 * @chain: the chain of the ratio.
 * @source: the source that is judged.
 * @peer: the source that it is compared with.
 * @least: for each depth, the least value of @peer's time over @source's; 0 if there is no bar.
 */
struct bar {
	enum scenario scenario;
	unsigned int chain;
	const char *source;
	const char *peer;
	double least[NR_DEPTHS];
};

static const struct bar bars[] = {
	{ FIXED, CHAIN_NOFP, "shstk-memo", "libunwind", { 5, 12, 15, 20 } },
	{ FIXED, CHAIN_NOFP1024, "shstk-memo", "libunwind", { 5, 12, 15, 20 } },
	{ FIXED, CHAIN_FP, "shstk-memo", "fp-loop", { 0.8, 0, 3, 5 } },
	{ FIRST, CHAIN_NOFP, "shstk-memo", "libunwind", { 1, 1, 1, 1 } },
	{ FIRST, CHAIN_NOFP1024, "shstk-memo", "libunwind", { 1.3, 1.3, 1.3, 1.3 } },
	{ FIXED, CHAIN_FP, "shstk-marker", "fp-loop", { 0.5, 0.5, 0.5, 15 } },
	{ RAMP, CHAIN_FP, "shstk-marker", "fp-loop", { 0.5, 0.5, 0.5, 0.5 } },
	{ ONCE, CHAIN_FP, "shstk-marker", "fp-loop", { 0.5, 0.5, 0.5, 0.5 } },
	{ FIRST, CHAIN_FP, "shstk-marker", "fp-loop", { 0.5, 0.5, 0.5, 0.5 } },
	{ OSC, CHAIN_FP, "shstk-marker", "fp-loop", { 0.5, 0.5, 0.5, 0.5 } },
	{ FIXED, CHAIN_NOFP, "shstk-reader", "memcpy", { 0, 1 / 1.25, 1 / 1.25, 1 / 1.25 } },
};

/*
 * The time in ns that framehop needs for a frame that misses its cache, if it is not measured in
 * the same run (Documentation/bench.rst). A miss of shstk should cost a fifth of that.
 */
#define FRAMEHOP_MISS_NS 300.0

static const char *const titles[NR_SCENARIOS] = {
	[FIXED] = "repeated at one place",
	[RAMP] = "on entry and exit of each level (net of the calls)",
	[ONCE] = "one capture, then return all the way (net of the calls)",
	[OSC] = "hot loop 4 frames below that depth (net of the calls)",
	[FIRST] = "first time: other frames each time, memo misses (net of the clock)",
};

static const char *const chain_titles[NR_CHAINS] = {
	[CHAIN_FP] = "16 functions with frame pointers",
	[CHAIN_NOFP] = "16 functions without frame pointers",
	[CHAIN_NOFP1024] = "1024 functions without frame pointers",
};

static unsigned int nr_of(const char *source)
{
	return (unsigned int)(source_find(source) - sources);
}

static bool cut(unsigned int chain, unsigned int d, unsigned int s)
{
	return sources[s].tracer && !check_complete(&checks[chain][d][s], d);
}

static void print_figure(enum scenario scenario, unsigned int chain, unsigned int d, unsigned int s)
{
	const struct cell *c = &cells[scenario][chain][d][s];
	double ns = cell_ns(scenario, chain, d, s);
	double memo = cell_ns(scenario, chain, d, nr_of("shstk-memo"));

	if (ns < 0) {
		printf(" |%26s", "-");
		return;
	}
	printf(" |%9.1f %7.2f", ns, c->frames > 0 ? ns / c->frames : 0);
	if (cut(chain, d, s))
		printf(" %8s", "CUT");
	else if (memo > 0)
		printf(" %7.2fx", ns / memo);
	else
		printf(" %8s", "-");
}

/* The number of bars that were not met, at all depths. */
static unsigned int missed;

/* Returns what is printed for a bar, and counts it if it is missed. */
static const char *judge(bool met)
{
	missed += !met;
	return met ? "met" : "NOT MET";
}

static void print_bar(const struct bar *b)
{
	unsigned int s = nr_of(b->source), p = nr_of(b->peer);

	if (!source_runs_in(s, b->scenario, b->chain) || !source_runs_in(p, b->scenario, b->chain))
		return;
	printf("  bar: time of %s over that of %s, at least:", b->peer, b->source);
	for (unsigned int d = 0; d < NR_DEPTHS; d++) {
		double own = cell_ns(b->scenario, b->chain, d, s);
		double other = cell_ns(b->scenario, b->chain, d, p);
		double ratio = own > 0 ? other / own : 0;

		if (b->least[d] <= 0)
			continue;
		printf(" | at %u: %.3gx, measured %.2fx, %s", depths[d], b->least[d], ratio,
		       cut(b->chain, d, s) || cut(b->chain, d, p) ? "void (a trace is cut)" :
								    judge(ratio >= b->least[d]));
	}
	printf("\n");
}

static double frame_ns(enum scenario scenario, unsigned int chain, unsigned int d, unsigned int s)
{
	return cell_ns(scenario, chain, d, s) / cells[scenario][chain][d][s].frames;
}

static void print_framehop_bar(unsigned int chain)
{
	unsigned int s = nr_of("shstk-memo"), p = nr_of("framehop-miss");

	printf("  bar: ns per frame, at most a fifth of framehop's on a miss:");
	for (unsigned int d = 0; d < NR_DEPTHS; d++) {
		double ns = frame_ns(FIRST, chain, d, s);
		double other = source_runs_in(p, FIRST, chain) ? frame_ns(FIRST, chain, d, p) :
								 FRAMEHOP_MISS_NS;

		printf(" | at %u: %.1f, measured %.1f, %s", depths[d], other / 5, ns,
		       judge(ns <= other / 5));
	}
	printf("\n");
}

static void print_cuts(unsigned int chain)
{
	for (unsigned int s = 0; s < nr_sources; s++) {
		bool said = false;

		if (!source_runs(s, chain))
			continue;
		for (unsigned int d = 0; d < NR_DEPTHS; d++) {
			const struct check *c = &checks[chain][d][s];

			if (!cut(chain, d, s))
				continue;
			printf("%s depth %u: %d frames, %d of the chain's %u",
			       said ? ";" : "  CUT: ", depths[d], c->frames, c->same, depths[d]);
			said = true;
		}
		if (said)
			printf(" (%s)\n", sources[s].name);
	}
}

/* Returns true if anything is measured in this scenario on this chain. */
static bool has_table(enum scenario scenario, unsigned int chain)
{
	for (unsigned int s = 0; s < nr_sources; s++)
		if (strcmp(sources[s].name, "none") && source_runs_in(s, scenario, chain))
			return true;
	return false;
}

static void print_table(enum scenario scenario, unsigned int chain)
{
	if (!has_table(scenario, chain))
		return;
	printf("\n%s: %s, %s\n", scenario_names[scenario], titles[scenario], chain_titles[chain]);
	printf("%-16s", "depth");
	for (unsigned int d = 0; d < NR_DEPTHS; d++)
		printf(" |%25u ", depths[d]);
	printf("\n%-16s", "");
	for (unsigned int d = 0; d < NR_DEPTHS; d++)
		printf(" |%9s %7s %8s", "ns/trace", "/frame", "of memo");
	printf("\n");
	for (unsigned int s = 0; s < nr_sources; s++) {
		if (!source_runs_in(s, scenario, chain) || !strcmp(sources[s].name, "none"))
			continue;
		printf("%-16s", sources[s].name);
		for (unsigned int d = 0; d < NR_DEPTHS; d++)
			print_figure(scenario, chain, d, s);
		printf("\n");
	}
	print_cuts(chain);
	for (unsigned int i = 0; i < sizeof(bars) / sizeof(bars[0]); i++)
		if (bars[i].scenario == scenario && bars[i].chain == chain)
			print_bar(&bars[i]);
	/* With fewer functions, it only misses once for each of them. */
	if (scenario == FIRST && chain == CHAIN_NOFP1024 &&
	    source_runs_in(nr_of("shstk-memo"), scenario, chain))
		print_framehop_bar(chain);
}

void report_tables(void)
{
	for (enum scenario i = 0; i < NR_SCENARIOS; i++)
		for (unsigned int c = 0; c < NR_CHAINS; c++)
			print_table(i, c);
}

unsigned int report_missed(void)
{
	return missed;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_spread(const char *what, double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), by_value);
	printf("  %s: %.1f %% in half of the figures, %.1f %% in nine of ten\n", what,
	       100 * (v[n / 2] - 1), 100 * (v[n * 9 / 10] - 1));
}

void report_noise(void)
{
	static double second[NR_SCENARIOS * NR_CHAINS * NR_DEPTHS * MAX_SOURCES];
	static double median[NR_SCENARIOS * NR_CHAINS * NR_DEPTHS * MAX_SOURCES];
	const struct cell *c = &cells[0][0][0][0];
	unsigned int n = 0;

	for (unsigned int i = 0; i < sizeof(second) / sizeof(second[0]); i++) {
		if (c[i].nr < 3)
			continue;
		second[n] = cell_spread(&c[i], 1);
		median[n++] = cell_spread(&c[i], c[i].nr / 2);
	}
	if (!n)
		return;
	printf("\nnoise, over the smallest round:\n");
	print_spread("second smallest round", second, n);
	print_spread("median round", median, n);
}

void report_memory(void)
{
	struct shstk_stats st = { .size = sizeof(st) };

	if (shstk_get_stats(&st))
		return;
	printf("\nmemory of libshstk after all that:\n");
	printf("  per thread: %llu bytes (%u threads)\n", (unsigned long long)st.thread_bytes,
	       st.threads);
	printf("  per module: %llu bytes (%llu bytes of tables for %llu modules)\n",
	       (unsigned long long)(st.modules ? st.module_bytes / st.modules : 0),
	       (unsigned long long)st.module_bytes, (unsigned long long)st.modules);
	printf("  rule cache: %llu bytes (%llu return addresses)\n",
	       (unsigned long long)st.cache_bytes, (unsigned long long)st.cache_entries);
	printf("  captures: %llu, of which %llu reused the last trace\n",
	       (unsigned long long)st.captures, (unsigned long long)st.memo_hits);
}

static void write_rows(FILE *f, enum scenario scenario, unsigned int chain, unsigned int d)
{
	for (unsigned int s = 0; s < nr_sources; s++) {
		double ns = cell_ns(scenario, chain, d, s);

		if (ns < 0 || !strcmp(sources[s].name, "none"))
			continue;
		fprintf(f, "%s,%s,%s,%u,%.0f,%.2f\n", scenario_names[scenario], sources[s].name,
			chain_sets[chain].name, depths[d], cells[scenario][chain][d][s].frames, ns);
	}
}

int report_csv(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f) {
		perror(path);
		return 1;
	}
	fprintf(f, "scenario,source,chain,depth,frames,ns_per_trace\n");
	for (enum scenario i = 0; i < NR_SCENARIOS; i++)
		for (unsigned int c = 0; c < NR_CHAINS; c++)
			for (unsigned int d = 0; d < NR_DEPTHS; d++)
				write_rows(f, i, c, d);
	if (fclose(f)) {
		perror(path);
		return 1;
	}
	return 0;
}
