// SPDX-License-Identifier: GPL-2.0-only
/*
 * remote.c - the shadow stacks of other tasks.
 *
 * A trace is of one moment, and the task is not stopped for it:
 *
 * - A task that is on a CPU is interrupted there and read by that CPU, as a
 *   profiler's sample would.
 * - A task that is not has its registers in memory, and nobody but itself
 *   changes its shadow stack. It is read from here. Then it is looked at again:
 *   if it has not run meanwhile, the trace is exact, otherwise it is thrown
 *   away. Every context switch away from a task is counted in it, so a task
 *   that is off the CPU with an unchanged count has not run.
 *
 * A task that does neither for some tries gives -EAGAIN.
 *
 * Access is decided by ptrace's rules, and signal->exec_update_lock is held from
 * that decision until the last byte is read, so that no exec in between can make
 * it a decision about another program.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
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

/* How often a task is looked at before it counts as too restless. */
#define TRIES	20

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
 * ushstk_remote_init() - bind what is not exported
 *
 * Neither is needed: without pidfd_pid() callers can only ask about their own
 * process, without ptrace_may_access() the rule is stricter.
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

/* Whether current may know where the code of @task returns to. */
static bool may_read(struct task_struct *task)
{
	if (same_thread_group(task, current))
		return true;
	if (ptrace_check)
		return static_call(ushstk_ptrace_may_access)
			(task, PTRACE_MODE_READ_REALCREDS);
	return capable(CAP_SYS_PTRACE) && perfmon_capable();
}

/* The task that a pidfd refers to, or the leader of the caller's process. */
static struct task_struct *get_process(int pidfd)
{
	struct task_struct *task;
	struct file *file;
	struct pid *pid;

	if (pidfd == -1)
		return get_task_struct(current->group_leader);
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
 * for_each_thread() under RCU only: the kernel's also takes tasklist_lock for
 * good enough, which it does not export, so that with PROVE_RCU it cannot be used
 * in a module.
 */
#define for_each_rcu_thread(process, task)				\
	list_for_each_entry_rcu(task, &(process)->signal->thread_head,	\
				thread_node)

/* One thread of @process, by the number that the caller sees. */
static struct task_struct *get_thread(struct task_struct *process, u32 tid)
{
	struct task_struct *task, *found = NULL;

	rcu_read_lock();
	for_each_rcu_thread(process, task) {
		if (task_pid_vnr(task) == tid) {
			found = get_task_struct(task);
			break;
		}
	}
	rcu_read_unlock();
	return found ? found : ERR_PTR(-ESRCH);
}

/*
 * Begin to read about @task: from here to end_access() its credentials and
 * address space are those that were checked.
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

/* --- one task at one moment --- */

/**
 * struct view - what is read of a task
 * @task: the task.
 * @max: capacity of @entry; 0: only the pointer is wanted.
 * @entry: receives the program counter and the return addresses.
 * @nr: number of entries.
 * @ssp: shadow stack pointer.
 * @flags: SHSTK_THREAD_*.
 * @ret: of view_running(): 0 or a negative errno.
 */
struct view {
	struct task_struct *task;
	unsigned int max;
	u64 *entry;
	unsigned int nr;
	u64 ssp;
	u32 flags;
	int ret;
};

/* Runs on the CPU that the task was on, if it is there still. */
static void view_running(void *arg)
{
	struct view *view = arg;
	struct ushstk_span span;

	if (current != view->task) {
		view->ret = -EAGAIN;
		return;
	}
	/* It is exiting, and its memory is gone. */
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

/* The shadow stack at an address, or -ENOENT. */
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

static int view_end(struct view *view, u64 *end)
{
	struct mm_struct *mm;
	u64 start;
	int ret;

	*end = ushstk_arch_end(view->task, view->ssp);
	if (*end)
		return 0;
	view->flags |= SHSTK_THREAD_SWITCHED;

	mm = get_task_mm(view->task);
	if (!mm)
		return -ESRCH;
	ret = find_stack(mm, view->ssp, &start, end);
	/* An empty stack's pointer is behind its last word. */
	if (ret == -ENOENT)
		ret = find_stack(mm, view->ssp - 8, &start, end);
	mmput(mm);
	return ret == -ENOENT ? -ENODATA : ret;
}

static int copy_stack(struct view *view)
{
	u64 addr = view->ssp, end;
	bool signal = false, more = true;
	int ret;

	ret = view_end(view, &end);
	if (ret)
		return ret;
	while (more && addr < end && view->nr < view->max + 1) {
		u64 words = min3((end - addr) / 8,
				 (u64)view->max + 1 - view->nr,
				 (PAGE_SIZE - offset_in_page(addr)) / 8);
		u64 *dst = view->entry + view->nr;

		if (access_process_vm(view->task, addr, dst, words * 8, 0) !=
		    words * 8)
			return -EFAULT;
		more = ushstk_filter(view->entry, dst, words, addr, &view->nr,
				     &signal);
		addr += words * 8;
	}
	if (signal)
		view->flags |= SHSTK_THREAD_SIGNAL;
	return 0;
}

/* Changes whenever the task stops running; see the top of this file. */
static unsigned long times_switched(const struct task_struct *task)
{
	return READ_ONCE(task->nvcsw) + READ_ONCE(task->nivcsw);
}

static bool on_cpu(const struct task_struct *task)
{
	/* Pairs with the release in the scheduler's finish_task(). */
	return smp_load_acquire(&task->on_cpu);
}

/*
 * Where the task goes on in user mode. Its kernel stack, which has the user
 * registers, may go with the task at any time and cannot be held by a module.
 */
static int saved_pc(struct task_struct *task, u64 *pc)
{
	struct pt_regs regs;

	if (copy_from_kernel_nofault(&regs, task_pt_regs(task), sizeof(regs)))
		return -ESRCH;
	*pc = instruction_pointer(&regs);
	return 0;
}

static int view_sleeping(struct view *view)
{
	struct task_struct *task = view->task;
	unsigned long switched;
	int ret;

	if (on_cpu(task))
		return -EAGAIN;
	switched = times_switched(task);

	ret = ushstk_arch_saved_pointer(task, &view->ssp);
	if (!ret && view->max)
		ret = saved_pc(task, &view->entry[0]);
	if (!ret && view->max) {
		view->nr = 1;
		ret = copy_stack(view);
	}

	/* All reads above come before these. */
	smp_rmb();
	if (on_cpu(task) || times_switched(task) != switched)
		return -EAGAIN;
	return READ_ONCE(task->exit_state) ? -ESRCH : ret;
}

static int view_task(struct view *view)
{
	struct task_struct *task = view->task;
	int ret = -EAGAIN, i;

	if (task->flags & (PF_KTHREAD | PF_USER_WORKER) ||
	    !ushstk_arch_active(task))
		return -ENODATA;

	for (i = 0; i < TRIES && ret == -EAGAIN; i++) {
		view->nr = 0;
		view->flags = 0;
		if (on_cpu(task)) {
			view->ret = -EAGAIN;
			if (task != current)
				view->flags |= SHSTK_THREAD_RUNNING;
			smp_call_function_single(task_cpu(task), view_running,
						 view, 1);
			ret = view->ret;
		} else {
			ret = view_sleeping(view);
		}
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

/* --- the ioctls --- */

/* The thread that @pidfd and @tid name; see &struct shstk_ioc_status. */
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
 * ushstk_status() - SHSTK_IOC_STATUS
 * @arg: the argument.
 *
 * Return: 0 or a negative errno.
 */
int ushstk_status(struct shstk_ioc_status *arg)
{
	struct task_struct *task;
	struct view view = {};
	int ret;

	task = get_task(arg->pidfd, arg->tid);
	if (IS_ERR(task))
		return PTR_ERR(task);
	ret = begin_access(task);
	if (ret)
		goto put_task;

	arg->locked = ushstk_arch_locked(task);
	arg->enabled = 0;
	arg->pointer = 0;
	arg->base = 0;
	arg->size = 0;
	if (!ushstk_arch_active(task)) {
		arg->locked = 0;
		goto end_access;
	}
	view.task = task;
	ret = view_task(&view);
	if (ret)
		goto end_access;
	arg->enabled = ushstk_arch_enabled(task);
	arg->pointer = view.ssp;
	arg->base = ushstk_arch_base(task);
	arg->size = ushstk_arch_size(task);

end_access:
	end_access(task);
put_task:
	put_task_struct(task);
	return ret;
}

/**
 * ushstk_map() - SHSTK_IOC_MAP
 * @arg: the argument.
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
	if (!mm) {
		ret = -ESRCH;
		goto end_access;
	}
	ret = find_stack(mm, arg->addr, &arg->start, &arg->end);
	mmput(mm);

end_access:
	end_access(task);
put_task:
	put_task_struct(task);
	return ret;
}

/* All threads of a process that fit, each held; returns how many there were. */
static unsigned int get_threads(struct task_struct *process,
				struct task_struct **held, unsigned int max)
{
	struct task_struct *task;
	unsigned int nr = 0;

	rcu_read_lock();
	for_each_rcu_thread(process, task) {
		if (nr < max)
			held[nr] = get_task_struct(task);
		nr++;
	}
	rcu_read_unlock();
	return nr;
}

static int trace_thread(struct task_struct *task, u64 *entry,
			const struct shstk_ioc_trace *arg, unsigned int i)
{
	struct shstk_ioc_thread __user *threads = u64_to_user_ptr(arg->threads);
	u64 __user *entries = u64_to_user_ptr(arg->entries);
	struct shstk_ioc_thread thread = { .tid = task_pid_vnr(task) };
	struct view view = {
		.task = task,
		.max = arg->max_entries,
		.entry = entry,
	};

	thread.error = view_task(&view);
	if (thread.error == -EINTR)
		return -EINTR;
	if (!thread.error) {
		thread.nr = view.nr;
		thread.flags = view.flags;
		if (copy_to_user(entries + (u64)i * arg->max_entries, entry,
				 view.nr * sizeof(*entry)))
			return -EFAULT;
	}
	return copy_to_user(threads + i, &thread, sizeof(thread)) ? -EFAULT : 0;
}

static int trace_threads(struct task_struct **held, unsigned int nr,
			 const struct shstk_ioc_trace *arg)
{
	unsigned int i;
	u64 *entry;
	int ret = 0;

	/* The program counter, and one more to see that something is cut. */
	entry = kmalloc_array(arg->max_entries + 1, sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	for (i = 0; i < nr && !ret; i++) {
		ret = begin_access(held[i]);
		if (ret)
			break;
		ret = trace_thread(held[i], entry, arg, i);
		end_access(held[i]);
	}
	kfree(entry);
	return ret;
}

/**
 * ushstk_trace() - SHSTK_IOC_TRACE
 * @arg: the argument.
 *
 * Return: 0 or a negative errno.
 */
int ushstk_trace(struct shstk_ioc_trace *arg)
{
	struct task_struct *process, **held;
	unsigned int max, nr, i;
	int ret;

	if (arg->flags || !arg->max_entries ||
	    arg->max_entries > SHSTK_MAX_ENTRIES || !arg->max_threads ||
	    arg->max_threads > SHSTK_MAX_THREADS)
		return -EINVAL;

	process = get_process(arg->pidfd);
	if (IS_ERR(process))
		return PTR_ERR(process);

	max = arg->tid ? 1 : arg->max_threads;
	held = kvmalloc_array(max, sizeof(*held), GFP_KERNEL);
	if (!held) {
		ret = -ENOMEM;
		goto put_process;
	}
	if (arg->tid) {
		held[0] = get_thread(process, arg->tid);
		ret = PTR_ERR_OR_ZERO(held[0]);
		if (ret)
			goto free_held;
		nr = 1;
	} else {
		nr = get_threads(process, held, max);
	}
	arg->nr_threads = nr;
	nr = min(nr, max);

	ret = trace_threads(held, nr, arg);
	for (i = 0; i < nr; i++)
		put_task_struct(held[i]);

free_held:
	kvfree(held);
put_process:
	put_task_struct(process);
	return ret;
}
