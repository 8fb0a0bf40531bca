/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cell.h - one figure of the result: a source in one scenario, on one chain, at one depth. */
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
 * @rounds: for each round, the median time of one capture in ns, calls included.
 * @nr: number of rounds.
 * @frames: average number of entries of a trace.
 * @slow: the source takes so long that it is left out of most rounds.
 */
struct cell {
	double rounds[MAX_ROUNDS];
	unsigned int nr;
	double frames;
	bool slow;
};

/**
 * struct check - what a source returns at one place, compared with glibc
 * @frames: number of entries that the source returned.
 * @same: number of equal entries, from the bottom of the chain on.
 * @expected: number of entries that glibc returned, from the bottom of the chain on.
 */
struct check {
	int frames;
	int same;
	int expected;
};

extern struct cell cells[NR_SCENARIOS][NR_CHAINS][NR_DEPTHS][MAX_SOURCES];
extern struct check checks[NR_CHAINS][NR_DEPTHS][MAX_SOURCES];

/* Returns true if source @s can run on @chain on this machine. */
bool source_runs(unsigned int s, unsigned int chain);

/*
 * Returns true if source @s can run on @chain in @scenario, and the -k option does not exclude it.
 */
bool source_runs_in(unsigned int s, enum scenario scenario, unsigned int chain);

/* Returns true if the source returned all frames of the chain. @depth is an index into depths[]. */
bool check_complete(const struct check *c, unsigned int depth);

/* Fills checks[]. Returns the number of wrong frames found; missing frames do not count. */
unsigned int check_all(void);

/*
 * Returns the smallest of the rounds' medians in ns, or a negative number if there is none. Except
 * in the scenario FIXED, the time of the calls between captures is subtracted.
 */
double cell_ns(enum scenario scenario, unsigned int chain, unsigned int depth, unsigned int s);

/*
 * Returns how far the rounds differ: the round of rank @rank (0 is the smallest) over the smallest.
 */
double cell_spread(const struct cell *c, unsigned int rank);

void report_tables(void);
/* Returns the number of bars that the tables reported as not met. */
unsigned int report_missed(void);
void report_noise(void);
void report_memory(void);
int report_csv(const char *path);

#endif
