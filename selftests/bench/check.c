/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * check.c - checks that all sources return the same frames. A fast but wrong trace is worth
 * nothing, so this comes before any timing.
 *
 * glibc's backtrace() is the reference. Traces start in different wrappers, so they are compared
 * from the return address into the innermost function of the chain on.
 */
#include <stdio.h>
#include <string.h>

#include "cell.h"
#include "shstk_marker.h"
#include "versus.h"

struct check checks[NR_CHAINS][NR_DEPTHS][MAX_SOURCES];

struct checker {
	struct chain chain;
	unsigned int set, depth;
	uint64_t truth[MAX_PCS], pcs[MAX_PCS];
	unsigned int wrong;
};

static int find(const uint64_t *pcs, int n, uint64_t pc)
{
	for (int i = 0; i < n; i++)
		if (pcs[i] == pc)
			return i;
	return n;
}

static void compare(struct checker *k, unsigned int s, int expected, uint64_t anchor)
{
	struct check *c = &checks[k->set][k->depth][s];
	const uint64_t *pcs;
	int n, at;

	memset(k->pcs, 0, sizeof(k->pcs));
	n = sources[s].capture(k->pcs, MAX_PCS);
	/* A marker is met only by the second capture. */
	if (strstr(sources[s].name, "-marker"))
		n = sources[s].capture(k->pcs, MAX_PCS);
	shstk_marker_withdraw();
	if (n < 0)
		n = 0;
	at = find(k->pcs, n, anchor);
	pcs = k->pcs + at;
	c->frames = n;
	c->expected = expected;
	while (c->same < expected && at + c->same < n && pcs[c->same] == k->truth[c->same])
		c->same++;
	/* This is a wrong frame, not only a missing one. */
	if (at < n && c->same < expected && at + c->same < n && c->same < (int)depths[k->depth]) {
		fprintf(stderr, "bench: %s on %s at depth %u: entry %d is %#llx, not %#llx\n",
			sources[s].name, chain_sets[k->set].name, depths[k->depth], c->same,
			(unsigned long long)pcs[c->same], (unsigned long long)k->truth[c->same]);
		k->wrong++;
	}
}

static __attribute__((noinline)) void check_here(struct chain *chain)
{
	struct checker *k = chain->arg;
	const struct source *glibc = source_find("glibc");
	uint64_t anchor = (uint64_t)(uintptr_t)__builtin_return_address(0);
	int n, at;

	n = glibc->capture(k->truth, MAX_PCS);
	at = find(k->truth, n, anchor);
	n -= at;
	memmove(k->truth, k->truth + at, (size_t)n * sizeof(k->truth[0]));
	/* Check twice: the second time, memos and caches are in use. */
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned int s = 0; s < nr_sources; s++) {
			if (!sources[s].tracer || !source_runs(s, k->set))
				continue;
			checks[k->set][k->depth][s] = (struct check){ 0 };
			compare(k, s, n, anchor);
		}
	}
}

unsigned int check_all(void)
{
	static struct checker k;

	for (k.set = 0; k.set < NR_CHAINS; k.set++) {
		for (k.depth = 0; k.depth < NR_DEPTHS; k.depth++) {
			k.chain = (struct chain){
				.fns = chain_sets[k.set].fns,
				.mask = chain_sets[k.set].count - 1,
				.leaf = check_here,
				.arg = &k,
			};
			chain_descend(&k.chain, depths[k.depth]);
		}
	}
	return k.wrong;
}

bool check_complete(const struct check *c, unsigned int depth)
{
	return c->same >= (int)depths[depth];
}
