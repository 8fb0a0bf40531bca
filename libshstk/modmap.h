/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * modmap.h - the modules of this process: found when an address of theirs is
 * first met, dropped when they turn out to be gone, read without locks.
 */
#ifndef SHSTK_MODMAP_H
#define SHSTK_MODMAP_H

#include "module.h"

/* The module that has @pc, mapped in if it is new; NULL: @pc is no code. */
struct module *modmap_find(uint64_t pc);

/* Was there ever a module with code of Go? */
bool modmap_has_go(void);

#define MODMAP_COUNTERS 8

/**
 * struct modmap_watch - what every capture looks at
 * @counter: words of the loader that held the count of loads; one of them is
 *	that count. What there are fewer than two of is a zero.
 * @n: their number.
 * @seen: modmap_loads() when modules were looked over last.
 * @seen_two: the same; if there are more than two counters, no number of loads.
 * @retired: modules to be freed.
 */
struct modmap_watch {
	const uint64_t *counter[MODMAP_COUNTERS];
	unsigned int n;
	uint64_t seen;
	uint64_t seen_two;
	struct module *retired;
};

extern struct modmap_watch modmap_watch __attribute__((visibility("hidden")));

/* The same as modmap_loads() if there are one or two counters, which is most often. */
static inline uint64_t modmap_loads_two(void)
{
	return load_relaxed(modmap_watch.counter[0]) + load_relaxed(modmap_watch.counter[1]) * 3;
}

/* A number that differs after a load. */
static inline uint64_t modmap_loads(void)
{
	uint64_t v = modmap_loads_two();
	unsigned int i;

	for (i = 2; unlikely(i < modmap_watch.n); i++)
		v = v * 31 + load_relaxed(modmap_watch.counter[i]);
	return v;
}

/*
 * Has anything been loaded since modmap_revalidate() ran last? A library can only
 * take another's place by being loaded.
 */
static inline bool modmap_loads_changed(void)
{
	return modmap_loads() != load_relaxed(&modmap_watch.seen);
}

/* It is certain that nothing was, and cheap to tell. */
static inline bool modmap_loads_same(void)
{
	return modmap_loads_two() == load_relaxed(&modmap_watch.seen_two);
}

static inline void modmap_loads_saw(uint64_t loads)
{
	store_release(&modmap_watch.seen, loads);
	store_release(&modmap_watch.seen_two, modmap_watch.n <= 2 ? loads : ~0ull);
}

/* Drop every module that is not there any more; and, if there was one, all rules. */
void modmap_revalidate(void);

/*
 * The rule for return address @pc (@exact: a program counter), RULE_GUESS for
 * code without information, RULE_NONE if it is no code. Remembers return
 * addresses in the rule cache.
 */
uint64_t modmap_rule(uint64_t pc, bool exact);

/*
 * Frames of code from @lo to @hi have no callers from now on: what runs there is unwound
 * by somebody else, and traces end at the first of them.
 */
void modmap_set_end(uint64_t lo, uint64_t hi);
bool modmap_is_end(uint64_t pc);

/* May the word at @addr be read? Asks the kernel. */
bool modmap_readable(uint64_t addr);

/* Drop all modules that may have gone. */
void modmap_flush(void);

/* Free @m, which nobody finds any more, by modmap_reclaim(). */
void modmap_retire(struct module *m);

/* Free what was dropped, once no capture can still use it. */
void modmap_reclaim(void);
static inline bool modmap_has_retired(void)
{
	return load_relaxed(&modmap_watch.retired);
}

/* Add to @stats the modules of the map, and tell what the rule cache holds. */
void modmap_stats(struct shstk_stats *stats);

#endif
