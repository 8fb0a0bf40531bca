// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules.c - tables of unwind rules: upload, life, and the files that have none.
 *
 * A table belongs to an inode. What ties them is an fsnotify mark: it holds the inode,
 * so its address names it, and goes with it when the file is deleted or its file system
 * is unmounted, which it does not hinder. A write to the file drops the table. On
 * overlayfs that inode is the lower or upper one, which is what is mapped.
 *
 * A struct subject is there as long as its mark; its table comes, is replaced and goes.
 * Walks find both under RCU and never look into the inode.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/hash.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/magic.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "rules.h"

#ifdef CONFIG_X86
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

#define HASH_BITS 10

/**
 * struct subject - a file that has, or had, a table
 * @node: in the hash table, by @key.
 * @mark: on the inode; not of the vdso's.
 * @rcu: it is freed after a grace period.
 * @key: what mappings of it are known by.
 * @table: its table, or NULL.
 * @dev: device number of its file system.
 * @ino: inode number.
 */
struct subject {
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

static struct subject vdso = { .key = rules_vdso_key };
static struct fsnotify_group *group;

/* One upload or removal at a time. Taken before subjects_lock. */
static DEFINE_MUTEX(change_lock);

/* Of the hash table, of which tables are in it, and of these. */
static DEFINE_SPINLOCK(subjects_lock);
static struct hlist_head subjects[1 << HASH_BITS];
static u64 nr_tables, nr_bytes;
static u32 last_id;

static atomic_t nr_listeners;

/* Marks that are not freed yet. Their callbacks are ours. */
static atomic_t nr_subjects;
static DECLARE_WAIT_QUEUE_HEAD(subjects_gone);

static void update_wanted(void)
{
	lockdep_assert_held(&subjects_lock);
	WRITE_ONCE(rules_wanted, nr_tables || atomic_read(&nr_listeners));
}

const struct rules_table *rules_find(const void *key)
{
	struct subject *s;

	hlist_for_each_entry_rcu(s, &subjects[hash_ptr(key, HASH_BITS)], node,
				 rcu_read_lock_any_held())
		if (s->key == key)
			return rcu_dereference_check(s->table, rcu_read_lock_any_held());
	return NULL;
}

/* --- files without a table --- */

#define NR_MISSES 64
#define MISSES_OF_USER (NR_MISSES / 2)
#define MISSES_OF_PROCESS 8
#define MISS_LIFE (2 * HZ)
#define ASKED_BITS 10
#define ASKED_LIFE (30 * HZ)

/*
 * A slot is filled in whatever context a sample is taken, NMI too: its state says whose
 * it is. Of the mm only the struct is held: what is mapped goes with its process, so that
 * no file system stays busy because of a miss. Then there is nothing to tell, and the next
 * process that runs the file is asked for it.
 */
enum { MISS_FREE, MISS_BUSY, MISS_FULL };

struct miss {
	atomic_t state;
	struct mm_struct *mm;
	struct pid *pid;
	kuid_t uid;
	const void *key;
	u64 addr;
	unsigned long when;
};

static struct miss misses[NR_MISSES];

/* Two CPUs may ask for one file at the same time: then it is asked for twice. */
static struct {
	const void *key;
	unsigned long when;
} asked[1 << ASKED_BITS];

static DECLARE_WAIT_QUEUE_HEAD(miss_wait);

enum misses { ALL_MISSES, LATE_MISSES };

static bool take_miss(struct miss *ret, enum misses which)
{
	int i;

	for (i = 0; i < NR_MISSES; i++) {
		struct miss *m = &misses[i];

		if (atomic_cmpxchg_acquire(&m->state, MISS_FULL, MISS_BUSY) != MISS_FULL)
			continue;
		if (which == LATE_MISSES && time_before(jiffies, m->when + MISS_LIFE)) {
			atomic_set_release(&m->state, MISS_FULL);
			continue;
		}
		*ret = *m;
		atomic_set_release(&m->state, MISS_FREE);
		return true;
	}
	return false;
}

static bool any_miss(void)
{
	int i;

	for (i = 0; i < NR_MISSES; i++)
		if (atomic_read(&misses[i].state) == MISS_FULL)
			return true;
	return false;
}

static void put_miss(struct miss *m)
{
	mmdrop(m->mm);
	put_pid(m->pid);
}

static void forget_asked(const void *key)
{
	cmpxchg(&asked[hash_ptr(key, ASKED_BITS)].key, key, NULL);
}

static void drop_misses(enum misses which)
{
	struct miss m;

	while (take_miss(&m, which)) {
		forget_asked(m.key);
		put_miss(&m);
		cond_resched();
	}
}

static void expire_misses(struct work_struct *work);
static DECLARE_DELAYED_WORK(expire_work, expire_misses);

static void expire_misses(struct work_struct *work)
{
	drop_misses(LATE_MISSES);
	if (!any_miss())
		return;
	/* A reader that looked while one was taken here and put back sleeps. */
	wake_up_interruptible(&miss_wait);
	schedule_delayed_work(&expire_work, MISS_LIFE);
}

static void announce_miss(struct irq_work *work)
{
	wake_up_interruptible(&miss_wait);
	schedule_delayed_work(&expire_work, MISS_LIFE);
}

static struct irq_work miss_work = IRQ_WORK_INIT(announce_miss);

static bool asked_lately(const void *key)
{
	unsigned int i = hash_ptr(key, ASKED_BITS);

	if (READ_ONCE(asked[i].key) == key &&
	    time_before(jiffies, READ_ONCE(asked[i].when) + ASKED_LIFE))
		return true;
	WRITE_ONCE(asked[i].when, jiffies);
	WRITE_ONCE(asked[i].key, key);
	return false;
}

/*
 * Whether there is room for one more of current's: neither a process nor a user takes it
 * from all others. What is counted may just be changing: then it is one too many or too few.
 */
static bool has_room_for_miss(void)
{
	unsigned int of_process = 0, of_user = 0;
	int i;

	for (i = 0; i < NR_MISSES; i++) {
		const struct miss *m = &misses[i];

		if (atomic_read(&m->state) != MISS_FULL)
			continue;
		of_process += READ_ONCE(m->mm) == current->mm;
		of_user += uid_eq(READ_ONCE(m->uid), current_uid());
	}
	return of_process < MISSES_OF_PROCESS && of_user < MISSES_OF_USER;
}

static bool queue_miss(const void *key, u64 addr)
{
	int i;

	for (i = 0; i < NR_MISSES; i++) {
		struct miss *m = &misses[i];

		if (atomic_cmpxchg_acquire(&m->state, MISS_FREE, MISS_BUSY) != MISS_FREE)
			continue;
		mmgrab(current->mm);
		WRITE_ONCE(m->mm, current->mm);
		WRITE_ONCE(m->uid, current_uid());
		m->pid = get_pid(task_tgid(current));
		m->key = key;
		m->addr = addr;
		m->when = jiffies;
		atomic_set_release(&m->state, MISS_FULL);
		irq_work_queue(&miss_work);
		return true;
	}
	return false;
}

void rules_miss(const void *key, u64 addr)
{
	if (!atomic_read(&nr_listeners) || asked_lately(key))
		return;
	if (!has_room_for_miss() || !queue_miss(key, addr))
		forget_asked(key);
}

/* The mapped file, if it is the one that was missed still; a reference, or NULL. */
static struct file *find_mapped(struct mm_struct *mm, const struct miss *m)
{
	struct vm_area_struct *vma;
	struct file *file = NULL;

	if (mmap_read_lock_killable(mm))
		return NULL;
	vma = vma_lookup(mm, m->addr);
	if (vma && vma->vm_file && file_inode(vma->vm_file) == m->key)
		file = get_file(vma->vm_file);
	mmap_read_unlock(mm);
	return file;
}

static struct file *miss_file(const struct miss *m)
{
	struct file *file;

	if (!mmget_not_zero(m->mm)) {
		forget_asked(m->key);
		return NULL;
	}
	file = find_mapped(m->mm, m);
	/*
	 * The last one to leave an address space waits for its asynchronous I/O, which may be
	 * in the hands of another program: not here.
	 */
	mmput_async(m->mm);
	return file;
}

/*
 * Who opens a file of FUSE waits for the program that serves it. It may be anybody's, and
 * never answer. That of virtiofs is the host.
 */
static bool is_served_by_program(const struct super_block *sb)
{
	return sb->s_iflags & SB_I_UNTRUSTED_MOUNTER ||
	       (sb->s_magic == FUSE_SUPER_MAGIC && strcmp(sb->s_type->name, "virtiofs"));
}

/* NULL: it is unmapped meanwhile, or not to be opened. */
static struct file *open_miss(const struct miss *m)
{
	struct file *mapped = miss_file(m), *file = NULL;

	if (!mapped)
		return NULL;
	if (!is_served_by_program(file_inode(mapped)->i_sb))
		file = dentry_open(&mapped->f_path, O_RDONLY | O_LARGEFILE | O_CLOEXEC,
				   current_cred());
	fput(mapped);
	return IS_ERR(file) ? NULL : file;
}

/* Files that cannot be opened are passed over: fanotify, a security module may say no. */
static int next_miss(struct file *device, struct file **file, struct shstk_rules_miss *arg)
{
	struct miss m;
	int ret;

	while (!fatal_signal_pending(current)) {
		if (!take_miss(&m, ALL_MISSES)) {
			if (device->f_flags & O_NONBLOCK)
				return -EAGAIN;
			ret = wait_event_interruptible(miss_wait, any_miss());
			if (ret)
				return ret;
			continue;
		}
		arg->pid = pid_vnr(m.pid);
		arg->addr = m.addr;
		*file = open_miss(&m);
		put_miss(&m);
		if (*file)
			return 0;
	}
	return -EINTR;
}

static void start_listening(struct file *device)
{
	mutex_lock(&change_lock);
	if (!device->private_data) {
		device->private_data = &nr_listeners;
		atomic_inc(&nr_listeners);
		spin_lock(&subjects_lock);
		update_wanted();
		spin_unlock(&subjects_lock);
	}
	mutex_unlock(&change_lock);
}

static int call_miss(struct file *device, struct shstk_rules_miss __user *user)
{
	struct shstk_rules_miss arg = {};
	struct file *file;
	int ret;

	start_listening(device);
	ret = next_miss(device, &file, &arg);
	if (ret)
		return ret;
	arg.fd = get_unused_fd_flags(O_CLOEXEC);
	if (arg.fd < 0) {
		fput(file);
		return arg.fd;
	}
	if (copy_to_user(user, &arg, sizeof(arg))) {
		put_unused_fd(arg.fd);
		fput(file);
		return -EFAULT;
	}
	fd_install(arg.fd, file);
	return 0;
}

/* --- files in which chains end --- */

#define CUT_BITS 6
#define CUT_PROBES 8
#define CUT_LIFE HZ /* no other file takes the place of one that was counted just now */

/*
 * The numbers of a slot are its owner's, who writes them after @id. It is another's when
 * @id is; what is counted for both meanwhile, for a moment, is no harm.
 */
struct cut {
	atomic64_t id; /* of the file, not 0 */
	unsigned long when; /* counted last */
	u64 dev, ino, offset;
	atomic64_t count[RULES_CUTS];
};

static struct cut cuts[1 << CUT_BITS];

/*
 * What identifies a file to user space. The inode may be going just now: then these are
 * any numbers.
 */
static bool read_inode(const void *key, u64 *dev, u64 *ino)
{
	typeof_member(struct inode, i_ino) number;
	const struct inode *inode = key;
	const struct super_block *sb;
	dev_t s_dev;

	*dev = 0;
	*ino = key == rules_vdso_key;
	if (!key || key == rules_vdso_key)
		return true;
	if (get_kernel_nofault(number, &inode->i_ino) ||
	    get_kernel_nofault(sb, (const struct super_block **)&inode->i_sb) ||
	    get_kernel_nofault(s_dev, &sb->s_dev))
		return false;
	*dev = (u64)MAJOR(s_dev) << 20 | MINOR(s_dev);
	*ino = number;
	return true;
}

static bool take_cut(struct cut *c, u64 was, u64 id, u64 dev, u64 ino)
{
	int i;

	if (atomic64_cmpxchg(&c->id, was, id) != was)
		return false;
	WRITE_ONCE(c->dev, dev);
	WRITE_ONCE(c->ino, ino);
	for (i = 0; i < RULES_CUTS; i++)
		atomic64_set(&c->count[i], 0);
	return true;
}

/* Its slot, or a free one, or that of the file that was not counted for longest. */
static struct cut *cut_of(u64 dev, u64 ino)
{
	u64 id = (hash_64(dev, 64) ^ hash_64(ino + 1, 64)) | 1;
	unsigned int first = hash_64(id, CUT_BITS), i;
	struct cut *oldest = NULL;

	for (i = 0; i < CUT_PROBES; i++) {
		struct cut *c = &cuts[(first + i) % ARRAY_SIZE(cuts)];
		u64 was = atomic64_read(&c->id);

		if (was == id || (!was && take_cut(c, 0, id, dev, ino)))
			return c;
		if (!oldest || time_before(READ_ONCE(c->when), READ_ONCE(oldest->when)))
			oldest = c;
	}
	if (time_before(jiffies, READ_ONCE(oldest->when) + CUT_LIFE) ||
	    !take_cut(oldest, atomic64_read(&oldest->id), id, dev, ino))
		return NULL;
	return oldest;
}

void rules_cut(const void *key, u64 offset, enum rules_cut_why why)
{
	struct cut *c;
	u64 dev, ino;

	if (!read_inode(key, &dev, &ino))
		return;
	c = cut_of(dev, ino);
	if (!c)
		return;
	WRITE_ONCE(c->when, jiffies);
	WRITE_ONCE(c->offset, offset);
	atomic64_inc(&c->count[why]);
}

static int call_cuts(struct shstk_rules_cuts *arg)
{
	u32 i = arg->index;

	if (arg->reserved)
		return -EINVAL;
	for (; i < ARRAY_SIZE(cuts); i++) {
		const struct cut *c = &cuts[array_index_nospec(i, ARRAY_SIZE(cuts))];
		u64 id = atomic64_read(&c->id);

		if (!id)
			continue;
		arg->index = i + 1;
		arg->dev = READ_ONCE(c->dev);
		arg->ino = READ_ONCE(c->ino);
		arg->offset = READ_ONCE(c->offset);
		arg->no_table = atomic64_read(&c->count[RULES_CUT_TABLE]);
		arg->no_rule = atomic64_read(&c->count[RULES_CUT_RULE]);
		arg->no_kind = atomic64_read(&c->count[RULES_CUT_KIND]);
		/* Else it came to be another file's meanwhile. */
		smp_rmb();
		if (atomic64_read(&c->id) == id)
			return 0;
	}
	return -ENOENT;
}

/* --- tables --- */

static void changed(void)
{
	lockdep_assert_held(&subjects_lock);
	/* After what was changed, before what was taken out is freed. */
	smp_wmb();
	WRITE_ONCE(rules_generation, rules_generation + 1);
	update_wanted();
}

/* Give @s another table, or none. */
static void set_table(struct subject *s, struct rules_table *table)
{
	struct rules_table *old;

	lockdep_assert_held(&subjects_lock);
	old = rcu_replace_pointer(s->table, table, lockdep_is_held(&subjects_lock));
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
	struct subject *s = container_of(mark, struct subject, mark);

	spin_lock(&subjects_lock);
	set_table(s, NULL);
	if (!hlist_unhashed(&s->node))
		hlist_del_init_rcu(&s->node);
	spin_unlock(&subjects_lock);
	forget_asked(s->key);
}

static void on_free_mark(struct fsnotify_mark *mark)
{
	struct subject *s = container_of(mark, struct subject, mark);

	kfree_rcu(s, rcu);
	if (atomic_dec_and_test(&nr_subjects))
		wake_up(&subjects_gone);
}

static const struct fsnotify_ops mark_ops = {
	.handle_inode_event = on_event,
	.freeing_mark = on_freeing_mark,
	.free_mark = on_free_mark,
};

static void hash_subject(struct subject *s)
{
	spin_lock(&subjects_lock);
	hlist_add_head_rcu(&s->node, &subjects[hash_ptr(s->key, HASH_BITS)]);
	spin_unlock(&subjects_lock);
}

/* With a reference to its mark; NULL: there is none. */
static struct subject *find_subject(struct inode *inode)
{
	struct fsnotify_mark *mark = fsnotify_find_inode_mark(inode, group);

	return mark ? container_of(mark, struct subject, mark) : NULL;
}

/*
 * It is hashed before it is marked: a mark that goes at once, as the file system is
 * being unmounted, takes it out again. The caller's file keeps the inode meanwhile.
 */
static struct subject *make_subject(struct inode *inode)
{
	struct subject *s;
	int ret;

	s = kzalloc_obj(*s, GFP_KERNEL_ACCOUNT);
	if (!s)
		return ERR_PTR(-ENOMEM);
	s->key = inode;
	s->dev = (u64)MAJOR(inode->i_sb->s_dev) << 20 | MINOR(inode->i_sb->s_dev);
	s->ino = inode->i_ino;
	atomic_inc(&nr_subjects);
	fsnotify_init_mark(&s->mark, group);
	s->mark.mask = FS_MODIFY;
	hash_subject(s);
	ret = fsnotify_add_inode_mark(&s->mark, inode, 0);
	if (ret) {
		on_freeing_mark(&s->mark, group);
		fsnotify_put_mark(&s->mark);
		return ERR_PTR(ret);
	}
	return s;
}

static struct subject *get_subject(struct inode *inode)
{
	struct subject *s;

	lockdep_assert_held(&change_lock);
	if (!inode)
		return &vdso;
	s = find_subject(inode);
	return s ? s : make_subject(inode);
}

static void put_subject(struct subject *s)
{
	if (s != &vdso)
		fsnotify_put_mark(&s->mark);
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

static void put_inode(struct file *file)
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
	t = kvmalloc(sizeof(*t) + arg->size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
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

/* Return: 0, and @t is the subject's; or why not. */
static int install_table(struct subject *s, struct rules_table *t)
{
	struct rules_table *old;
	u64 after;
	int ret = 0;

	spin_lock(&subjects_lock);
	old = rcu_dereference_protected(s->table, lockdep_is_held(&subjects_lock));
	after = nr_bytes + t->bytes - (old ? old->bytes : 0);
	if (hlist_unhashed(&s->node))
		ret = -ESTALE; /* its file system is going */
	else if (after > READ_ONCE(rules_limit))
		ret = -ENOSPC;
	else if (last_id == U32_MAX)
		ret = -EOVERFLOW;
	if (!ret) {
		t->id = ++last_id;
		set_table(s, t);
	}
	spin_unlock(&subjects_lock);
	return ret;
}

static void drop_subject(struct subject *s)
{
	lockdep_assert_held(&change_lock);
	if (s == &vdso) {
		spin_lock(&subjects_lock);
		set_table(s, NULL);
		spin_unlock(&subjects_lock);
		return;
	}
	fsnotify_destroy_mark(&s->mark, group);
	fsnotify_put_mark(&s->mark);
}

static int call_load(const struct shstk_rules_load *arg)
{
	struct rules_table *t;
	struct subject *s;
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
		goto put_inode;
	t = copy_table(arg);
	ret = PTR_ERR_OR_ZERO(t);
	if (ret)
		goto put_inode;

	mutex_lock(&change_lock);
	s = get_subject(inode);
	ret = PTR_ERR_OR_ZERO(s);
	if (!ret) {
		ret = install_table(s, t);
		/* No mark stays without a table. */
		if (ret && s != &vdso && !rcu_access_pointer(s->table))
			drop_subject(s);
		else
			put_subject(s);
	}
	mutex_unlock(&change_lock);
	if (ret)
		kvfree(t);
put_inode:
	put_inode(file);
	return ret;
}

/* With a reference to its mark. That one is held as long as it is hashed. */
static struct subject *first_subject(void)
{
	struct subject *s = NULL;
	int i;

	spin_lock(&subjects_lock);
	for (i = 0; i < ARRAY_SIZE(subjects) && !s; i++)
		hlist_for_each_entry(s, &subjects[i], node)
			if (s != &vdso && refcount_inc_not_zero(&s->mark.refcnt))
				break;
	spin_unlock(&subjects_lock);
	return s;
}

static void drop_all(void)
{
	struct subject *s;

	mutex_lock(&change_lock);
	while ((s = first_subject())) {
		drop_subject(s);
		cond_resched();
	}
	drop_subject(&vdso);
	mutex_unlock(&change_lock);
}

static int drop_one(int fd)
{
	struct subject *s;
	struct inode *inode;
	struct file *file;
	int ret;

	ret = get_inode(fd, &file, &inode);
	if (ret)
		return ret;
	mutex_lock(&change_lock);
	s = inode ? find_subject(inode) : &vdso;
	if (s && !rcu_access_pointer(s->table)) {
		put_subject(s);
		s = NULL;
	}
	if (s)
		drop_subject(s);
	mutex_unlock(&change_lock);
	put_inode(file);
	return s ? 0 : -ENOENT;
}

static int call_drop(const struct shstk_rules_drop *arg)
{
	if (arg->flags & ~SHSTK_RULES_DROP_ALL)
		return -EINVAL;
	if (!(arg->flags & SHSTK_RULES_DROP_ALL))
		return drop_one(arg->fd);
	drop_all();
	return 0;
}

static void list_one(const struct subject *s, const struct rules_table *t,
		     struct shstk_rules_list *arg)
{
	arg->id = t->id;
	arg->uid = from_kuid_munged(current_user_ns(), t->uid);
	arg->dev = s->dev;
	arg->ino = s->ino;
	arg->bytes = t->bytes;
	arg->nr_rules = t->view.nr_rules;
	arg->nr_pages = t->view.nr_pages;
	arg->nr_rows = t->view.nr_rows;
	memcpy(arg->name, t->name, sizeof(arg->name));
}

/* The table with the smallest number above @arg->id. */
static int call_list(struct shstk_rules_list *arg)
{
	u32 above = arg->id;
	struct subject *s;
	int i, ret = -ENOENT;

	if (arg->reserved)
		return -EINVAL;
	rcu_read_lock();
	for (i = 0; i < ARRAY_SIZE(subjects); i++) {
		hlist_for_each_entry_rcu(s, &subjects[i], node) {
			const struct rules_table *t = rcu_dereference(s->table);

			if (!t || t->id <= above || (!ret && t->id >= arg->id))
				continue;
			list_one(s, t, arg);
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
	return atomic_read(&nr_subjects);
}

unsigned int rules_listeners(void)
{
	return atomic_read(&nr_listeners);
}

static int call_info(struct shstk_rules_info *arg)
{
	arg->version = SHSTK_RULES_VERSION;
	arg->machine = MACHINE;
	spin_lock(&subjects_lock);
	arg->tables = nr_tables;
	arg->bytes = nr_bytes;
	spin_unlock(&subjects_lock);
	arg->limit = READ_ONCE(rules_limit);
	return 0;
}

/* --- device --- */

union argument {
	struct shstk_rules_info info;
	struct shstk_rules_load load;
	struct shstk_rules_drop drop;
	struct shstk_rules_list list;
	struct shstk_rules_cuts cuts;
};

static_assert(sizeof(struct shstk_rules_header) == 32);
static_assert(sizeof(struct shstk_rules_info) == 32);
static_assert(sizeof(struct shstk_rules_load) == 56);
static_assert(sizeof(struct shstk_rules_drop) == 8);
static_assert(sizeof(struct shstk_rules_list) == 80);
static_assert(sizeof(struct shstk_rules_miss) == 16);
static_assert(sizeof(struct shstk_rules_cuts) == 56);

/* As of the first version: the smallest size. */
static const unsigned int calls[] = {
	SHSTK_RULES_INFO, SHSTK_RULES_LOAD, SHSTK_RULES_DROP,
	SHSTK_RULES_LIST, SHSTK_RULES_MISS, SHSTK_RULES_CUTS,
};

/* Return: the call that @cmd is, whatever its size; 0: none. */
static unsigned int find_call(unsigned int cmd)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (_IOC_NR(cmd) == _IOC_NR(calls[i]) && _IOC_DIR(cmd) == _IOC_DIR(calls[i]))
			return _IOC_TYPE(cmd) == SHSTK_RULES_IOC ? calls[i] : 0;
	return 0;
}

static int dispatch(unsigned int nr, union argument *arg)
{
	switch (nr) {
	case _IOC_NR(SHSTK_RULES_INFO):
		return call_info(&arg->info);
	case _IOC_NR(SHSTK_RULES_LOAD):
		return call_load(&arg->load);
	case _IOC_NR(SHSTK_RULES_DROP):
		return call_drop(&arg->drop);
	case _IOC_NR(SHSTK_RULES_LIST):
		return call_list(&arg->list);
	case _IOC_NR(SHSTK_RULES_CUTS):
		return call_cuts(&arg->cuts);
	}
	return -ENOTTY;
}

static long rules_ioctl(struct file *device, unsigned int cmd, unsigned long user)
{
	void __user *ptr = (void __user *)user;
	unsigned int call = find_call(cmd), size = _IOC_SIZE(call);
	union argument arg = {};
	int ret;

	if (!call)
		return -ENOTTY;
	if (call != SHSTK_RULES_INFO && !(capable(CAP_PERFMON) && capable(CAP_SYS_ADMIN)))
		return -EPERM;
	if (_IOC_SIZE(cmd) < size)
		return -EINVAL;
	if (call == SHSTK_RULES_MISS)
		return call_miss(device, ptr);

	if (_IOC_DIR(cmd) & _IOC_WRITE) {
		ret = copy_struct_from_user(&arg, size, ptr, _IOC_SIZE(cmd));
		if (ret)
			return ret;
	}
	ret = dispatch(_IOC_NR(cmd), &arg);
	if (ret)
		return ret;
	if (_IOC_DIR(cmd) & _IOC_READ && copy_to_user(ptr, &arg, size))
		return -EFAULT;
	return 0;
}

static __poll_t rules_poll(struct file *device, struct poll_table_struct *wait)
{
	poll_wait(device, &miss_wait, wait);
	return any_miss() ? EPOLLIN | EPOLLRDNORM : 0;
}

static int rules_release(struct inode *inode, struct file *device)
{
	if (!device->private_data)
		return 0;
	if (atomic_dec_and_test(&nr_listeners))
		drop_misses(ALL_MISSES);
	spin_lock(&subjects_lock);
	update_wanted();
	spin_unlock(&subjects_lock);
	return 0;
}

static int rules_open(struct inode *inode, struct file *device)
{
	/* The misc device's, which no call needs. */
	device->private_data = NULL;
	return 0;
}

static const struct file_operations rules_fops = {
	.owner = THIS_MODULE,
	.open = rules_open,
	.release = rules_release,
	.unlocked_ioctl = rules_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = rules_poll,
	.llseek = noop_llseek,
};

static struct miscdevice rules_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "shstk_rules",
	.fops = &rules_fops,
	.mode = 0600,
};

int __init rules_init(void)
{
	int ret;

	group = fsnotify_alloc_group(&mark_ops, 0);
	if (IS_ERR(group))
		return PTR_ERR(group);
	hash_subject(&vdso);
	ret = misc_register(&rules_device);
	if (ret)
		fsnotify_put_group(group);
	return ret;
}

/* The hooks are out already: nothing walks. */
void rules_exit(void)
{
	misc_deregister(&rules_device);
	irq_work_sync(&miss_work);
	cancel_delayed_work_sync(&expire_work);
	drop_misses(ALL_MISSES);
	drop_all();
	/*
	 * A mark may also be in the hands of who deletes its file, out of our sight. What
	 * frees the last one is in our code still when it is waited for.
	 */
	wait_event(subjects_gone, !atomic_read(&nr_subjects));
	fsnotify_wait_marks_destroyed();
	fsnotify_put_group(group);
}
