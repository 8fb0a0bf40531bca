/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * modmap.h - the modules of this process. A module is found when one of its addresses is first met,
 * and dropped when it turns out to be gone. The map is read without locks.
 */
#ifndef SHSTK_MODMAP_H
#define SHSTK_MODMAP_H

#include "module.h"

/*
 * Returns the module that contains @pc, and reads it in if it is new. Returns NULL if nothing
 * executable is mapped at @pc.
 */
struct module *modmap_find(uint64_t pc);

/* Returns true if there ever was a module with code of Go. */
bool modmap_has_go(void);

#define MODMAP_COUNTERS 8

/**
 * struct modmap_watch - what every capture looks at
 * @counter: addresses of the loader's words that held the number of loads. One of these words is
 *	that number. If there are fewer than two, the rest of the first two point to a zero.
 * @n: number of words found.
 * @seen: value of modmap_loads() when modules were last compared with memory.
 * @seen_two: value of modmap_loads_two() at that time; ~0 if there are more than two counters.
 * @retired: list of modules to be freed.
 */
struct modmap_watch {
	const uint64_t *counter[MODMAP_COUNTERS];
	unsigned int n;
	uint64_t seen;
	uint64_t seen_two;
	struct module *retired;
};

extern struct modmap_watch modmap_watch __attribute__((visibility("hidden")));

#define MODMAP_LOADS_SHIFT 24

/*
 * Returns what modmap_loads() does if there are one or two counters, which is the usual case. The
 * second one of glibc only grows. The first one also falls, when something is unloaded, and so each has
 * bits of its own: what is unloaded cannot make up for what is loaded.
 */
static inline uint64_t modmap_loads_two(void)
{
	return load_relaxed(modmap_watch.counter[0]) +
	       (load_relaxed(modmap_watch.counter[1]) << MODMAP_LOADS_SHIFT);
}

/* Returns a number that changes when something is loaded. */
static inline uint64_t modmap_loads(void)
{
	uint64_t v = modmap_loads_two();
	unsigned int i;

	for (i = 2; unlikely(i < modmap_watch.n); i++)
		v = v * 0x9e3779b97f4a7c15ULL + load_relaxed(modmap_watch.counter[i]);
	return v;
}

/*
 * Returns true if anything was loaded since modmap_revalidate() ran last. A library can only take
 * another's place by being loaded.
 */
static inline bool modmap_loads_changed(void)
{
	return modmap_loads() != load_relaxed(&modmap_watch.seen);
}

/*
 * Returns what !modmap_loads_changed() does. It takes one comparison where there are one or two counters
 * and nothing was loaded.
 */
static inline bool modmap_loads_same(void)
{
	return likely(modmap_loads_two() == load_relaxed(&modmap_watch.seen_two)) ||
	       (unlikely(modmap_watch.n > 2) && !modmap_loads_changed());
}

/*
 * Returns a number that modmap_state_is() knows while the generation of the rules has @number, and nothing
 * is loaded after modmap_revalidate() ran last.
 */
static inline uint64_t modmap_state_seen(uint64_t number)
{
	return number + load_relaxed(&modmap_watch.seen);
}

/*
 * Tells whether @state is the present state. Generations are in the upper 16 bits of @number, which no
 * number of loads reaches. How often they began again is added to the counter that only grows; the one that also
 * falls has its bits for itself. So one comparison of the sum is enough.
 *
 * There are more than two counters where another word of the loader happened to be the number of
 * loads: with glibc 2.36 if 6, 7 or 9 objects were loaded. Then all are looked at.
 */
static inline __attribute__((always_inline)) bool modmap_state_is(uint64_t state, uint64_t number)
{
	return likely(state == number + modmap_loads_two()) ||
	       (unlikely(modmap_watch.n > 2) && state == number + modmap_loads());
}

static inline void modmap_loads_saw(uint64_t loads)
{
	store_release(&modmap_watch.seen, loads);
	store_release(&modmap_watch.seen_two, modmap_watch.n <= 2 ? loads : ~0ull);
}

/* Drops every module that is not there any more. If there is one, drops all rules, too. */
void modmap_revalidate(void);

/*
 * Returns the rule for the return address @pc, or the program counter @pc if @exact; RULE_GUESS for
 * code without unwind information, and RULE_NONE if @pc is no code. Keeps the rules of return
 * addresses in the rule cache.
 */
uint64_t modmap_rule(uint64_t pc, bool exact);

/*
 * Ends traces at the first frame of code from @lo to @hi from now on, because what runs there is
 * unwound by other code.
 */
void modmap_set_end(uint64_t lo, uint64_t hi);
bool modmap_is_end(uint64_t pc);

/* Asks the kernel whether the word at @addr can be read. */
bool modmap_readable(uint64_t addr);

/* Drops all modules that may be gone. */
void modmap_flush(void);

/* Leaves @m, which must not be in the map any more, to modmap_reclaim() to be freed. */
void modmap_retire(struct module *m);

/* Frees the retired modules, if no capture can still use them. */
void modmap_reclaim(void);
static inline bool modmap_has_retired(void)
{
	return load_relaxed(&modmap_watch.retired);
}

/* Frees them at the end of a call, if it was the @outermost one of its thread. */
static inline void modmap_tidy(bool outermost)
{
	if (unlikely(outermost && modmap_has_retired()))
		modmap_reclaim();
}

/* Adds the modules of the map to @stats, and stores there what the rule cache holds. */
void modmap_stats(struct shstk_stats *stats);

#endif
