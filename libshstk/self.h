/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * self.h - the modules of this process: found when an address of theirs is
 * first met, dropped when they turn out to be gone, read without locks.
 */
#ifndef SHSTK_SELF_H
#define SHSTK_SELF_H

#include "module.h"

/* The module that has @pc, mapped in if it is new; NULL: @pc is no code. */
struct module *self_module(uint64_t pc);

#define SELF_COUNTERS 8

/**
 * struct self_watch - what every capture looks at
 * @counter: words of the loader that held the count of loads; one of them is
 *	that count. What there are fewer than two of is a zero.
 * @n: their number.
 * @seen: self_loads() when modules were looked over last.
 * @seen_two: the same; if there are more than two counters, no number of loads.
 * @retired: modules to be freed.
 */
struct self_watch {
	const uint64_t *counter[SELF_COUNTERS];
	unsigned int n;
	uint64_t seen;
	uint64_t seen_two;
	struct module *retired;
};

extern struct self_watch self_watch __attribute__((visibility("hidden")));

/* The same as self_loads() if there are one or two counters, which is most often. */
static inline uint64_t self_loads_two(void)
{
	return load_relaxed(self_watch.counter[0]) +
	       load_relaxed(self_watch.counter[1]) * 3;
}

/* A number that differs after a load. */
static inline uint64_t self_loads(void)
{
	uint64_t v = self_loads_two();
	unsigned int i;

	for (i = 2; unlikely(i < self_watch.n); i++)
		v = v * 31 + load_relaxed(self_watch.counter[i]);
	return v;
}

/*
 * Has anything been loaded since self_revalidate() ran last? A library can only
 * take another's place by being loaded.
 */
static inline bool self_loads_changed(void)
{
	return self_loads() != load_relaxed(&self_watch.seen);
}

/* It is certain that nothing was, and cheap to tell. */
static inline bool self_loads_same(void)
{
	return self_loads_two() == load_relaxed(&self_watch.seen_two);
}

static inline void self_loads_saw(uint64_t loads)
{
	store_release(&self_watch.seen, loads);
	store_release(&self_watch.seen_two, self_watch.n <= 2 ? loads : ~0ull);
}

/* Drop every module that is not there any more; and, if there was one, all rules. */
void self_revalidate(void);

/*
 * The rule for return address @pc (@exact: a program counter), RULE_GUESS for
 * code without information, RULE_NONE if it is no code. Remembers return
 * addresses in the rule cache.
 */
uint64_t self_rule(uint64_t pc, bool exact);

/* May the word at @addr be read? Asks the kernel. */
bool self_readable(uint64_t addr);

/* Drop all modules that may have gone. */
void self_flush(void);

/* Free @m, which nobody finds any more, by self_reclaim(). */
void self_retire(struct module *m);

/* Free what was dropped, once no capture can still use it. */
void self_reclaim(void);
static inline bool self_has_retired(void)
{
	return load_relaxed(&self_watch.retired);
}

void self_stats(struct shstk_stats *stats);

#endif
