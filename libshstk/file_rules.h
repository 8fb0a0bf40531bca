/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file_rules.h - unwind rules that were found, to be found again: those of one program, or those of
 * files, which all programs share that have mapped them.
 *
 * A rule depends on the file and the address in it alone, not on the program nor on where the file is
 * mapped. On a machine with many CPUs most run the same few programs. With a table for each process,
 * no cache holds these tables, and each frame of a stack waits for memory.
 *
 *	file_rules_number(): file ----> number      one for all threads, used by one of them
 *	file_rules_table():  user ----> rule_table  one for each thread, used by that alone
 */
#ifndef SHSTK_FILE_RULES_H
#define SHSTK_FILE_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "rule.h"

#define FILE_RULES_SHIFT \
	47 /* bits of an address in a file; above them, a key has the file's number */
#define FILE_RULES_FILES 65535 /* most files: a key has 16 bits for the number, and one more */
#define FILE_RULES_USERS 64 /* most threads */

/* The rule for leaving the frame that has a certain address. */
struct known_rule {
	uint64_t key;
	uint64_t rule;
};

/**
 * struct rule_table - rules by key
 * @rules: a hash table, aligned to sets; NULL: there is no rule.
 * @size: number of its entries, 0 or a power of two.
 * @shift: what leaves the number of a set of a key's 64-bit hash.
 * @filled: how many of its entries were used.
 * @pushed_out: how many rules another one replaced.
 *
 * A key has a place in one set of RULE_TABLE_WAYS entries, which lie in one line of a cache. If all of them
 * are taken, its rule replaces one.
 */
struct rule_table {
	struct known_rule *rules;
	size_t size;
	unsigned int shift;
	size_t filled;
	size_t pushed_out;
};

#define RULE_TABLE_WAYS 4

/* Returns the set of a key. */
static inline struct known_rule *rule_table_set(const struct rule_table *t, uint64_t key)
{
	return &t->rules[(key * 0x9e3779b97f4a7c15 >> t->shift) * RULE_TABLE_WAYS];
}

/* Returns the rule of a key, or RULE_NONE. */
static inline uint64_t rule_table_get(const struct rule_table *t, uint64_t key)
{
	const struct known_rule *set = t->size ? rule_table_set(t, key) : NULL;

	for (unsigned int i = 0; set && i < RULE_TABLE_WAYS; i++)
		if (set[i].key == key)
			return set[i].rule;
	return RULE_NONE;
}

/* Keeps the rule of a key; at most @most rules, a power of two, are kept. Without memory it is not. */
void rule_table_put(struct rule_table *t, size_t most, uint64_t key, uint64_t rule);

/* Forgets all rules. */
void rule_table_clear(struct rule_table *t);

struct file_rules;

/* Returns what file_rules_destroy() releases; NULL without memory. */
struct file_rules *file_rules_create(void);

/* No space may use @f any more. @f may be NULL. */
void file_rules_destroy(struct file_rules *f);

/*
 * Returns the number of a file: that of each file that is the same one and was not changed, from 1 on; 0
 * if there are too many files, if it is no regular file, or without memory.
 */
uint32_t file_rules_number(struct file_rules *f, int fd);

/*
 * Returns the table of thread @user, below FILE_RULES_USERS. Its keys are an address in a file and the
 * file's number shifted by FILE_RULES_SHIFT. It stays where it is.
 */
struct rule_table *file_rules_table(struct file_rules *f, unsigned int user);

#endif
