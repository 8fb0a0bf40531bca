// SPDX-License-Identifier: GPL-2.0-only
/*
 * remote.c - reads the shadow stacks of other tasks.
 *
 * A trace shows one moment, and the task is not stopped for it:
 *
 * - A task that is on a CPU is interrupted there, and that CPU reads its stack, like a sample of a
 *   profiler.
 * - A task that is not on a CPU has its registers in memory, and nobody but the task itself changes
 *   its shadow stack. The calling CPU reads the stack and then looks at the task again: if the task
 *   has not run meanwhile, the trace is exact, otherwise it is discarded. The task counts every
 *   context switch away from it, so a task that is off the CPU with an unchanged count has not run.
 *
 * If several tries in a row fail for a task, the result is -EAGAIN.
 *
 * The ptrace rules for attaching decide about the access, again for each try.
 * signal->exec_update_lock is held from that decision until the registers are read and a reference
 * to the address space is taken, so that the decision cannot be about another program because of an
 * exec in between. The lock is not held while anything is waited for: memory is read from that
 * address space after the lock was released.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "read.h"
#include "resolve.h"
#include "ushstk.h"

/* How many times a task is tried before the result is -EAGAIN. */
#define TRIES 20

static struct pid *no_pidfd(const struct file *file)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static bool no_access(struct task_struct *task, unsigned int mode)
{
	return false;
}

DEFINE_STATIC_CALL(ushstk_pidfd_pid, no_pidfd);
DEFINE_STATIC_CALL(ushstk_ptrace_may_access, no_access);

static bool ptrace_check __ro_after_init;

bool ushstk_ptrace_check(void)
{
	return ptrace_check;
}

/**
 * ushstk_remote_init() - bind the kernel functions that are not exported
 *
 * Neither function is required: without pidfd_pid() callers can only ask about their own process,
 * and without ptrace_may_access() the access rule is stricter.
 *
 * Return: 0.
 */
int ushstk_remote_init(void)
{
	void *func = ushstk_resolve_text("pidfd_pid");

	if (func)
		static_call_update(ushstk_pidfd_pid, func);
	else
		pr_warn("pidfd_pid: not found: no access to other processes\n");

	func = ushstk_resolve_text("ptrace_may_access");
	if (func) {
		static_call_update(ushstk_ptrace_may_access, func);
		ptrace_check = true;
	}
	return 0;
}

/* Returns whether current may know the return addresses of @task. */
static bool may_read(struct task_struct *task)
{
	if (same_thread_group(task, current))
		return true;
	if (ptrace_check)
		return static_call(ushstk_ptrace_may_access)(task, PTRACE_MODE_ATTACH_REALCREDS);
	return capable(CAP_SYS_PTRACE) && perfmon_capable();
}

/*
 * Returns the task that a pidfd refers to, with a reference, or an error. The pidfd may also be one
 * of the special values that need no file.
 */
static struct task_struct *get_process(int pidfd)
{
	struct task_struct *task;
	struct file *file;
	struct pid *pid;

	if (pidfd == -1 || pidfd == SHSTK_PIDFD_SELF_PROCESS)
		return get_task_struct(current->group_leader);
	if (pidfd == SHSTK_PIDFD_SELF)
		return get_task_struct(current);
	if (pidfd < 0)
		return ERR_PTR(-EBADF);

	file = fget(pidfd);
	if (!file)
		return ERR_PTR(-EBADF);
	pid = static_call(ushstk_pidfd_pid)(file);
	task = IS_ERR(pid) ? ERR_CAST(pid) : get_pid_task(pid, PIDTYPE_PID);
	fput(file);
	return task ? task : ERR_PTR(-ESRCH);
}

/*
 * Returns the thread of @process with the thread ID @tid in the caller's namespace, with a
 * reference, or -ESRCH.
 */
static struct task_struct *get_thread(struct task_struct *process, u32 tid)
{
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(find_vpid(tid), PIDTYPE_PID);
	if (task && same_thread_group(task, process))
		get_task_struct(task);
	else
		task = ERR_PTR(-ESRCH);
	rcu_read_unlock();
	return task;
}

/*
 * Begins an access to @task: until end_access() its credentials and its address space are those
 * that were checked. Returns 0, -EINTR or -EPERM.
 */
static int begin_access(struct task_struct *task)
{
	int ret;

	ret = down_read_killable(&task->signal->exec_update_lock);
	if (ret)
		return ret;
	if (may_read(task))
		return 0;
	up_read(&task->signal->exec_update_lock);
	return -EPERM;
}

static void end_access(struct task_struct *task)
{
	up_read(&task->signal->exec_update_lock);
}

/* ---- Reading one task at one moment ---- */

/**
 * struct remote_view - what is read from one task at one moment
 * @task: the task.
 * @max: most entries wanted, or 0 if only the pointer is wanted. @entry has room for one more,
 *	which shows that the stack was cut.
 * @entry: receives the program counter and the return addresses.
 * @nr: number of entries.
 * @flags: SHSTK_THREAD_* bits.
 * @enabled: PR_SHADOW_STACK_* bits that are enabled.
 * @locked: PR_SHADOW_STACK_* bits that are locked.
 * @ssp: shadow stack pointer.
 * @base: lowest address of the stack that the kernel made, or 0.
 * @size: size of that stack in bytes.
 * @ret: result of view_here(), for view_running(): 0 or a negative errno.
 */
struct remote_view {
	struct task_struct *task;
	unsigned int max;
	u64 *entry;
	unsigned int nr;
	u32 flags;
	u64 enabled;
	u64 locked;
	u64 ssp;
	u64 base;
	u64 size;
	int ret;
};

/* Reads what the kernel has on record about the task. Returns whether it has a shadow stack. */
static bool view_record(struct remote_view *view)
{
	struct task_struct *task = view->task;

	if (task->flags & (PF_KTHREAD | PF_USER_WORKER))
		return false;
	view->enabled = ushstk_arch_enabled(task);
	view->locked = ushstk_arch_locked(task);
	if (!ushstk_arch_active(task))
		return false;
	view->base = ushstk_arch_base(task);
	view->size = ushstk_arch_size(task);
	return true;
}

/*
 * Reads the task on the CPU that it was on. The result is in @view->ret; it is -EAGAIN if the task
 * is not there any more.
 */
static void view_here(void *arg)
{
	struct remote_view *view = arg;
	struct ushstk_span span;

	if (current != view->task) {
		view->ret = -EAGAIN;
		return;
	}
	/* The task is exiting, and its memory is gone. */
	if (!current->mm) {
		view->ret = -ESRCH;
		return;
	}
	view->ret = ushstk_arch_pointer(&view->ssp);
	if (view->ret || !view->max)
		return;
	view->ret = ushstk_read_current(view->entry + 1, view->max, &span);
	if (view->ret)
		return;
	view->entry[0] = instruction_pointer(task_pt_regs(current));
	view->nr = 1 + span.nr;
	if (span.switched)
		view->flags |= SHSTK_THREAD_SWITCHED;
	if (span.signal)
		view->flags |= SHSTK_THREAD_SIGNAL;
}

/* Reads a task that is on a CPU, by interrupting that CPU. Returns 0 or a negative errno. */
static int view_running(struct remote_view *view)
{
	struct task_struct *task = view->task;
	int ret;

	ret = begin_access(task);
	if (ret)
		return ret;
	view->ret = -ENODATA;
	if (view_record(view)) {
		view->ret = -EAGAIN;
		if (task != current)
			view->flags |= SHSTK_THREAD_RUNNING;
		smp_call_function_single(task_cpu(task), view_here, view, 1);
	}
	end_access(task);
	return view->ret;
}

/* Finds the shadow stack mapping at @addr. Returns 0, -EINTR, or -ENOENT if there is none. */
static int find_stack(struct mm_struct *mm, u64 addr, u64 *start, u64 *end)
{
	struct vm_area_struct *vma;
	int ret = -ENOENT;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, addr);
	if (vma && (vma->vm_flags & VM_SHADOW_STACK)) {
		*start = vma->vm_start;
		*end = vma->vm_end;
		ret = 0;
	}
	mmap_read_unlock(mm);
	return ret;
}

/* Finds the end of the stack that @view->ssp points into. Returns 0 or a negative errno. */
static int view_end(struct remote_view *view, struct mm_struct *mm, u64 *end)
{
	u64 start;
	int ret;

	*end = ushstk_arch_end(view->task, view->ssp);
	if (*end)
		return 0;
	view->flags |= SHSTK_THREAD_SWITCHED;
	ret = find_stack(mm, view->ssp, &start, end);
	/* The pointer of an empty stack is behind its last word. */
	if (ret == -ENOENT)
		ret = find_stack(mm, view->ssp - 8, &start, end);
	return ret == -ENOENT ? -ENODATA : ret;
}

/*
 * Releases an address space. The last one to release it waits for its asynchronous I/O, which no
 * signal interrupts, so the work is left to another thread. (While the caller holds the address
 * space it waits for nothing that a program supplies, so no test can make sure that its own program
 * ends first.)
 */
static void put_memory(struct mm_struct *mm)
{
	mmput_async(mm);
}

/*
 * Copies from one page of a shadow stack of another address space, and waits for the page if it was
 * paged out. Something else may have been mapped there since the stack was found, and a program
 * that never answers may supply the pages of that mapping. So the mapping is checked under the
 * lock, which is kept until the page is there. Returns 0, -EINTR or -EFAULT.
 */
static int read_page(struct mm_struct *mm, u64 addr, void *dst, size_t size)
{
	struct vm_area_struct *vma;
	struct page *page;
	int ret = -EFAULT;
	void *from;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, addr);
	if (vma && (vma->vm_flags & VM_SHADOW_STACK))
		ret = get_user_pages_remote(mm, addr, 1, 0, &page, NULL);
	mmap_read_unlock(mm);
	if (ret != 1)
		return fatal_signal_pending(current) ? -EINTR : -EFAULT;
	from = kmap_local_page(page);
	memcpy(dst, from + offset_in_page(addr), size);
	kunmap_local(from);
	put_page(page);
	return 0;
}

/*
 * Copies the stack of another task as ushstk_read_current() does for current. @view->entry has
 * @view->nr entries already. Returns 0 or a negative errno.
 */
static int copy_stack(struct remote_view *view, struct mm_struct *mm)
{
	u64 addr = view->ssp, end, words, left = (u64)view->max + USHSTK_MAX_MARKS;
	bool signal = false;
	int ret;

	if (!IS_ALIGNED(addr, 8))
		return -ENODATA;
	ret = view_end(view, mm, &end);
	if (ret)
		return ret;
	while ((words = ushstk_chunk(addr, end, min_t(u64, view->max + 1 - view->nr, left)))) {
		u64 *dst = view->entry + view->nr;

		ret = read_page(mm, addr, dst, words * 8);
		if (ret)
			return ret;
		if (!ushstk_filter(view->entry, dst, words, addr, &view->nr, &signal))
			break;
		addr += words * 8;
		left -= words;
	}
	if (signal)
		view->flags |= SHSTK_THREAD_SIGNAL;
	return 0;
}

/* Returns a number that changes whenever the task stops running; the top of this file says why. */
static unsigned long times_switched(const struct task_struct *task)
{
	return READ_ONCE(task->nvcsw) + READ_ONCE(task->nivcsw);
}

static bool on_cpu(const struct task_struct *task)
{
	/* Pairs with the release in finish_task() of the scheduler. */
	return smp_load_acquire(&task->on_cpu);
}

/*
 * Reads where the task continues in user mode. Its kernel stack, which holds the user registers,
 * may go with the task at any time, and a module cannot hold a reference to it. Returns 0 or
 * -ESRCH.
 */
static int saved_pc(struct task_struct *task, u64 *pc)
{
	struct pt_regs regs;

	if (copy_from_kernel_nofault(&regs, task_pt_regs(task), sizeof(regs)))
		return -ESRCH;
	*pc = instruction_pointer(&regs);
	return 0;
}

/*
 * Reads the registers of a task that is off the CPU. Returns 0 or a negative errno. *@mm receives
 * the address space with a reference if the entries are wanted; otherwise it is unchanged.
 */
static int view_registers(struct remote_view *view, struct mm_struct **mm)
{
	int ret;

	if (!view_record(view))
		return -ENODATA;
	ret = ushstk_arch_saved_pointer(view->task, &view->ssp);
	if (ret || !view->max)
		return ret;
	ret = saved_pc(view->task, &view->entry[0]);
	if (ret)
		return ret;
	view->nr = 1;
	*mm = get_task_mm(view->task);
	return *mm ? 0 : -ESRCH;
}

/*
 * Reads a task that is off the CPU. Returns 0 or a negative errno; -EAGAIN if the task ran
 * meanwhile.
 */
static int view_sleeping(struct remote_view *view)
{
	struct task_struct *task = view->task;
	struct mm_struct *mm = NULL;
	unsigned long switched;
	int ret;

	ret = begin_access(task);
	if (ret)
		return ret;
	switched = times_switched(task);
	/* The count is read before everything else. Pairs with the smp_rmb() below. */
	smp_rmb();
	ret = on_cpu(task) ? -EAGAIN : view_registers(view, &mm);
	end_access(task);

	if (mm) {
		if (!ret)
			ret = copy_stack(view, mm);
		put_memory(mm);
	}

	/* All reads above come before the two below. */
	smp_rmb();
	if (on_cpu(task) || times_switched(task) != switched)
		return -EAGAIN;
	return READ_ONCE(task->exit_state) ? -ESRCH : ret;
}

/*
 * Reads the task, if necessary several times. Returns 0 or a negative errno: -EINTR and -EPERM are
 * about the caller, other errors are about the task.
 */
static int view_task(struct remote_view *view)
{
	int ret = -EAGAIN, i;

	for (i = 0; i < TRIES && ret == -EAGAIN; i++) {
		view->nr = 0;
		view->flags = 0;
		ret = on_cpu(view->task) ? view_running(view) : view_sleeping(view);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	if (!ret && view->max && view->nr > view->max) {
		view->nr = view->max;
		view->flags |= SHSTK_THREAD_CUT;
	}
	return ret;
}

/* ---- The ioctls ---- */

/*
 * Returns the thread that @pidfd and @tid name, as in &struct shstk_ioc_status, with a reference,
 * or an error.
 */
static struct task_struct *get_task(int pidfd, u32 tid)
{
	struct task_struct *process, *task;

	if (pidfd == -1 && !tid)
		return get_task_struct(current);
	process = get_process(pidfd);
	if (IS_ERR(process) || !tid)
		return process;
	task = get_thread(process, tid);
	put_task_struct(process);
	return task;
}

/**
 * ushstk_status() - handle SHSTK_IOC_STATUS
 * @arg: the argument of the ioctl.
 *
 * Return: 0 or a negative errno.
 */
int ushstk_status(struct shstk_ioc_status *arg)
{
	struct remote_view view = {};
	int ret;

	view.task = get_task(arg->pidfd, arg->tid);
	if (IS_ERR(view.task))
		return PTR_ERR(view.task);
	ret = view_task(&view);
	put_task_struct(view.task);
	/*
	 * -ENODATA means no shadow stack, or one without a pointer yet; report all that is on
	 * record.
	 */
	if (ret && ret != -ENODATA)
		return ret;

	arg->enabled = view.enabled;
	arg->locked = view.locked;
	arg->pointer = ret ? 0 : view.ssp;
	arg->base = view.base;
	arg->size = view.size;
	return 0;
}

/**
 * ushstk_map() - handle SHSTK_IOC_MAP
 * @arg: the argument of the ioctl.
 *
 * Return: 0 or a negative errno.
 */
int ushstk_map(struct shstk_ioc_map *arg)
{
	struct task_struct *task;
	struct mm_struct *mm;
	int ret;

	if (arg->pad)
		return -EINVAL;
	task = get_process(arg->pidfd);
	if (IS_ERR(task))
		return PTR_ERR(task);
	ret = begin_access(task);
	if (ret)
		goto put_task;
	mm = get_task_mm(task);
	end_access(task);
	if (!mm) {
		ret = -ESRCH;
		goto put_task;
	}
	ret = find_stack(mm, arg->addr, &arg->start, &arg->end);
	put_memory(mm);

put_task:
	put_task_struct(task);
	return ret;
}

/*
 * Iterates over the threads of a process under RCU only. The kernel's for_each_thread() also
 * accepts tasklist_lock, which is not exported, so with PROVE_RCU a module cannot use it.
 */
#define for_each_rcu_thread(process, task) \
	list_for_each_entry_rcu(task, &(process)->signal->thread_head, thread_node)

/*
 * Collects the threads of a process, at most @max, and returns how many threads there are. The
 * function holds a reference to each struct pid, which is small, and not to the task: a caller may
 * sleep on a page of its own for as long as it likes, and its limit on threads does not count
 * threads that have ended.
 */
static unsigned int get_threads(struct task_struct *process, struct pid **held, unsigned int max)
{
	struct task_struct *task;
	unsigned int nr = 0;

	rcu_read_lock();
	for_each_rcu_thread(process, task) {
		struct pid *pid = task_pid(task);

		/* The thread is being removed from the list. */
		if (!pid)
			continue;
		if (nr < max)
			held[nr] = get_pid(pid);
		nr++;
	}
	rcu_read_unlock();
	return nr;
}

/* Reads the task of @pid. Returns 0 or a negative errno; -ESRCH if it has ended. */
static int view_pid(struct remote_view *view, struct pid *pid)
{
	int ret;

	view->task = get_pid_task(pid, PIDTYPE_PID);
	if (!view->task)
		return -ESRCH;
	ret = view_task(view);
	put_task_struct(view->task);
	return ret;
}

/* Traces thread number @i, and copies the result to user space. @entry is room for the entries. */
static int trace_thread(struct pid *pid, u64 *entry, const struct shstk_ioc_trace *arg,
			unsigned int i)
{
	struct shstk_ioc_thread __user *threads = u64_to_user_ptr(arg->threads);
	u64 __user *entries = u64_to_user_ptr(arg->entries);
	struct shstk_ioc_thread thread = { .tid = pid_vnr(pid) };
	struct remote_view view = {
		.max = arg->max_entries,
		.entry = entry,
	};

	thread.error = view_pid(&view, pid);
	if (thread.error == -EINTR || thread.error == -EPERM)
		return thread.error;
	if (!thread.error) {
		thread.nr = view.nr;
		thread.flags = view.flags;
		if (copy_to_user(entries + (u64)i * arg->max_entries, entry,
				 view.nr * sizeof(*entry)))
			return -EFAULT;
	}
	return copy_to_user(threads + i, &thread, sizeof(thread)) ? -EFAULT : 0;
}

/* Traces @nr threads one after the other. Returns 0 or a negative errno. */
static int trace_threads(struct pid **held, unsigned int nr, const struct shstk_ioc_trace *arg)
{
	unsigned int i;
	u64 *entry;
	int ret = 0;

	/* One more than max_entries: the additional entry shows that the stack was cut. */
	entry = kmalloc_array(arg->max_entries + 1, sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return -ENOMEM;
	for (i = 0; i < nr && !ret; i++)
		ret = trace_thread(held[i], entry, arg, i);
	kfree(entry);
	return ret;
}

/*
 * Finds the threads that @arg asks about, at most @max of them, and holds their struct pid. Returns
 * how many threads there are, or a negative errno.
 */
static int find_threads(const struct shstk_ioc_trace *arg, struct pid **held, unsigned int max)
{
	struct task_struct *process, *task;
	int ret = 1;

	process = get_process(arg->pidfd);
	if (IS_ERR(process))
		return PTR_ERR(process);
	if (!arg->tid) {
		ret = get_threads(process, held, max);
		goto put_process;
	}
	task = get_thread(process, arg->tid);
	if (IS_ERR(task)) {
		ret = PTR_ERR(task);
		goto put_process;
	}
	held[0] = get_task_pid(task, PIDTYPE_PID);
	put_task_struct(task);
put_process:
	put_task_struct(process);
	return ret;
}

/**
 * ushstk_trace() - handle SHSTK_IOC_TRACE
 * @arg: the argument of the ioctl.
 *
 * Return: 0 or a negative errno.
 */
int ushstk_trace(struct shstk_ioc_trace *arg)
{
	unsigned int max, nr, i;
	struct pid **held;
	int ret;

	if (arg->flags || !arg->max_entries || arg->max_entries > SHSTK_MAX_ENTRIES ||
	    !arg->max_threads || arg->max_threads > SHSTK_MAX_THREADS)
		return -EINVAL;

	max = arg->tid ? 1 : arg->max_threads;
	held = kvmalloc_array(max, sizeof(*held), GFP_KERNEL_ACCOUNT);
	if (!held)
		return -ENOMEM;
	ret = find_threads(arg, held, max);
	if (ret < 0)
		goto free_held;
	arg->nr_threads = ret;
	nr = min_t(unsigned int, ret, max);
	ret = trace_threads(held, nr, arg);
	for (i = 0; i < nr; i++)
		put_pid(held[i]);

free_held:
	kvfree(held);
	return ret;
}
