/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * instr.c - runs the jobs that are timed elsewhere, to count their instructions.
 *
 * This runs under valgrind's callgrind with collection off. Collection is switched on for 16 runs
 * of each job. Each count goes into a dump of its own, whose trigger names the job:
 * SCENARIO,SOURCE,CHAIN,DEPTH,FRAMES.
 */
#include <stdio.h>
#include <valgrind/callgrind.h>

#include "cell.h"
#include "instr.h"
#include "shstk_marker.h"

/* After so many runs, every function of a small chain was seen. */
#define WARM_RUNS 32
/*
 * After so many captures at one place, those with markers have paid for one that is near, and the
 * memo is used even if it did not pay in the job before.
 */
#define WARM_FIXED 256

static void count(struct job *j)
{
	const unsigned int warm = j->scenario == FIXED ? WARM_FIXED : WARM_RUNS;
	char name[128];

	/* Both passes are the same call in the code, so that nothing is new the second time. */
	for (volatile int pass = 0; pass < 2; pass++) {
		if (pass) {
			j->frames = 0;
			j->captures = 0;
			CALLGRIND_ZERO_STATS;
			CALLGRIND_TOGGLE_COLLECT;
		}
		job_repeat(j, pass ? INSTR_RUNS : warm);
	}
	CALLGRIND_TOGGLE_COLLECT;
	snprintf(name, sizeof(name), "%s,%s,%s,%u,%llu", scenario_names[j->scenario],
		 j->source->name, j->set->name, j->depth,
		 (unsigned long long)(j->frames / j->captures));
	CALLGRIND_DUMP_STATS_AT(name);
}

void instr_run(void *arg)
{
	static const enum scenario scenarios[] = { FIXED, FIRST };
	static struct job j;

	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int c = 0; c < NR_CHAINS; c++) {
			for (unsigned int s = 0; s < nr_sources; s++) {
				/*
				 * In the scenario FIRST, this chain is left out: to see 1024
				 * functions first takes too long.
				 */
				if (!source_runs_in(s, scenarios[i], c) ||
				    (scenarios[i] == FIRST && c == CHAIN_NOFP1024))
					continue;
				j.source = &sources[s];
				j.scenario = scenarios[i];
				j.set = &chain_sets[c];
				j.depth = *(unsigned int *)arg;
				j.run = count;
				memcpy_entries = (int)j.depth;
				source_place++;
				job_start(&j);
				shstk_marker_withdraw(); /* the other sources must walk, too */
			}
		}
	}
}
