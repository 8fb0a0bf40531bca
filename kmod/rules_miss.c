// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_miss.c - the files for which walks have no table, and the listeners that are told about
 * them.
 *
 * A walk records the file, in any context. A listener on the device gets a descriptor of the file.
 * Nothing of the file is held in between.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "rules.h"
#include "rules_call.h"
#include "rules_share.h"

#define NR_MISSES 64
#define MISSES_OF_USER (NR_MISSES / 2)
#define MISSES_OF_PROCESS 8
#define MISS_LIFE (2 * HZ)
#define TRIES 8
#define ASKED_BITS 10
#define ASKED_LIFE (30 * HZ)

/*
 * The states of a slot. A sample fills a slot in any context, including NMI, and the state says who
 * owns the slot. A slot holds only the struct mm: the mappings go with their process, so that no
 * file system stays busy because of a miss. If they have gone, there is nothing to report, and the
 * next process that runs the file is asked for it.
 *
 * Users share the slots. If no slot is free, a user who has fewer slots takes one from a user who
 * has more. The references in the taken slot cannot be released in any context: that is done later,
 * and until then the slot is not taken again in this way.
 */
enum { MISS_FREE, MISS_BUSY, MISS_FULL };

/**
 * struct miss - a file for which a walk had no table
 * @state: MISS_*.
 * @mm: mm in which the file is mapped.
 * @pid: process of the mm.
 * @uid: user for whom the slot is counted.
 * @key: inode of the file.
 * @addr: an address in the code of the file.
 * @when: jiffies when the walk recorded the file.
 * @old_mm: mm of an earlier miss whose slot was taken; set after @old_pid.
 * @old_pid: process of that earlier miss.
 */
struct miss {
	atomic_t state;
	struct mm_struct *mm;
	struct pid *pid;
	kuid_t uid;
	const void *key;
	u64 addr;
	unsigned long when;
	struct mm_struct *old_mm;
	struct pid *old_pid;
};

static struct miss misses[NR_MISSES];

/*
 * The turns of users. For each user, turn_of has the turn in which a file of that user was last
 * handed out. A turn is one file that was handed out; 0 is no turn. turns_lock protects the turns.
 */
static DEFINE_SPINLOCK(turns_lock);
static unsigned long turns;
static struct {
	kuid_t uid;
	unsigned long turn;
} turn_of[NR_MISSES];

/*
 * Files that were asked for lately, by the hash of @key. Two CPUs may ask for one file at the same
 * time; then it is asked for twice. If a file has gone, its inode's address may belong to another
 * file: @numbers tell them apart.
 */
static struct {
	const void *key;
	u64 numbers;
	unsigned long when;
} asked[1 << ASKED_BITS];

static DECLARE_WAIT_QUEUE_HEAD(miss_wait);

/* Protects the start of a listener. */
static DEFINE_MUTEX(listen_lock);
static atomic_t nr_listeners;

enum misses { ALL_MISSES, LATE_MISSES };

/* Takes the miss from the slot @m into @ret if it is one of @which. Returns whether it was. */
static bool take_slot(struct miss *m, struct miss *ret, enum misses which)
{
	if (atomic_cmpxchg_acquire(&m->state, MISS_FULL, MISS_BUSY) != MISS_FULL)
		return false;
	if (which == LATE_MISSES && time_before(jiffies, m->when + MISS_LIFE)) {
		atomic_set_release(&m->state, MISS_FULL);
		return false;
	}
	*ret = *m;
	atomic_set_release(&m->state, MISS_FREE);
	return true;
}

static bool take_miss(struct miss *ret, enum misses which)
{
	int i;

	for (i = 0; i < NR_MISSES; i++)
		if (take_slot(&misses[i], ret, which))
			return true;
	return false;
}

/* Returns the last turn of a user, 0 if it had none lately. */
static unsigned long last_turn(kuid_t uid)
{
	int i;

	lockdep_assert_held(&turns_lock);
	for (i = 0; i < NR_MISSES; i++)
		if (turn_of[i].turn && uid_eq(turn_of[i].uid, uid))
			return turn_of[i].turn;
	return 0;
}

/* Returns a full slot of the user whose last turn is the longest ago, or NULL. */
static struct miss *next_in_turn(void)
{
	struct miss *best = NULL;
	unsigned long first = ULONG_MAX;
	int i;

	spin_lock(&turns_lock);
	for (i = 0; i < NR_MISSES && first; i++) {
		struct miss *m = &misses[i];
		unsigned long turn;

		if (atomic_read(&m->state) != MISS_FULL)
			continue;
		turn = last_turn(READ_ONCE(m->uid));
		if (turn < first) {
			first = turn;
			best = m;
		}
	}
	spin_unlock(&turns_lock);
	return best;
}

/*
 * Records that a file of @uid was handed out. Replaces the entry of the same user or, if there is
 * none, the oldest entry.
 */
static void note_turn(kuid_t uid)
{
	int i, at = 0;

	spin_lock(&turns_lock);
	for (i = 0; i < NR_MISSES; i++) {
		if (turn_of[i].turn && uid_eq(turn_of[i].uid, uid)) {
			at = i;
			break;
		}
		if (turn_of[i].turn < turn_of[at].turn)
			at = i;
	}
	turn_of[at].uid = uid;
	turn_of[at].turn = ++turns;
	spin_unlock(&turns_lock);
}

/*
 * Takes the next miss for a listener. Making a table takes time, so users are served in turn,
 * however many files one of them has. Returns whether there is a miss.
 */
static bool take_next_miss(struct miss *ret)
{
	struct miss *m;

	while ((m = next_in_turn())) {
		if (!take_slot(m, ret, ALL_MISSES))
			continue;
		note_turn(ret->uid);
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

void rules_forget_miss(const void *key)
{
	cmpxchg(&asked[hash_ptr(key, ASKED_BITS)].key, key, NULL);
}

/* Drops the misses of one sort: all, or those that are too old. */
static void drop_misses(enum misses which)
{
	struct miss m;

	while (take_miss(&m, which)) {
		rules_forget_miss(m.key);
		put_miss(&m);
		cond_resched();
	}
}

/* Releases what misses held whose slots were taken. Only one caller at a time may run it. */
static void put_old(void)
{
	int i;

	for (i = 0; i < NR_MISSES; i++) {
		struct miss *m = &misses[i];
		/* Pairs with others_slot(), which sets old_pid before old_mm. */
		struct mm_struct *mm = smp_load_acquire(&m->old_mm);

		if (!mm)
			continue;
		put_pid(m->old_pid);
		mmdrop(mm);
		/* Pairs with others_slot(): old_pid is read before old_mm becomes NULL. */
		smp_store_release(&m->old_mm, NULL);
	}
}

static void put_old_work(struct work_struct *work)
{
	put_old();
}

static DECLARE_WORK(old_work, put_old_work);

static void expire_misses(struct work_struct *work);
static DECLARE_DELAYED_WORK(expire_work, expire_misses);

/* Drops old misses, and runs again while there are any. */
static void expire_misses(struct work_struct *work)
{
	drop_misses(LATE_MISSES);
	if (!any_miss())
		return;
	/* A reader may have looked while a miss was taken here and put back, and may sleep now. */
	wake_up_interruptible(&miss_wait);
	schedule_delayed_work(&expire_work, MISS_LIFE);
}

/* Wakes the listeners. It runs as irq_work, because a walk may be in any context. */
static void announce_miss(struct irq_work *work)
{
	wake_up_interruptible(&miss_wait);
	schedule_delayed_work(&expire_work, MISS_LIFE);
	schedule_work(&old_work);
}

static struct irq_work miss_work = IRQ_WORK_INIT(announce_miss);

/*
 * Returns numbers that tell inodes apart which had the same address. The inode may be going just
 * now; then the result is arbitrary.
 */
static u64 numbers_of(const struct inode *inode)
{
	typeof_member(struct inode, i_ino) number;
	u32 generation;

	if (get_kernel_nofault(number, &inode->i_ino) ||
	    get_kernel_nofault(generation, &inode->i_generation))
		return 0;
	return number ^ (u64)generation << 32;
}

/* Returns whether the file was asked for lately; if it was not, notes that it is asked for now. */
static bool asked_lately(const void *key)
{
	unsigned int i = hash_ptr(key, ASKED_BITS);
	u64 numbers = numbers_of(key);

	if (READ_ONCE(asked[i].key) == key && READ_ONCE(asked[i].numbers) == numbers &&
	    time_before(jiffies, READ_ONCE(asked[i].when) + ASKED_LIFE))
		return true;
	WRITE_ONCE(asked[i].when, jiffies);
	WRITE_ONCE(asked[i].numbers, numbers);
	WRITE_ONCE(asked[i].key, key);
	return false;
}

/*
 * Counts the full slots of a user. They may be changing just now; then the result is one too high
 * or too low.
 */
static unsigned int misses_of_user(kuid_t uid)
{
	unsigned int nr = 0;
	int i;

	for (i = 0; i < NR_MISSES; i++)
		nr += atomic_read(&misses[i].state) == MISS_FULL &&
		      uid_eq(READ_ONCE(misses[i].uid), uid);
	return nr;
}

static unsigned int misses_of_process(const struct mm_struct *mm)
{
	unsigned int nr = 0;
	int i;

	for (i = 0; i < NR_MISSES; i++)
		nr += atomic_read(&misses[i].state) == MISS_FULL && READ_ONCE(misses[i].mm) == mm;
	return nr;
}

/*
 * Takes a free slot, which the caller then owns. Returns NULL if there is none. A cmpxchg takes the
 * line of the slot from all other CPUs, which look at it for their own misses, also where it fails:
 * so the state is read first.
 */
static struct miss *free_slot(void)
{
	int i;

	for (i = 0; i < NR_MISSES; i++) {
		atomic_t *state = &misses[i].state;

		if (atomic_read(state) == MISS_FREE &&
		    atomic_cmpxchg_acquire(state, MISS_FREE, MISS_BUSY) == MISS_FREE)
			return &misses[i];
	}
	return NULL;
}

/*
 * Takes a slot from a user who has more slots than @own, the number of the caller's user. Looks at
 * TRIES slots from @first on. The caller then owns the slot. Returns NULL if there is none.
 */
static struct miss *others_slot(unsigned int own, unsigned int first)
{
	int i;

	for (i = 0; i < TRIES; i++) {
		struct miss *m = &misses[(first + i) % NR_MISSES];

		/* Pairs with put_old(), which is done with old_pid when old_mm is NULL. */
		if (smp_load_acquire(&m->old_mm) ||
		    !rules_may_take(own, misses_of_user(READ_ONCE(m->uid))) ||
		    atomic_cmpxchg_acquire(&m->state, MISS_FULL, MISS_BUSY) != MISS_FULL)
			continue;
		rules_forget_miss(m->key);
		m->old_pid = m->pid;
		/* Pairs with put_old(): old_pid is set before old_mm. */
		smp_store_release(&m->old_mm, m->mm);
		return m;
	}
	return NULL;
}

/* Fills the slot @m, which the caller owns, and announces the miss. */
static void fill_slot(struct miss *m, kuid_t uid, const void *key, u64 addr)
{
	mmgrab(current->mm);
	WRITE_ONCE(m->mm, current->mm);
	WRITE_ONCE(m->uid, uid);
	m->pid = get_pid(task_tgid(current));
	m->key = key;
	m->addr = addr;
	m->when = jiffies;
	atomic_set_release(&m->state, MISS_FULL);
	irq_work_queue(&miss_work);
}

/*
 * Puts a miss into a slot. Limits per process and per user keep one of them from taking all slots.
 * Returns whether there was a slot.
 */
static bool queue_miss(const void *key, u64 addr)
{
	kuid_t uid = rules_user();
	unsigned int own = misses_of_user(uid);
	struct miss *m;

	if (own >= MISSES_OF_USER || misses_of_process(current->mm) >= MISSES_OF_PROCESS)
		return false;
	m = free_slot();
	if (!m)
		m = others_slot(own, jiffies + hash_ptr(key, 16));
	if (!m)
		return false;
	fill_slot(m, uid, key, addr);
	return true;
}

void rules_miss(const void *key, u64 addr)
{
	if (!atomic_read(&nr_listeners) || asked_lately(key))
		return;
	if (!queue_miss(key, addr))
		rules_forget_miss(key);
}

/*
 * Returns the file that is mapped at @m->addr, with a reference, if it is still the one that was
 * missed; otherwise NULL.
 */
static struct file *find_mapped(struct mm_struct *mm, const struct miss *m)
{
	struct vm_area_struct *vma;
	struct file *file = NULL;

	/*
	 * The holder of the lock may wait for a page of a file that another program supplies. So
	 * the lock is not waited for: the next walk asks for the file again.
	 */
	if (!mmap_read_trylock(mm)) {
		rules_forget_miss(m->key);
		return NULL;
	}
	vma = vma_lookup(mm, m->addr);
	if (vma && vma->vm_file && file_inode(vma->vm_file) == m->key)
		file = get_file(vma->vm_file);
	mmap_read_unlock(mm);
	return file;
}

/* Returns the file of a miss with a reference, or NULL if it is not mapped any more. */
static struct file *miss_file(const struct miss *m)
{
	struct file *file;

	if (!mmget_not_zero(m->mm)) {
		rules_forget_miss(m->key);
		return NULL;
	}
	file = find_mapped(m->mm, m);
	/*
	 * The last one to leave an address space waits for its asynchronous I/O, which may depend
	 * on another program. So the release is left to another thread.
	 */
	mmput_async(m->mm);
	return file;
}

/*
 * Returns whether a program serves the file system. Whoever opens a file of FUSE waits for the
 * program that serves it, which may belong to anybody and may never answer. With virtiofs it is the
 * host.
 */
static bool is_served_by_program(const struct super_block *sb)
{
	return sb->s_iflags & SB_I_UNTRUSTED_MOUNTER ||
	       (sb->s_magic == FUSE_SUPER_MAGIC && strcmp(sb->s_type->name, "virtiofs"));
}

/*
 * Opens the file of a miss. Returns NULL if the file was unmapped meanwhile, or must not be opened.
 * Only regular files are opened, because a device may do anything when it is opened. O_NONBLOCK:
 * the holder of a lease on the file is told to give it up, but it is not waited for.
 */
static struct file *open_miss(const struct miss *m)
{
	struct file *mapped = miss_file(m), *file = NULL;

	if (!mapped)
		return NULL;
	if (S_ISREG(file_inode(mapped)->i_mode) && !is_served_by_program(file_inode(mapped)->i_sb))
		file = dentry_open(&mapped->f_path, O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NONBLOCK,
				   current_cred());
	fput(mapped);
	return IS_ERR(file) ? NULL : file;
}

/*
 * Waits for a miss and opens its file. Files that cannot be opened are skipped: fanotify or a
 * security module may refuse. Returns 0 or a negative errno.
 */
static int next_miss(struct file *device, struct file **file, struct shstk_rules_miss *arg)
{
	struct miss m;
	int ret;

	while (!fatal_signal_pending(current)) {
		if (!take_next_miss(&m)) {
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

/* Makes @device a listener, if it is none yet. */
static void start_listening(struct file *device)
{
	mutex_lock(&listen_lock);
	if (!device->private_data) {
		device->private_data = &nr_listeners;
		atomic_inc(&nr_listeners);
		rules_update_wanted();
	}
	mutex_unlock(&listen_lock);
}

int rules_call_miss(struct file *device, struct shstk_rules_miss __user *user)
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

__poll_t rules_poll_misses(struct file *device, struct poll_table_struct *wait)
{
	poll_wait(device, &miss_wait, wait);
	return any_miss() ? EPOLLIN | EPOLLRDNORM : 0;
}

void rules_stop_listening(struct file *device)
{
	if (!device->private_data)
		return;
	if (atomic_dec_and_test(&nr_listeners))
		drop_misses(ALL_MISSES);
	rules_update_wanted();
}

unsigned int rules_listeners(void)
{
	return atomic_read(&nr_listeners);
}

/* The hooks are removed and the device is closed, so there are no new misses. */
void rules_misses_exit(void)
{
	irq_work_sync(&miss_work);
	cancel_delayed_work_sync(&expire_work);
	cancel_work_sync(&old_work);
	put_old();
	drop_misses(ALL_MISSES);
}
