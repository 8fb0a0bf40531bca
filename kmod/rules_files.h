/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_files.h - the files that have tables of unwind rules.
 */
#ifndef USHSTK_RULES_FILES_H
#define USHSTK_RULES_FILES_H

#include <linux/fsnotify_backend.h>
#include <linux/list.h>
#include <linux/rbtree.h>

#include "rules.h"

/**
 * struct ruled_file - a file that has a table, or will have one
 * @node: in a hash table, by @key; see struct files_hash.
 * @by_id: in the tree of tables, by the number of @table.
 * @all: in the list of all that are not freed.
 * @written: in the list of those that were written to since.
 * @watched: it is found by @key: its mark was not given up.
 * @mark: on the inode; not of the vdso's.
 * @rcu: it is freed after a grace period.
 * @key: what mappings of it are known by.
 * @table: its table, or NULL.
 * @owner: the user whose file it is.
 * @changes: how often it was written to since it was marked.
 * @dev: device number of its file system.
 * @ino: inode number.
 */
struct ruled_file {
	struct hlist_node node[2];
	struct rb_node by_id;
	struct list_head all;
	struct list_head written;
	bool watched;
	struct fsnotify_mark mark;
	struct rcu_head rcu;
	const void *key;
	struct rules_table __rcu *table;
	kuid_t owner;
	unsigned int changes;
	u64 dev;
	u64 ino;
};

/* How many tables there are, and bytes that they and their files take. */
struct rules_sums {
	u64 tables;
	u64 bytes;
};

/*
 * Memory that the kernel needs for a file beside its table: the inode that stays (1.1 KiB of
 * ext4, 1 of btrfs and xfs, 0.7 of tmpfs), what ties it to the mark, and struct ruled_file.
 */
#define RULES_FILE_BYTES 2048

/* One upload or removal at a time: held by who calls the functions below. */
extern struct mutex rules_change_lock;

/**
 * rules_file_get() - what is known of a file, which it begins to watch
 * @inode: the file's; NULL: the vdso.
 *
 * Return: with a reference; or an error.
 */
struct ruled_file *rules_file_get(struct inode *inode);

/**
 * rules_file_find() - the same, if it is watched already
 * @inode: the file's; NULL: the vdso.
 *
 * Return: with a reference; NULL: it is not.
 */
struct ruled_file *rules_file_find(struct inode *inode);

void rules_file_put(struct ruled_file *r);

/* Without its table; nothing of the file is held. The reference goes, too. */
void rules_file_drop(struct ruled_file *r);

/* Give back the reference, and hold nothing of a file that has no table. */
void rules_file_put_or_drop(struct ruled_file *r);

/* Of every file, and the vdso's. */
void rules_file_drop_all(void);

/**
 * rules_file_install() - give a file a table, in place of the one that it has
 * @r: the file.
 * @table: the table, which gets its number.
 * @changes: @r->changes when it was made sure that the table is right.
 * @limit: bytes that all may take.
 *
 * Return: 0; -ENOSPC, -EDQUOT, -EOVERFLOW; -ESTALE: the file was changed or goes.
 */
int rules_file_install(struct ruled_file *r, struct rules_table *table, unsigned int changes,
		       u64 limit);

struct rules_sums rules_file_sums(void);

/**
 * rules_file_next() - tables by their numbers
 * @above: number.
 * @use: called with the next one above it, under a spinlock.
 * @arg: for @use.
 *
 * Return: whether there is one.
 */
bool rules_file_next(u32 above,
		     void (*use)(void *arg, const struct ruled_file *r,
				 const struct rules_table *table),
		     void *arg);

int rules_files_init(void);
/* Comes back within a second. */
void rules_files_exit(void);

#endif /* USHSTK_RULES_FILES_H */
