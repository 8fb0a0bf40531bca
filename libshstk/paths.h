/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * paths.h - what epilogue.h found out about return addresses of the process itself.
 *
 * To follow the paths of a function takes some ten thousand instructions, and programs whose
 * functions nothing describes (interpreters, V8's builtins) have many of them on their stacks, at
 * the same few thousand addresses again and again. The code says the same each time; only which
 * of its answers is right depends on the stack.
 *
 * Lock-free, like rulecache.h: an entry is written under a key that nobody asks for, and what was
 * read counts only between two equal reads of the key. Keys carry rulecache.h's generation. A new
 * entry takes the place of an older one.
 */
#ifndef SHSTK_PATHS_H
#define SHSTK_PATHS_H

#include "internal.h"

#define PATHS_MOST 6 /* rules of one address that are kept */
#define PATHS_MANY (PATHS_MOST + 1)

/**
 * struct paths - the different rules that the paths of a function end with
 * @n: number of @rule, or PATHS_MANY: there are more than are kept, and none of them is.
 * @lost: bit i: the caller's frame pointer cannot be told by rule i.
 * @rule: rules, the most likely first.
 */
struct paths {
	uint32_t n;
	uint32_t lost;
	uint64_t rule[PATHS_MOST];
};

/* Adds what one path says, if no other one said it. Returns false if there is no room. */
bool paths_add(struct paths *p, uint64_t rule, bool lost_fp);

/* Those of return address @pc in generation @gen. Returns false if they are not known. */
bool paths_find(uint64_t pc, uint64_t gen, struct paths *ret);
void paths_keep(uint64_t pc, uint64_t gen, const struct paths *p);

/*
 * Was there no code on the page of @pc, when the kernel was asked last? What is only perhaps a
 * return address is often a word of data, which no module has: each time it would be looked for
 * among all mappings. As code may come to lie there, an answer is given PATHS_ANSWERS times.
 */
#define PATHS_ANSWERS 64
bool paths_no_code(uint64_t pc);
void paths_saw_no_code(uint64_t pc);

#endif
