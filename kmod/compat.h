/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.h - the differences between the kernel versions that the modules are built for. No other
 * file compares kernel versions.
 */
#ifndef USHSTK_COMPAT_H
#define USHSTK_COMPAT_H

#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/version.h>

/*
 * The kernel has kzalloc_obj() since 7.0, and in the longterm kernels it was backported to, which
 * do not include 6.18.
 */
#ifndef kzalloc_obj
#define kzalloc_obj(obj, gfp) kzalloc(sizeof(obj), gfp)
#endif

#ifdef CONFIG_PER_VMA_LOCK
#include <linux/build_bug.h>
#include <linux/mm_types.h>
#include <linux/seqlock.h>

static_assert(offsetof(seqcount_t, sequence) == 0);

/*
 * Returns a number that each change of a mapping of @mm changes. It is a plain number in 6.12,
 * until the stable releases of 6.12 got the sequence count of 6.13, which begins with the same
 * number.
 */
static inline unsigned int ushstk_mm_seq(const struct mm_struct *mm)
{
	return READ_ONCE(*(const unsigned int *)&mm->mm_lock_seq);
}
#endif

#ifdef CONFIG_X86
#include <asm/fpu/types.h>
#include <asm/msr.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#include <asm/cpuid.h>

/* rdmsrl() was renamed to rdmsrq() in 6.16. */
#define rdmsrq(msr, val) rdmsrl(msr, val)

static inline struct fpu *ushstk_task_fpu(struct task_struct *task)
{
	return &task->thread.fpu;
}
#else
#include <asm/cpuid/api.h>

/*
 * 6.16 moved struct fpu behind the task and, with CONFIG_X86_DEBUG_FPU, made x86_task_fpu() a
 * function that modules cannot call. This function returns the same address.
 */
static inline struct fpu *ushstk_task_fpu(struct task_struct *task)
{
	return (void *)task + sizeof(*task);
}
#endif
#endif /* CONFIG_X86 */

#endif /* USHSTK_COMPAT_H */
