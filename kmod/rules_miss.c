// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_miss.c - files that walks have no table for, and who is told of them.
 *
 * A walk notes the file where it is, in any context; whoever listens on the device gets a
 * descriptor of it. Nothing of the file is held in between.
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

/* Of a listener's beginning. */
static DEFINE_MUTEX(listen_lock);
static atomic_t nr_listeners;

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

void rules_forget_miss(const void *key)
{
	cmpxchg(&asked[hash_ptr(key, ASKED_BITS)].key, key, NULL);
}

static void drop_misses(enum misses which)
{
	struct miss m;

	while (take_miss(&m, which)) {
		rules_forget_miss(m.key);
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
		rules_forget_miss(key);
}

/* The mapped file, if it is the one that was missed still; a reference, or NULL. */
static struct file *find_mapped(struct mm_struct *mm, const struct miss *m)
{
	struct vm_area_struct *vma;
	struct file *file = NULL;

	/*
	 * Who has the lock may wait for a page of a file that is another program's to give. So it
	 * is not waited for: the next walk asks again.
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

static struct file *miss_file(const struct miss *m)
{
	struct file *file;

	if (!mmget_not_zero(m->mm)) {
		rules_forget_miss(m->key);
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

/* The hooks are out and the device is closed: nothing is missed any more. */
void rules_misses_exit(void)
{
	irq_work_sync(&miss_work);
	cancel_delayed_work_sync(&expire_work);
	drop_misses(ALL_MISSES);
}
