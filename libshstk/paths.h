/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * paths.h - a cache of what epilogue.h found out about return addresses of the process itself.
 *
 * Following the paths of a function takes some ten thousand instructions. Programs whose
 * functions nothing describes (interpreters, V8's builtins) have many of these functions on their
 * stacks, at the same few thousand addresses again and again. The code gives the same rules each
 * time; only which of them is right depends on the stack.
 *
 * The cache is lock-free, like rulecache.h: while an entry is written its key is one that nobody
 * looks for, and what was read is valid only if the key was the same before and after. Keys carry
 * rulecache.h's generation. A new entry takes the place of an older one.
 */
#ifndef SHSTK_PATHS_H
#define SHSTK_PATHS_H

#include "internal.h"

#define PATHS_MOST 6 /* most rules that are kept for one address */
#define PATHS_MANY (PATHS_MOST + 1)

/**
 * struct paths - the different unwind rules that the paths of a function lead to
 * @n: number of rules in @rule; PATHS_MANY if there are more than PATHS_MOST, and then @rule is
 *	not used.
 * @lost: bit i is set if rule i does not tell the caller's frame pointer.
 * @rule: the rules, the most likely first.
 */
struct paths {
	uint32_t n;
	uint32_t lost;
	uint64_t rule[PATHS_MOST];
};

/*
 * Adds the rule that one path leads to, if it is not there yet. @lost_fp: the rule does not tell
 * the caller's frame pointer. Returns false if there is no room.
 */
bool paths_add(struct paths *p, uint64_t rule, bool lost_fp);

/*
 * Reads the rules of return address @pc in generation @gen from the cache. Returns false if they
 * are not in it.
 */
bool paths_find(uint64_t pc, uint64_t gen, struct paths *ret);

/* Puts the rules of return address @pc in generation @gen into the cache. */
void paths_keep(uint64_t pc, uint64_t gen, const struct paths *p);

/* Forgets all rules. Those that another thread is about to put are kept. */
void paths_clear(void);

/*
 * paths_no_code() tells whether there was no code on the page of @pc when the kernel was asked
 * last, and paths_saw_no_code() notes that answer. A word that may be a return address is often
 * data, which no module contains; without this cache it would be looked for among all mappings
 * each time. Because code may appear there later, each answer is used only PATHS_ANSWERS times.
 */
#define PATHS_ANSWERS 64
bool paths_no_code(uint64_t pc);
void paths_saw_no_code(uint64_t pc);

#endif
