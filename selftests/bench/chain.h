/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain.h - call chains of known depth through many different functions.
 *
 * gen_chain.awk writes one C file for each set of functions. The functions differ in frame size and
 * in the registers that they save. A descent of depth D goes through D functions, then calls leaf.
 */
#ifndef BENCH_CHAIN_H
#define BENCH_CHAIN_H

struct chain;
typedef unsigned int (*chain_fn)(struct chain *c, unsigned int n);

/**
 * struct chain - one descent
 * @fns: the functions to go through.
 * @mask: number of functions minus one; a power of two minus one.
 * @seed: selects the first function, which changes the addresses and sizes of all frames.
 * @leaf: called by the innermost function.
 * @level: called on entry and exit of each function, or NULL.
 * @arg: argument that @leaf and @level may use.
 */
struct chain {
	const chain_fn *fns;
	unsigned int mask;
	unsigned int seed;
	void (*leaf)(struct chain *c);
	void (*level)(struct chain *c);
	void *arg;
};

#define CHAIN_STEP 37u /* odd, so that every function of a set is visited */

extern const chain_fn chain_fns_fp[16];
extern const chain_fn chain_fns_nofp[16];
extern const chain_fn chain_fns_nofp1024[1024];

static inline chain_fn chain_next(const struct chain *c, unsigned int n)
{
	return c->fns[(n * CHAIN_STEP + c->seed) & c->mask];
}

/* Goes down through @depth functions, calls leaf, and returns all the way. */
static inline unsigned int chain_descend(struct chain *c, unsigned int depth)
{
	return chain_next(c, depth)(c, depth - 1);
}

#endif
