// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_files.c - the files that have tables of unwind rules: how walks find them, and for how long
 * a file has a table.
 *
 * A table belongs to an inode. An fsnotify mark connects the two. The mark holds the inode, so the
 * address of the inode identifies it. The mark goes when the file is deleted or its file system is
 * unmounted, and it does not hinder either. A write to the file drops the table. On overlayfs the
 * inode is the one of the lower or upper file system, because that one is mapped.
 *
 * A struct ruled_file exists as long as its mark. Its table may be set, replaced and removed
 * meanwhile. Walks find both under RCU and never look into the inode.
 *
 * While somebody opens a file and a program that decides about that (fanotify) has not answered,
 * the kernel holds all marks of the file, ours too. If the module is unloaded then, such a mark is
 * left behind, still attached to its file, because otherwise the kernel would open the file without
 * that answer: see leave_files(). None of our functions is called for that mark any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/kmemleak.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/shstk_rules.h>

#include "compat.h"
#include "rules_call.h"
#include "rules_files.h"
#include "rules_share.h"

/*
 * Size of the first hash, as a power of 2, and by how much a hash is enlarged (4 times) when there
 * are more files than buckets.
 */
#define FIRST_BITS 8
#define MORE_BITS 2

/* Files of one user may take a fourth of the total room. Files of root may take all of it. */
#define OWNER_SHARE 4

/**
 * struct files_hash - files by their key
 * @rcu: the hash is freed after a grace period.
 * @bits: the number of buckets, as a power of 2.
 * @which: index of the member of ruled_file.node that this hash uses. The next, larger hash uses
 *	the other member, so lookups in this one still work meanwhile.
 * @head: the buckets.
 */
struct files_hash {
	struct rcu_head rcu;
	unsigned int bits;
	unsigned int which;
	struct hlist_head head[];
};

unsigned long rules_generation = 1;
bool rules_wanted;
const char rules_vdso_key[1];

static struct ruled_file vdso = { .key = rules_vdso_key, .watched = true };
static struct fsnotify_group *group;

/* Replaces mark_ops for marks that are left behind; it has no functions. */
static struct fsnotify_ops *no_ops;

/* Must be taken before files_lock. */
DEFINE_MUTEX(rules_change_lock);

/* Protects the variables below, and which table each file has. */
static DEFINE_SPINLOCK(files_lock);
static struct files_hash __rcu *files; /* changes need rules_change_lock, too */
static unsigned int nr_hashed;
static LIST_HEAD(all_files);
static LIST_HEAD(written_files); /* written to: to be let go, unless they have a new table */
static bool leaving;
static struct rb_root by_id = RB_ROOT;
static struct rules_sums sums;
static u32 last_id;

/* A random odd number, so that nobody can make keys that fall into few buckets. */
static u64 multiplier __ro_after_init;

/* Number of marks that are not freed yet. Their callbacks are in this module. */
static atomic_t nr_files;
static DECLARE_WAIT_QUEUE_HEAD(files_gone);

static void update_wanted(void)
{
	lockdep_assert_held(&files_lock);
	WRITE_ONCE(rules_wanted, sums.tables || rules_listeners());
}

void rules_update_wanted(void)
{
	spin_lock(&files_lock);
	update_wanted();
	spin_unlock(&files_lock);
}

/* ---- Finding a file by its key ---- */

static unsigned int bucket_of(const struct files_hash *h, const void *key)
{
	return (u64)(unsigned long)key * multiplier >> (64 - h->bits);
}

const struct rules_table *rules_find(const void *key)
{
	const struct files_hash *h;
	struct ruled_file *r;

	if (key == rules_vdso_key)
		return rcu_dereference_check(vdso.table, rcu_read_lock_any_held());
	h = rcu_dereference_check(files, rcu_read_lock_any_held());
	if (!h)
		return NULL;
	hlist_for_each_entry_rcu(r, &h->head[bucket_of(h, key)], node[h->which],
				 rcu_read_lock_any_held())
		if (r->key == key)
			return rcu_dereference_check(r->table, rcu_read_lock_any_held());
	return NULL;
}

static struct files_hash *hash_now(void)
{
	return rcu_dereference_protected(files, lockdep_is_held(&files_lock) ||
							lockdep_is_held(&rules_change_lock));
}

/* Makes a file known to walks and to the lists. */
static void hash_ruled_file(struct ruled_file *r)
{
	struct files_hash *h;

	spin_lock(&files_lock);
	h = hash_now();
	hlist_add_head_rcu(&r->node[h->which], &h->head[bucket_of(h, r->key)]);
	nr_hashed++;
	r->watched = true;
	list_add_tail_rcu(&r->all, &all_files);
	spin_unlock(&files_lock);
}

/* Hides a file from walks. It stays in the list of all files until its mark is freed. */
static void unhash_ruled_file(struct ruled_file *r)
{
	lockdep_assert_held(&files_lock);
	hlist_del_rcu(&r->node[hash_now()->which]);
	nr_hashed--;
	r->watched = false;
	list_del_init(&r->written);
}

/*
 * Replaces @old by the larger hash @h, and puts all files into @h. Files can be found in @old, too,
 * until it is freed.
 */
static void replace_hash(struct files_hash *old, struct files_hash *h)
{
	struct ruled_file *r;
	unsigned int i;

	spin_lock(&files_lock);
	for (i = 0; old && i < 1U << old->bits; i++)
		hlist_for_each_entry(r, &old->head[i], node[old->which])
			hlist_add_head_rcu(&r->node[h->which], &h->head[bucket_of(h, r->key)]);
	rcu_assign_pointer(files, h);
	spin_unlock(&files_lock);
	if (old)
		kvfree_rcu(old, rcu);
}

/*
 * Makes the first hash, or a larger one if there are as many files as buckets. Returns 0 or
 * -ENOMEM.
 */
static int grow_hash(void)
{
	struct files_hash *old = hash_now(), *h;
	unsigned int bits = old ? old->bits + MORE_BITS : FIRST_BITS;

	lockdep_assert_held(&rules_change_lock);
	if (old && READ_ONCE(nr_hashed) < 1U << old->bits)
		return 0;
	h = kvzalloc(struct_size(h, head, 1UL << bits), GFP_KERNEL_ACCOUNT);
	if (!h)
		return -ENOMEM;
	h->bits = bits;
	h->which = old && !old->which;
	/* Waits for lookups in the hash before @old: it used the nodes that @h uses now. */
	if (old)
		synchronize_rcu();
	replace_hash(old, h);
	return 0;
}

/* ---- Tables ---- */

/* Must be called after each change of a table: starts a new generation. */
static void changed(void)
{
	lockdep_assert_held(&files_lock);
	/* The generation changes after the table was changed and before the old table is freed. */
	smp_wmb();
	WRITE_ONCE(rules_generation, rules_generation + 1);
	update_wanted();
}

static struct rules_table *table_of(const struct ruled_file *r)
{
	return rcu_dereference_protected(r->table, lockdep_is_held(&files_lock));
}

static bool is_before(struct rb_node *a, const struct rb_node *b)
{
	return table_of(rb_entry(a, struct ruled_file, by_id))->id <
	       table_of(rb_entry(b, struct ruled_file, by_id))->id;
}

/* Gives @r the table @table, or removes its table if @table is NULL. */
static void set_table(struct ruled_file *r, struct rules_table *table)
{
	struct rules_table *old = table_of(r);

	lockdep_assert_held(&files_lock);
	if (!old && !table)
		return;
	if (old) {
		rb_erase(&r->by_id, &by_id);
		sums.tables--;
		sums.bytes -= old->bytes;
	}
	rcu_assign_pointer(r->table, table);
	if (table) {
		rb_add(&r->by_id, &by_id, is_before);
		sums.tables++;
		sums.bytes += table->bytes;
	}
	changed();
	if (old)
		kvfree_rcu(old, rcu);
}

/* Returns the sums for all files of owners who count as @user, except @except. */
static struct rules_sums sums_of(kuid_t user, const struct ruled_file *except)
{
	const struct rules_table *t;
	struct rules_sums ret = {};
	const struct ruled_file *r;

	rcu_read_lock();
	list_for_each_entry_rcu(r, &all_files, all) {
		t = rcu_dereference(r->table);
		if (!t || r == except || !uid_eq(rules_counted_user(r->owner), user))
			continue;
		ret.tables++;
		ret.bytes += t->bytes;
	}
	rcu_read_unlock();
	return ret;
}

/*
 * Returns whether the owner of @r has room for the table @t. While the files of all users together
 * take less than one share, nobody's files can take more, and the sums of the owner are not
 * computed.
 */
static bool has_share(const struct ruled_file *r, const struct rules_table *t, u64 limit)
{
	struct rules_sums s = rules_file_sums();
	const u64 tables = SHSTK_RULES_MAX_TABLES / OWNER_SHARE, bytes = limit / OWNER_SHARE;

	if (r == &vdso || uid_eq(r->owner, GLOBAL_ROOT_UID))
		return true;
	if (s.tables >= tables || s.bytes + t->bytes > bytes)
		s = sums_of(rules_counted_user(r->owner), r);
	return s.tables < tables && s.bytes + t->bytes <= bytes;
}

int rules_file_install(struct ruled_file *r, struct rules_table *t, unsigned int changes, u64 limit)
{
	const struct rules_table *old;
	int ret = 0;

	lockdep_assert_held(&rules_change_lock);
	if (!has_share(r, t, limit))
		return -EDQUOT;
	spin_lock(&files_lock);
	old = table_of(r);
	if (!r->watched || r->changes != changes)
		ret = -ESTALE;
	else if (sums.bytes + t->bytes - (old ? old->bytes : 0) > limit ||
		 sums.tables - !!old >= SHSTK_RULES_MAX_TABLES)
		ret = -ENOSPC;
	else if (last_id == U32_MAX)
		ret = -EOVERFLOW;
	if (!ret) {
		t->id = ++last_id;
		set_table(r, t);
	}
	spin_unlock(&files_lock);
	return ret;
}

struct rules_sums rules_file_sums(void)
{
	struct rules_sums ret;

	spin_lock(&files_lock);
	ret = sums;
	spin_unlock(&files_lock);
	return ret;
}

/* Returns the file whose table has the smallest number above @above, or NULL. */
static struct ruled_file *next_above(u32 above)
{
	struct rb_node *node = by_id.rb_node;
	struct ruled_file *found = NULL;

	lockdep_assert_held(&files_lock);
	while (node) {
		struct ruled_file *r = rb_entry(node, struct ruled_file, by_id);

		if (table_of(r)->id > above) {
			found = r;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

bool rules_file_next(u32 above,
		     void (*use)(void *arg, const struct ruled_file *r,
				 const struct rules_table *table),
		     void *arg)
{
	const struct ruled_file *r;

	spin_lock(&files_lock);
	r = next_above(above);
	if (r)
		use(arg, r, table_of(r));
	spin_unlock(&files_lock);
	return r;
}

/* ---- Marks ---- */

static void sweep(struct work_struct *work);
static DECLARE_WORK(sweep_work, sweep);

/*
 * Handles a write event: the file was written to, or the last one who could write to it through a
 * mapping has closed it.
 */
static int on_event(struct fsnotify_mark *mark, u32 mask, struct inode *inode, struct inode *dir,
		    const struct qstr *name, u32 cookie)
{
	struct ruled_file *r = container_of(mark, struct ruled_file, mark);

	if (!(mask & (FS_MODIFY | FS_CLOSE_WRITE)))
		return 0;
	spin_lock(&files_lock);
	r->changes++;
	set_table(r, NULL);
	if (r->watched && list_empty(&r->written))
		list_add_tail(&r->written, &written_files);
	/* Letting go of the file takes a mutex, and a writer must not wait for that. */
	if (!leaving)
		schedule_work(&sweep_work);
	spin_unlock(&files_lock);
	rules_forget_miss(r->key);
	return 0;
}

/*
 * Is called when a mark goes: the inode, its file system or the module goes, or the table was
 * dropped.
 */
static void on_freeing_mark(struct fsnotify_mark *mark, struct fsnotify_group *g)
{
	struct ruled_file *r = container_of(mark, struct ruled_file, mark);

	spin_lock(&files_lock);
	set_table(r, NULL);
	unhash_ruled_file(r);
	spin_unlock(&files_lock);
	rules_forget_miss(r->key);
}

/* Is called when the last reference to a mark is gone. */
static void on_free_mark(struct fsnotify_mark *mark)
{
	struct ruled_file *r = container_of(mark, struct ruled_file, mark);

	spin_lock(&files_lock);
	list_del_rcu(&r->all);
	spin_unlock(&files_lock);
	kfree_rcu(r, rcu);
	atomic_dec(&nr_files);
	wake_up(&files_gone);
}

static const struct fsnotify_ops mark_ops = {
	.handle_inode_event = on_event,
	.freeing_mark = on_freeing_mark,
	.free_mark = on_free_mark,
};

static struct ruled_file *find_ruled_file(struct inode *inode)
{
	struct fsnotify_mark *mark = fsnotify_find_inode_mark(inode, group);

	return mark ? container_of(mark, struct ruled_file, mark) : NULL;
}

/*
 * Begins to watch a file. The file is hashed before it is marked: if the mark goes at once, because
 * the file system is being unmounted, on_freeing_mark() removes the file from the hash again. The
 * caller's file keeps the inode meanwhile. Returns the file with a reference, or an error.
 */
static struct ruled_file *make_ruled_file(struct inode *inode)
{
	struct ruled_file *r;
	int ret;

	ret = grow_hash();
	if (ret)
		return ERR_PTR(ret);
	r = kzalloc_obj(*r, GFP_KERNEL_ACCOUNT);
	if (!r)
		return ERR_PTR(-ENOMEM);
	r->key = inode;
	r->owner = inode->i_uid;
	r->dev = (u64)MAJOR(inode->i_sb->s_dev) << 20 | MINOR(inode->i_sb->s_dev);
	r->ino = inode->i_ino;
	INIT_LIST_HEAD(&r->written);
	atomic_inc(&nr_files);
	fsnotify_init_mark(&r->mark, group);
	/*
	 * Writes through a mapping are reported when the last mapping goes and its file is closed.
	 */
	r->mark.mask = FS_MODIFY | FS_CLOSE_WRITE;
	hash_ruled_file(r);
	ret = fsnotify_add_inode_mark(&r->mark, inode, 0);
	if (ret) {
		on_freeing_mark(&r->mark, group);
		fsnotify_put_mark(&r->mark);
		return ERR_PTR(ret);
	}
	return r;
}

struct ruled_file *rules_file_get(struct inode *inode)
{
	struct ruled_file *r = rules_file_find(inode);

	return r ? r : make_ruled_file(inode);
}

struct ruled_file *rules_file_find(struct inode *inode)
{
	lockdep_assert_held(&rules_change_lock);
	return inode ? find_ruled_file(inode) : &vdso;
}

void rules_file_put(struct ruled_file *r)
{
	if (r != &vdso)
		fsnotify_put_mark(&r->mark);
}

void rules_file_drop(struct ruled_file *r)
{
	lockdep_assert_held(&rules_change_lock);
	if (r == &vdso) {
		spin_lock(&files_lock);
		set_table(r, NULL);
		spin_unlock(&files_lock);
		return;
	}
	fsnotify_destroy_mark(&r->mark, group);
	fsnotify_put_mark(&r->mark);
}

void rules_file_put_or_drop(struct ruled_file *r)
{
	lockdep_assert_held(&rules_change_lock);
	if (r == &vdso || rcu_access_pointer(r->table))
		rules_file_put(r);
	else
		rules_file_drop(r);
}

/* ---- Operations on all files ---- */

/*
 * Returns the file of the next table above *@id, with a reference to its mark, and stores the
 * number of that table in *@id. Returns NULL if there is none.
 */
static struct ruled_file *get_above(u32 *id)
{
	struct ruled_file *r;

	spin_lock(&files_lock);
	r = next_above(*id);
	/*
	 * The mark is still valid, because it is given up only after its file has no table any
	 * more.
	 */
	if (r && r != &vdso)
		refcount_inc(&r->mark.refcnt);
	if (r)
		*id = table_of(r)->id;
	spin_unlock(&files_lock);
	return r;
}

void rules_file_drop_all(void)
{
	struct ruled_file *r;
	u32 id = 0;

	mutex_lock(&rules_change_lock);
	while ((r = get_above(&id))) {
		rules_file_drop(r);
		cond_resched();
	}
	mutex_unlock(&rules_change_lock);
}

/*
 * Takes one file from the list of files that were written to, with a reference to its mark. Returns
 * NULL if there is none.
 */
static struct ruled_file *get_written(void)
{
	struct ruled_file *r;

	spin_lock(&files_lock);
	r = list_first_entry_or_null(&written_files, struct ruled_file, written);
	if (r) {
		list_del_init(&r->written);
		refcount_inc(&r->mark.refcnt);
	}
	spin_unlock(&files_lock);
	return r;
}

/* Lets go of files that were written to, unless they have a new table. */
static void sweep(struct work_struct *work)
{
	struct ruled_file *r;

	mutex_lock(&rules_change_lock);
	while ((r = get_written())) {
		rules_file_put_or_drop(r);
		cond_resched();
	}
	mutex_unlock(&rules_change_lock);
}

int __init rules_files_init(void)
{
	multiplier = get_random_u64() | 1;
	no_ops = kzalloc_obj(*no_ops, GFP_KERNEL);
	if (!no_ops)
		return -ENOMEM;
	group = fsnotify_alloc_group(&mark_ops, 0);
	if (IS_ERR(group)) {
		kfree(no_ops);
		return PTR_ERR(group);
	}
	return 0;
}

/* ---- Unloading ---- */

/*
 * Returns whether somebody else holds the mark of @r, besides the list of marks and the caller, and
 * waits for an answer of fanotify.
 */
static bool is_waited_with(const struct ruled_file *r)
{
	return r != &vdso && atomic_read(&group->user_waits) && refcount_read(&r->mark.refcnt) > 2;
}

static void drop_if_idle(struct ruled_file *r)
{
	if (is_waited_with(r))
		rules_file_put(r);
	else
		rules_file_drop(r);
	cond_resched();
}

/* Drops all files except those for which somebody waits for an answer of fanotify. */
static void drop_idle_files(void)
{
	struct ruled_file *r;
	u32 id = 0;

	mutex_lock(&rules_change_lock);
	while ((r = get_above(&id)))
		drop_if_idle(r);
	while ((r = get_written()))
		drop_if_idle(r);
	mutex_unlock(&rules_change_lock);
}

/* Stops the work item for good. */
static void stop_sweeping(void)
{
	spin_lock(&files_lock);
	leaving = true;
	spin_unlock(&files_lock);
	cancel_work_sync(&sweep_work);
}

/*
 * Takes a reference to every mark that is not being freed already, and never gives it back. Returns
 * the number of such marks.
 */
static unsigned int keep_marks(void)
{
	struct ruled_file *r;
	unsigned int nr = 0;

	spin_lock(&files_lock);
	list_for_each_entry(r, &all_files, all) {
		if (!refcount_inc_not_zero(&r->mark.refcnt))
			continue;
		/* With this mask the mark asks for no event. */
		WRITE_ONCE(r->mark.mask, 0);
		set_table(r, NULL);
		kmemleak_not_leak(r);
		nr++;
	}
	spin_unlock(&files_lock);
	return nr;
}

/*
 * Leaves behind the marks of files that somebody is opening and whose answer from fanotify may
 * never come. These marks are never freed, because one reference is not given back. They still hold
 * their inodes only until the file is deleted or its file system goes, as other marks do. Then the
 * kernel would call us, so the group gets other operations, which are empty. A CPU that has read
 * the old operations is still in one of our functions, none of which sleeps:
 * synchronize_rcu_tasks() waits for it.
 */
static void leave_files(void)
{
	unsigned int nr = keep_marks();

	wait_event(files_gone, atomic_read(&nr_files) == nr);
	WRITE_ONCE(group->ops, no_ops);
	synchronize_rcu_tasks();
	kmemleak_not_leak(group);
	kmemleak_not_leak(no_ops);
	pr_info("%u files are being opened and wait for an answer by fanotify: %zu bytes stay\n",
		nr, nr * sizeof(struct ruled_file) + sizeof(*group) + sizeof(*no_ops));
}

static void free_group(void)
{
	fsnotify_wait_marks_destroyed();
	fsnotify_put_group(group);
	kfree(no_ops);
}

void rules_files_exit(void)
{
	bool left = false;

	stop_sweeping();
	drop_idle_files();
	/*
	 * Somebody who deletes the file may hold a mark that this code cannot see. The function
	 * that frees the last mark may still be running after nr_files is 0.
	 */
	while (!left && !wait_event_timeout(files_gone, !atomic_read(&nr_files), HZ / 4)) {
		left = atomic_read(&group->user_waits);
		if (left)
			leave_files();
	}
	if (!left)
		free_group();
	rcu_barrier();
	kvfree(rcu_dereference_protected(files, true));
}

unsigned long rules_tables(void)
{
	return READ_ONCE(sums.tables);
}

unsigned int rules_files(void)
{
	return atomic_read(&nr_files);
}
