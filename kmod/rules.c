// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules.c - tables of unwind rules: the ioctls that load, drop and list them.
 *
 * Related files: rules_files.c keeps which files have tables, and for how long; rules_miss.c keeps
 * files that need a table; rules_cut.c keeps files in whose code chains end; rules_users.c keeps
 * which ids count as another user; rules_device.c checks who may make which call.
 */
#include <linux/elf.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "rules.h"
#include "rules_call.h"
#include "rules_files.h"
#include "walk.h"

#ifdef CONFIG_X86
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static unsigned long rules_limit = 512UL << 20;
module_param(rules_limit, ulong, 0644);
MODULE_PARM_DESC(rules_limit, "most bytes that all tables of unwind rules may take (536870912)");

/*
 * Gets the file at @fd, with a reference, and the inode by which its mappings are known. @fd of -1
 * means the vdso: *@file and *@inode are NULL then. Returns 0 or -EBADF.
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

/*
 * Returns whether the kernel sends no event for writes to the file: this is a file in memory
 * without a name, unless it is sealed against writes.
 */
static bool is_unwatched(struct inode *inode)
{
	if (!(inode->i_sb->s_flags & SB_KERNMOUNT))
		return false;
	return !shmem_mapping(inode->i_mapping) || !(SHMEM_I(inode)->seals & F_SEAL_WRITE);
}

/* Returns 0 if the file may have a table, or a negative errno. @inode is NULL for the vdso. */
static int loadable(struct inode *inode)
{
	if (!inode)
		return 0;
	if (S_ISDIR(inode->i_mode))
		return -EISDIR;
	if (!S_ISREG(inode->i_mode))
		return -ENODEV;
	return inode_is_open_for_write(inode) || is_unwatched(inode) ? -ETXTBSY : 0;
}

/*
 * Returns how much memory to count for a table of @size bytes at @t. @file: also count what the
 * kernel keeps for the file of the table.
 */
static size_t bytes_of(const struct rules_table *t, size_t size, bool file)
{
	return (is_vmalloc_addr(t) ? PAGE_ALIGN(size) : ksize(t)) + (file ? RULES_FILE_BYTES : 0);
}

/*
 * Copies the table from user space and checks it. @inode is NULL for the vdso. Returns the table or
 * an error.
 */
static struct rules_table *copy_table(const struct shstk_rules_load *arg, const struct inode *inode)
{
	struct rules_table *t;
	int ret = -EFAULT;

	/*
	 * A size that no table can have, or that has no room, is refused before anything is copied.
	 */
	if (arg->size < sizeof(struct shstk_rules_header) || arg->size > INT_MAX)
		return ERR_PTR(-EINVAL);
	if (arg->size > READ_ONCE(rules_limit))
		return ERR_PTR(-ENOSPC);
	/* If memory is short the upload fails, and no process is killed for it. */
	t = kvmalloc(sizeof(*t) + arg->size,
		     GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	if (!t)
		return ERR_PTR(-ENOMEM);
	memset(t, 0, sizeof(*t));
	t->bytes = bytes_of(t, sizeof(*t) + arg->size, inode);
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

/*
 * Returns whether the file is still the same as when the table was made, as far as the caller told
 * its time of change.
 */
static bool is_as_told(const struct inode *inode, const struct shstk_rules_load *arg)
{
	struct timespec64 now;

	if (!inode || !(arg->change_sec || arg->change_nsec))
		return true;
	now = inode_get_ctime(inode);
	return (u64)now.tv_sec == arg->change_sec && now.tv_nsec == arg->change_nsec;
}

/*
 * Gives the file of @inode the table @t. A change of the file that comes after r->changes is read
 * is noticed by rules_file_install(). Returns 0 or a negative errno.
 */
static int install_table(struct inode *inode, struct rules_table *t,
			 const struct shstk_rules_load *arg)
{
	struct ruled_file *r = rules_file_get(inode);
	unsigned int changes;
	int ret;

	if (IS_ERR(r))
		return PTR_ERR(r);
	changes = READ_ONCE(r->changes);
	ret = loadable(inode);
	if (!ret && !is_as_told(inode, arg))
		ret = -ESTALE;
	if (!ret)
		ret = rules_file_install(r, t, changes, READ_ONCE(rules_limit));
	/* A file without a table keeps no mark. */
	rules_file_put_or_drop(r);
	return ret;
}

int rules_call_load(const struct shstk_rules_load *arg)
{
	struct rules_table *t;
	struct inode *inode;
	struct file *file;
	int ret;

	if (arg->flags || arg->reserved || arg->name[sizeof(arg->name) - 1])
		return -EINVAL;
	ret = get_inode(arg->fd, &file, &inode);
	if (ret)
		return ret;
	ret = loadable(inode);
	if (ret)
		goto put_file;
	t = copy_table(arg, inode);
	ret = PTR_ERR_OR_ZERO(t);
	if (ret)
		goto put_file;

	mutex_lock(&rules_change_lock);
	ret = walk_remember();
	if (!ret)
		ret = install_table(inode, t, arg);
	mutex_unlock(&rules_change_lock);
	if (ret)
		kvfree(t);
put_file:
	put_file(file);
	return ret;
}

static int drop_one(int fd)
{
	struct ruled_file *r;
	struct inode *inode;
	struct file *file;
	bool had = false;
	int ret;

	ret = get_inode(fd, &file, &inode);
	if (ret)
		return ret;
	mutex_lock(&rules_change_lock);
	r = rules_file_find(inode);
	if (r) {
		had = rcu_access_pointer(r->table);
		rules_file_drop(r);
	}
	mutex_unlock(&rules_change_lock);
	put_file(file);
	return had ? 0 : -ENOENT;
}

int rules_call_drop(const struct shstk_rules_drop *arg)
{
	if (arg->flags & ~SHSTK_RULES_DROP_ALL)
		return -EINVAL;
	if (!(arg->flags & SHSTK_RULES_DROP_ALL))
		return drop_one(arg->fd);
	rules_file_drop_all();
	return 0;
}

static void list_one(void *to, const struct ruled_file *r, const struct rules_table *t)
{
	struct shstk_rules_list *arg = to;

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

/* Describes the table with the smallest number above @arg->id. Returns -ENOENT if there is none. */
int rules_call_list(struct shstk_rules_list *arg)
{
	if (arg->reserved)
		return -EINVAL;
	return rules_file_next(arg->id, list_one, arg) ? 0 : -ENOENT;
}

int rules_call_info(struct shstk_rules_info *arg)
{
	struct rules_sums sums = rules_file_sums();

	arg->version = SHSTK_RULES_VERSION;
	arg->machine = MACHINE;
	arg->tables = sums.tables;
	arg->bytes = sums.bytes;
	arg->limit = READ_ONCE(rules_limit);
	arg->abi = SHSTK_RULES_ABI;
	arg->max_tables = SHSTK_RULES_MAX_TABLES;
	return 0;
}
