/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job.c - the scenarios: where on the stack captures happen, and when. See job.h. */

#include "job.h"

const struct chain_set chain_sets[NR_CHAINS] = {
	[CHAIN_FP] = { "fp", ON_FP, chain_fns_fp, 16 },
	[CHAIN_NOFP] = { "nofp", ON_NOFP, chain_fns_nofp, 16 },
	[CHAIN_NOFP1024] = { "nofp1024", ON_NOFP, chain_fns_nofp1024, 1024 },
};

const char *const scenario_names[NR_SCENARIOS] = {
	"fixed", "ramp", "once", "osc", "first",
};

static inline void capture(struct job *j)
{
	j->frames += (unsigned int)j->source->capture(j->pcs, MAX_PCS);
	j->captures++;
}

static void capture_here(struct chain *c)
{
	capture(c->arg);
}

static void capture_timed(struct chain *c)
{
	struct job *j = c->arg;
	uint64_t start = now_ticks();

	capture(j);
	j->ticks += now_ticks() - start;
}

static void run_here(struct chain *c)
{
	struct job *j = c->arg;

	j->run(j);
}

static void nothing(struct chain *c)
{
	(void)c;
}

static void descend(struct job *j, unsigned int depth, void (*leaf)(struct chain *),
		    void (*level)(struct chain *))
{
	struct chain c = {
		.fns = j->set->fns,
		.mask = j->set->count - 1,
		.seed = j->seed,
		.leaf = leaf,
		.level = level,
		.arg = j,
	};

	chain_descend(&c, depth);
}

void job_start(struct job *j)
{
	if (j->scenario == FIXED || j->scenario == OSC)
		descend(j, j->depth, run_here, NULL);
	else
		j->run(j);
}

void job_repeat(struct job *j, unsigned int times)
{
	if (j->scenario != FIXED) {
		while (times--)
			job_once(j);
		return;
	}
	/*
	 * This loop has nothing else in it, because a switch would take longer than fast sources
	 * do.
	 */
	while (times--)
		capture(j);
}

void job_once(struct job *j)
{
	switch (j->scenario) {
	case FIXED:
		capture(j);
		break;
	case RAMP:
		descend(j, j->depth, nothing, capture_here);
		break;
	case ONCE:
		descend(j, j->depth, capture_here, NULL);
		break;
	case OSC:
		descend(j, OSC_LEVELS, capture_here, NULL);
		break;
	case FIRST:
		j->seed += 5;
		descend(j, j->depth, capture_timed, NULL);
		break;
	case NR_SCENARIOS:
		break;
	}
}
