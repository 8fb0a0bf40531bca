// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules.c - tables of unwind rules: upload and life.
 *
 * A table belongs to an inode. What ties them is an fsnotify mark: it holds the inode,
 * so its address names it, and goes with it when the file is deleted or its file system
 * is unmounted, which it does not hinder. A write to the file drops the table. On
 * overlayfs that inode is the lower or upper one, which is what is mapped.
 *
 * A struct ruled_file is there as long as its mark; its table comes, is replaced and goes.
 * Walks find both under RCU and never look into the inode.
 *
 * Beside it: rules_miss.c, files that have no table; rules_cut.c, files in which chains
 * end; rules_device.c, the calls.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "compat.h"
#include "rules.h"
#include "rules_call.h"

#ifdef CONFIG_X86
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

#define HASH_BITS 10

/**
 * struct ruled_file - a file that has a table, or will have one
 * @node: in the hash table, by @key.
 * @mark: on the inode; not of the vdso's.
 * @rcu: it is freed after a grace period.
 * @key: what mappings of it are known by.
 * @table: its table, or NULL.
 * @dev: device number of its file system.
 * @ino: inode number.
 */
struct ruled_file {
	struct hlist_node node;
	struct fsnotify_mark mark;
	struct rcu_head rcu;
	const void *key;
	struct rules_table __rcu *table;
	u64 dev;
	u64 ino;
};

static unsigned long rules_limit = 512UL << 20;
module_param(rules_limit, ulong, 0644);
MODULE_PARM_DESC(rules_limit, "most bytes that all tables of unwind rules may take (536870912)");

unsigned long rules_generation = 1;
bool rules_wanted;
const char rules_vdso_key[1];

static struct ruled_file vdso = { .key = rules_vdso_key };
static struct fsnotify_group *group;

/* One upload or removal at a time. Taken before files_lock. */
static DEFINE_MUTEX(change_lock);

/* Of the hash table, of which tables are in it, and of these. */
static DEFINE_SPINLOCK(files_lock);
static struct hlist_head files[1 << HASH_BITS];
static u64 nr_tables, nr_bytes;
static u32 last_id;

/* Marks that are not freed yet. Their callbacks are ours. */
static atomic_t nr_files;
static DECLARE_WAIT_QUEUE_HEAD(files_gone);

static void update_wanted(void)
{
	lockdep_assert_held(&files_lock);
	WRITE_ONCE(rules_wanted, nr_tables || rules_listeners());
}

void rules_update_wanted(void)
{
	spin_lock(&files_lock);
	update_wanted();
	spin_unlock(&files_lock);
}

const struct rules_table *rules_find(const void *key)
{
	struct ruled_file *r;

	hlist_for_each_entry_rcu(r, &files[hash_ptr(key, HASH_BITS)], node,
				 rcu_read_lock_any_held())
		if (r->key == key)
			return rcu_dereference_check(r->table, rcu_read_lock_any_held());
	return NULL;
}

static void changed(void)
{
	lockdep_assert_held(&files_lock);
	/* After what was changed, before what was taken out is freed. */
	smp_wmb();
	WRITE_ONCE(rules_generation, rules_generation + 1);
	update_wanted();
}

/* Give @r another table, or none. */
static void set_table(struct ruled_file *r, struct rules_table *table)
{
	struct rules_table *old;

	lockdep_assert_held(&files_lock);
	old = rcu_replace_pointer(r->table, table, lockdep_is_held(&files_lock));
	if (table) {
		nr_tables++;
		nr_bytes += table->bytes;
	}
	if (old) {
		nr_tables--;
		nr_bytes -= old->bytes;
	}
	if (!old && !table)
		return;
	changed();
	if (old)
		kvfree_rcu(old, rcu);
}

static int on_event(struct fsnotify_mark *mark, u32 mask, struct inode *inode, struct inode *dir,
		    const struct qstr *name, u32 cookie)
{
	if (mask & FS_MODIFY)
		fsnotify_destroy_mark(mark, group);
	return 0;
}

/* The inode, its file system or the module goes, the table was dropped, or the file written to. */
static void on_freeing_mark(struct fsnotify_mark *mark, struct fsnotify_group *g)
{
	struct ruled_file *r = container_of(mark, struct ruled_file, mark);

	spin_lock(&files_lock);
	set_table(r, NULL);
	if (!hlist_unhashed(&r->node))
		hlist_del_init_rcu(&r->node);
	spin_unlock(&files_lock);
	rules_forget_miss(r->key);
}

static void on_free_mark(struct fsnotify_mark *mark)
{
	struct ruled_file *r = container_of(mark, struct ruled_file, mark);

	kfree_rcu(r, rcu);
	if (atomic_dec_and_test(&nr_files))
		wake_up(&files_gone);
}

static const struct fsnotify_ops mark_ops = {
	.handle_inode_event = on_event,
	.freeing_mark = on_freeing_mark,
	.free_mark = on_free_mark,
};

static void hash_ruled_file(struct ruled_file *r)
{
	spin_lock(&files_lock);
	hlist_add_head_rcu(&r->node, &files[hash_ptr(r->key, HASH_BITS)]);
	spin_unlock(&files_lock);
}

/* With a reference to its mark; NULL: there is none. */
static struct ruled_file *find_ruled_file(struct inode *inode)
{
	struct fsnotify_mark *mark = fsnotify_find_inode_mark(inode, group);

	return mark ? container_of(mark, struct ruled_file, mark) : NULL;
}

/*
 * It is hashed before it is marked: a mark that goes at once, as the file system is
 * being unmounted, takes it out again. The caller's file keeps the inode meanwhile.
 */
static struct ruled_file *make_ruled_file(struct inode *inode)
{
	struct ruled_file *r;
	int ret;

	r = kzalloc_obj(*r, GFP_KERNEL_ACCOUNT);
	if (!r)
		return ERR_PTR(-ENOMEM);
	r->key = inode;
	r->dev = (u64)MAJOR(inode->i_sb->s_dev) << 20 | MINOR(inode->i_sb->s_dev);
	r->ino = inode->i_ino;
	atomic_inc(&nr_files);
	fsnotify_init_mark(&r->mark, group);
	r->mark.mask = FS_MODIFY;
	hash_ruled_file(r);
	ret = fsnotify_add_inode_mark(&r->mark, inode, 0);
	if (ret) {
		on_freeing_mark(&r->mark, group);
		fsnotify_put_mark(&r->mark);
		return ERR_PTR(ret);
	}
	return r;
}

static struct ruled_file *get_ruled_file(struct inode *inode)
{
	struct ruled_file *r;

	lockdep_assert_held(&change_lock);
	if (!inode)
		return &vdso;
	r = find_ruled_file(inode);
	return r ? r : make_ruled_file(inode);
}

static void put_ruled_file(struct ruled_file *r)
{
	if (r != &vdso)
		fsnotify_put_mark(&r->mark);
}

/*
 * The inode that mappings of the file at @fd are known by; *@file receives a reference.
 * -1 is the vdso: *@file and the inode are NULL then.
 */
static int get_inode(int fd, struct file **file, struct inode **inode)
{
	*file = NULL;
	*inode = NULL;
	if (fd == -1)
		return 0;
	*file = fget(fd);
	if (!*file)
		return -EBADF;
	if (!((*file)->f_mode & FMODE_READ))
		goto bad;
	*inode = d_real_inode((*file)->f_path.dentry);
	return 0;
bad:
	fput(*file);
	*file = NULL;
	return -EBADF;
}

static void put_file(struct file *file)
{
	if (file)
		fput(file);
}

static int loadable(struct inode *inode)
{
	if (!inode)
		return 0;
	if (S_ISDIR(inode->i_mode))
		return -EISDIR;
	if (!S_ISREG(inode->i_mode))
		return -ENODEV;
	return inode_is_open_for_write(inode) ? -ETXTBSY : 0;
}

static struct rules_table *copy_table(const struct shstk_rules_load *arg)
{
	struct rules_table *t;
	int ret = -EFAULT;

	/* What cannot be one, or has no room, is not even copied. */
	if (arg->size < sizeof(struct shstk_rules_header) || arg->size > INT_MAX)
		return ERR_PTR(-EINVAL);
	if (arg->size > READ_ONCE(rules_limit))
		return ERR_PTR(-ENOSPC);
	/* Where memory is short the upload fails, and no process is killed for it. */
	t = kvmalloc(sizeof(*t) + arg->size,
		     GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	if (!t)
		return ERR_PTR(-ENOMEM);
	memset(t, 0, sizeof(*t));
	t->bytes = sizeof(*t) + arg->size;
	t->uid = current_uid();
	strscpy(t->name, arg->name, sizeof(t->name));
	if (!copy_from_user(t->data, u64_to_user_ptr(arg->table), arg->size))
		ret = ushstk_rules_check(t->data, arg->size, MACHINE, &t->view);
	if (ret) {
		kvfree(t);
		return ERR_PTR(ret);
	}
	return t;
}

/* Return: 0, and @t is the file's; or why not. */
static int install_table(struct ruled_file *r, struct rules_table *t)
{
	struct rules_table *old;
	u64 after;
	int ret = 0;

	spin_lock(&files_lock);
	old = rcu_dereference_protected(r->table, lockdep_is_held(&files_lock));
	after = nr_bytes + t->bytes - (old ? old->bytes : 0);
	if (hlist_unhashed(&r->node))
		ret = -ESTALE; /* its file system is going, or somebody wrote to it */
	else if (after > READ_ONCE(rules_limit))
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

static void drop_ruled_file(struct ruled_file *r)
{
	lockdep_assert_held(&change_lock);
	if (r == &vdso) {
		spin_lock(&files_lock);
		set_table(r, NULL);
		spin_unlock(&files_lock);
		return;
	}
	fsnotify_destroy_mark(&r->mark, group);
	fsnotify_put_mark(&r->mark);
}

int rules_call_load(const struct shstk_rules_load *arg)
{
	struct rules_table *t;
	struct ruled_file *r;
	struct inode *inode;
	struct file *file;
	int ret;

	if (arg->flags || arg->name[sizeof(arg->name) - 1])
		return -EINVAL;
	ret = get_inode(arg->fd, &file, &inode);
	if (ret)
		return ret;
	ret = loadable(inode);
	if (ret)
		goto put_file;
	t = copy_table(arg);
	ret = PTR_ERR_OR_ZERO(t);
	if (ret)
		goto put_file;

	mutex_lock(&change_lock);
	r = get_ruled_file(inode);
	ret = PTR_ERR_OR_ZERO(r);
	if (!ret) {
		ret = install_table(r, t);
		/* No mark stays without a table. */
		if (ret && r != &vdso && !rcu_access_pointer(r->table))
			drop_ruled_file(r);
		else
			put_ruled_file(r);
	}
	mutex_unlock(&change_lock);
	if (ret)
		kvfree(t);
put_file:
	put_file(file);
	return ret;
}

/* With a reference to its mark. That one is held as long as it is hashed. */
static struct ruled_file *first_ruled_file(void)
{
	struct ruled_file *r = NULL;
	int i;

	spin_lock(&files_lock);
	for (i = 0; i < ARRAY_SIZE(files) && !r; i++)
		hlist_for_each_entry(r, &files[i], node)
			if (r != &vdso && refcount_inc_not_zero(&r->mark.refcnt))
				break;
	spin_unlock(&files_lock);
	return r;
}

static void drop_all(void)
{
	struct ruled_file *r;

	mutex_lock(&change_lock);
	while ((r = first_ruled_file())) {
		drop_ruled_file(r);
		cond_resched();
	}
	drop_ruled_file(&vdso);
	mutex_unlock(&change_lock);
}

static int drop_one(int fd)
{
	struct ruled_file *r;
	struct inode *inode;
	struct file *file;
	int ret;

	ret = get_inode(fd, &file, &inode);
	if (ret)
		return ret;
	mutex_lock(&change_lock);
	r = inode ? find_ruled_file(inode) : &vdso;
	if (r && !rcu_access_pointer(r->table)) {
		put_ruled_file(r);
		r = NULL;
	}
	if (r)
		drop_ruled_file(r);
	mutex_unlock(&change_lock);
	put_file(file);
	return r ? 0 : -ENOENT;
}

int rules_call_drop(const struct shstk_rules_drop *arg)
{
	if (arg->flags & ~SHSTK_RULES_DROP_ALL)
		return -EINVAL;
	if (!(arg->flags & SHSTK_RULES_DROP_ALL))
		return drop_one(arg->fd);
	drop_all();
	return 0;
}

static void list_one(const struct ruled_file *r, const struct rules_table *t,
		     struct shstk_rules_list *arg)
{
	arg->id = t->id;
	arg->uid = from_kuid_munged(current_user_ns(), t->uid);
	arg->dev = r->dev;
	arg->ino = r->ino;
	arg->bytes = t->bytes;
	arg->nr_rules = t->view.nr_rules;
	arg->nr_pages = t->view.nr_pages;
	arg->nr_rows = t->view.nr_rows;
	memcpy(arg->name, t->name, sizeof(arg->name));
}

/* The table with the smallest number above @arg->id. */
int rules_call_list(struct shstk_rules_list *arg)
{
	u32 above = arg->id;
	struct ruled_file *r;
	int i, ret = -ENOENT;

	if (arg->reserved)
		return -EINVAL;
	rcu_read_lock();
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		hlist_for_each_entry_rcu(r, &files[i], node) {
			const struct rules_table *t = rcu_dereference(r->table);

			if (!t || t->id <= above || (!ret && t->id >= arg->id))
				continue;
			list_one(r, t, arg);
			ret = 0;
		}
	}
	rcu_read_unlock();
	return ret;
}

unsigned long rules_tables(void)
{
	return READ_ONCE(nr_tables);
}

unsigned int rules_files(void)
{
	return atomic_read(&nr_files);
}

int rules_call_info(struct shstk_rules_info *arg)
{
	arg->version = SHSTK_RULES_VERSION;
	arg->machine = MACHINE;
	spin_lock(&files_lock);
	arg->tables = nr_tables;
	arg->bytes = nr_bytes;
	spin_unlock(&files_lock);
	arg->limit = READ_ONCE(rules_limit);
	return 0;
}

int __init rules_tables_init(void)
{
	group = fsnotify_alloc_group(&mark_ops, 0);
	if (IS_ERR(group))
		return PTR_ERR(group);
	hash_ruled_file(&vdso);
	return 0;
}

void rules_tables_exit(void)
{
	drop_all();
	/*
	 * A mark may also be in the hands of who deletes its file, out of our sight. What
	 * frees the last one is in our code still when it is waited for.
	 */
	wait_event(files_gone, !atomic_read(&nr_files));
	fsnotify_wait_marks_destroyed();
	fsnotify_put_group(group);
}
