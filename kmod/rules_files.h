/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_files.h - the interface to the files that have tables of unwind rules.
 */
#ifndef USHSTK_RULES_FILES_H
#define USHSTK_RULES_FILES_H

#include <linux/fsnotify_backend.h>
#include <linux/list.h>
#include <linux/rbtree.h>

#include "rules.h"

/**
 * struct ruled_file - a file that has a table, or will have one
 * @node: links in the hashes of files by @key; &struct files_hash says which one is in use.
 * @by_id: node in the tree of tables, by the number of @table.
 * @all: link in the list of all files that are not freed.
 * @written: link in the list of files that were written to and are not handled yet.
 * @watched: the file can be found by @key, because its mark was not given up.
 * @mark: mark on the inode; unused for the vdso.
 * @rcu: the structure is freed after a grace period.
 * @key: identifies the file: the address of its inode, or rules_vdso_key.
 * @table: table of the file, or NULL.
 * @owner: user who owns the file.
 * @changes: number of writes to the file since it was marked.
 * @dev: device number of the file system.
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

/* The number of tables, and the memory in bytes that they and their files take. */
struct rules_sums {
	u64 tables;
	u64 bytes;
};

/*
 * Memory in bytes that the kernel needs for a file besides its table: the inode that stays in
 * memory (1.1 KiB on ext4, 1 KiB on btrfs and xfs, 0.7 KiB on tmpfs), the objects that connect it
 * to the mark, and struct ruled_file.
 */
#define RULES_FILE_BYTES 2048

/*
 * Allows one upload or removal at a time. The caller must hold it for the functions below that get,
 * find, drop or install.
 */
extern struct mutex rules_change_lock;

/**
 * rules_file_get() - get a file, and begin to watch it if it is not watched
 * @inode: inode of the file; NULL for the vdso.
 *
 * Return: the file with a reference, or an error.
 */
struct ruled_file *rules_file_get(struct inode *inode);

/**
 * rules_file_find() - get a file that is watched already
 * @inode: inode of the file; NULL for the vdso.
 *
 * Return: the file with a reference, or NULL if it is not watched.
 */
struct ruled_file *rules_file_find(struct inode *inode);

/* Gives back a reference. */
void rules_file_put(struct ruled_file *r);

/* Removes the table and lets go of the file. Gives back the caller's reference, too. */
void rules_file_drop(struct ruled_file *r);

/* Gives back the caller's reference. If the file has no table, lets go of the file, too. */
void rules_file_put_or_drop(struct ruled_file *r);

/* Removes the tables of all files and of the vdso. Takes rules_change_lock. */
void rules_file_drop_all(void);

/**
 * rules_file_install() - give a file a table, instead of the one that it has
 * @r: the file.
 * @table: the table; it gets its number here.
 * @changes: value of @r->changes from before the table was verified to match the file.
 * @limit: most bytes that all tables may take.
 *
 * Return: 0; -ENOSPC, -EDQUOT or -EOVERFLOW if there is no room; -ESTALE if the file was changed or
 * is going.
 */
int rules_file_install(struct ruled_file *r, struct rules_table *table, unsigned int changes,
		       u64 limit);

/* Returns the sums of all tables. */
struct rules_sums rules_file_sums(void);

/**
 * rules_file_next() - find the next table by its number
 * @above: the table must have a number above this one.
 * @use: is called with the table, under a spinlock.
 * @arg: argument for @use.
 *
 * Return: true if there is such a table.
 */
bool rules_file_next(u32 above,
		     void (*use)(void *arg, const struct ruled_file *r,
				 const struct rules_table *table),
		     void *arg);

/* Returns 0 or a negative errno. */
int rules_files_init(void);
/* Returns within a second. */
void rules_files_exit(void);

#endif /* USHSTK_RULES_FILES_H */
