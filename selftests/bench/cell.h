/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cell.h - one figure of the result: a source in one scenario, chain and depth.
 */
#ifndef BENCH_CELL_H
#define BENCH_CELL_H

#include <stdbool.h>
#include <stdio.h>

#include "job.h"

#define MAX_ROUNDS 64
#define NR_DEPTHS 4

extern const unsigned int depths[NR_DEPTHS];

/**
 * struct cell - one figure
 * @rounds: median time of one capture in each round, calls included, in ns.
 * @nr: number of rounds.
 * @frames: entries of a trace, on average.
 * @slow: takes so long that it is left out of most rounds.
 */
struct cell {
	double rounds[MAX_ROUNDS];
	unsigned int nr;
	double frames;
	bool slow;
};

/**
 * struct check - what a source returns at one place, compared with glibc
 * @frames: entries returned.
 * @same: entries from the bottom of the chain on that are equal.
 * @expected: so many there are.
 */
struct check {
	int frames;
	int same;
	int expected;
};

extern struct cell cells[NR_SCENARIOS][NR_CHAINS][NR_DEPTHS][MAX_SOURCES];
extern struct check checks[NR_CHAINS][NR_DEPTHS][MAX_SOURCES];

/* Does source @s run on @chain here at all? */
bool source_runs(unsigned int s, unsigned int chain);

/* ... and in @scenario? */
bool source_runs_in(unsigned int s, enum scenario scenario, unsigned int chain);

/* Does it return all frames of the chain there? @depth is an index. */
bool check_complete(const struct check *c, unsigned int depth);

/* Fill checks[]; returns the number of wrong (not: missing) frames found. */
unsigned int check_all(void);

/*
 * Smallest of the rounds' medians, in ns, without the calls between captures
 * (scenarios other than FIXED); negative if there is none.
 */
double cell_ns(enum scenario scenario, unsigned int chain, unsigned int depth, unsigned int s);

/* How far rounds lie apart: rank-th smallest round over the smallest. */
double cell_spread(const struct cell *c, unsigned int rank);

void report_tables(void);
/* How many bars the tables said are not met. */
unsigned int report_missed(void);
void report_noise(void);
void report_memory(void);
int report_csv(const char *path);

#endif
