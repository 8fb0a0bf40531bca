/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules.h - tables of unwind rules, as the walk sees them.
 */
#ifndef USHSTK_RULES_H
#define USHSTK_RULES_H

#include <linux/mm_types.h>
#include <linux/types.h>

#include "rules_check.h"

/**
 * struct rules_table - a table in the kernel
 * @rcu: it is freed after a grace period.
 * @view: the parts of @data.
 * @id: its number, not 0, which no other table ever gets.
 * @bytes: memory that it takes.
 * @uid: who loaded it.
 * @name: for SHSTK_RULES_LIST.
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
 * Another number after each change of any table. A reader that takes it first, in an RCU
 * section, may use until the end of that section what it remembered under that number.
 */
extern unsigned long rules_generation;

/* Whether walks can come to anything: there are tables, or somebody who would load them. */
extern bool rules_wanted;

/* What stands for the vdso's inode. */
extern const char rules_vdso_key[];

/**
 * rules_find() - the table of a file
 * @key: its inode, which is not looked into; or rules_vdso_key.
 *
 * Context: any, NMI as well; within an RCU section, for which the table stays.
 *
 * Return: the table, or NULL.
 */
const struct rules_table *rules_find(const void *key);

/**
 * rules_miss() - ask for the table of a file
 * @key: its inode.
 * @addr: an address in current's mm at which it is mapped.
 *
 * Context: any, NMI as well. Each file is asked for once in half a minute.
 */
void rules_miss(const void *key, u64 addr);

/* Why a chain ended in a file's code. */
enum rules_cut_why { RULES_CUT_TABLE, RULES_CUT_RULE, RULES_CUT_KIND, RULES_CUTS };

/**
 * rules_cut() - count that a chain ended before the outermost frame
 * @key: inode of the file in whose code it ended, mapped by current; rules_vdso_key; or
 *	NULL: no file's.
 * @offset: in the file.
 * @why: why.
 *
 * Context: any, NMI as well; within an RCU section that began before @key was read.
 */
void rules_cut(const void *key, u64 offset, enum rules_cut_why why);

/* How many tables there are, files that are held for them, and callers that wait for files. */
unsigned long rules_tables(void);
unsigned int rules_files(void);
unsigned int rules_listeners(void);

int rules_init(void);
/* Comes back within a second, whatever others hold. */
void rules_exit(void);

#endif /* USHSTK_RULES_H */
