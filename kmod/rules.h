/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules.h - tables of unwind rules: the interface for walks and for perf.c.
 */
#ifndef USHSTK_RULES_H
#define USHSTK_RULES_H

#include <linux/mm_types.h>
#include <linux/types.h>

#include "rules_check.h"

/**
 * struct rules_table - a table in the kernel
 * @rcu: the table is freed after a grace period.
 * @view: the parts of @data.
 * @id: number of the table, not 0; no other table ever gets the same number.
 * @bytes: memory that is counted for the table.
 * @uid: user who loaded it.
 * @name: name that SHSTK_RULES_LIST reports.
 * @data: the table as it was uploaded.
 */
struct rules_table {
	struct rcu_head rcu;
	struct ushstk_rules_view view;
	u32 id;
	size_t bytes;
	kuid_t uid;
	char name[SHSTK_RULES_NAME_LEN];
	u64 data[];
};

/*
 * A number that changes after each change of any table. A reader reads it first, in an RCU section.
 * Until the end of that section, the reader may use what it remembered under the same number.
 */
extern unsigned long rules_generation;

/* True if walks can be useful: there are tables, or there is a listener that would load them. */
extern bool rules_wanted;

/* The address of this variable is the key of the vdso, in place of an inode. */
extern const char rules_vdso_key[];

/**
 * rules_find() - find the table of a file
 * @key: the file's inode, which is not dereferenced; or rules_vdso_key.
 *
 * Context: any, including NMI; the caller is in an RCU section, in which the table stays valid.
 *
 * Return: the table, or NULL.
 */
const struct rules_table *rules_find(const void *key);

/**
 * rules_miss() - ask for the table of a file
 * @key: the file's inode.
 * @addr: an address in the mm of current at which the file is mapped.
 *
 * Each file is asked for only once in half a minute.
 *
 * Context: any, including NMI.
 */
void rules_miss(const void *key, u64 addr);

/*
 * The reason why a chain ended in the code of a file: no table, no rule, or no kind of rule that
 * can describe the code.
 */
enum rules_cut_why { RULES_CUT_TABLE, RULES_CUT_RULE, RULES_CUT_KIND, RULES_CUTS };

/**
 * rules_cut() - count that a chain ended before the outermost frame
 * @key: inode of the file in whose code the chain ended, which current maps; rules_vdso_key; or
 *	NULL if the code belongs to no file.
 * @offset: offset in the file.
 * @why: reason.
 *
 * Context: any, including NMI; the caller is in an RCU section that began before @key was read.
 */
void rules_cut(const void *key, u64 offset, enum rules_cut_why why);

/*
 * Return the number of tables, of files that are held for tables, and of callers that wait for
 * misses.
 */
unsigned long rules_tables(void);
unsigned int rules_files(void);
unsigned int rules_listeners(void);

/* Creates /dev/shstk_rules. Returns 0 or a negative errno. */
int rules_init(void);
/* Returns within a second, whatever other programs hold. */
void rules_exit(void);

#endif /* USHSTK_RULES_H */
