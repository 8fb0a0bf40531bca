/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arch_arm64.h - the architecture functions for arm64 (GCS): where the shadow stack pointer is, and
 * what words lie on the stack.
 *
 * GCSPR_EL0 is live for current in every context but one: the kernel switches it together with the
 * task and does not use it itself. Entries are plain addresses, without pointer authentication
 * codes.
 */
#ifndef USHSTK_ARCH_ARM64_H
#define USHSTK_ARCH_ARM64_H

#include <linux/prctl.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <asm/cpufeature.h>
#include <asm/gcs.h>
#include <asm/irq_regs.h>
#include <asm/mmu.h>
#include <asm/pointer_auth.h>
#include <asm/ptrace.h>
#include <asm/sysreg.h>

#include "compat.h"

#define USHSTK_ARCH SHSTK_IOC_ARCH_ARM64
#define USHSTK_NATIVE_PRCTL true
/* this_cpu_inc() would disable preemption once more, which takes ten instructions. */
#define ushstk_arch_count(counter) atomic64_inc((atomic64_t *)raw_cpu_ptr(&(counter)))
#define USHSTK_TTBR_ASID 48 /* the lowest bit of the ASID field of TTBR1_EL1 */
#define USHSTK_STATUS_MASK PR_SHADOW_STACK_SUPPORTED_STATUS_MASK

static inline int ushstk_arch_init(void)
{
	if (!system_supports_gcs()) {
		pr_err("this CPU or kernel has no user shadow stacks\n");
		return -ENODEV;
	}
	return 0;
}

static __always_inline bool ushstk_arch_active(const struct task_struct *task)
{
	return task->thread.gcs_el0_mode & PR_SHADOW_STACK_ENABLE;
}

/*
 * Returns whether a context switch may be under way on this CPU. __switch_to() loads the pointer of
 * the next task, and its mm before that, while current is still the previous task. Interrupts are
 * off there, so only a pseudo-NMI that came while they were off can see this state.
 */
static __always_inline bool ushstk_may_switch(void)
{
	const struct pt_regs *regs;

	if (likely(!in_nmi()))
		return false;
	regs = get_irq_regs();
	return !regs || (!user_mode(regs) && !interrupts_enabled(regs));
}

/*
 * Returns whether the memory that this CPU sees belongs to current. cpu_do_switch_mm() writes the
 * ASID last but one; the page table comes after it, and nothing can be read without it.
 */
static __always_inline bool ushstk_memory_is_own(void)
{
	const struct mm_struct *mm = current->mm;

	return mm && read_sysreg(ttbr1_el1) >> USHSTK_TTBR_ASID == ASID(mm);
}

/*
 * Returns whether @ssp is the shadow stack pointer of current. Another thread of the same mm has
 * another stack, so the bounds tell it apart. A child of vfork() uses the stack of its parent, but
 * the parent sleeps meanwhile.
 */
static __always_inline bool ushstk_pointer_is_own(u64 ssp)
{
	const struct task_struct *task = current;

	return ushstk_memory_is_own() && READ_ONCE(task->__state) == TASK_RUNNING &&
	       ssp - task->thread.gcs_base < task->thread.gcs_size;
}

static __always_inline int ushstk_arch_pointer(u64 *ssp)
{
	*ssp = read_sysreg_s(SYS_GCSPR_EL0);
	if (unlikely(ushstk_may_switch()) && !ushstk_pointer_is_own(*ssp))
		return -EBUSY;
	return *ssp ? 0 : -ENODATA;
}

/* A context switch saves the pointer in the task. */
static inline int ushstk_arch_saved_pointer(struct task_struct *task, u64 *ssp)
{
	*ssp = task->thread.gcspr_el0;
	return *ssp ? 0 : -ENODATA;
}

static inline u64 ushstk_arch_locked(const struct task_struct *task)
{
	return task->thread.gcs_el0_locked;
}

static inline u64 ushstk_arch_enabled(const struct task_struct *task)
{
	return task->thread.gcs_el0_mode;
}

static inline u64 ushstk_arch_base(const struct task_struct *task)
{
	return task->thread.gcs_base;
}

static inline u64 ushstk_arch_size(const struct task_struct *task)
{
	return task->thread.gcs_size;
}

/* RET returns to the link register unless it names another register. */
static inline u64 ushstk_arch_return_address(const struct pt_regs *regs)
{
	return ptrauth_strip_user_insn_pac(regs->regs[30]);
}

static __always_inline u64 ushstk_arch_end(const struct task_struct *task, u64 ssp)
{
	u64 base = task->thread.gcs_base, size = task->thread.gcs_size;

	return ssp - base < size ? base + size : 0;
}

static __always_inline bool ushstk_arch_regs_ok(const struct pt_regs *regs)
{
	return !compat_user_mode(regs);
}

/* Pseudo-NMIs are masked, too, until the registers are saved. */
static __always_inline bool ushstk_arch_regs_saved(const struct pt_regs *regs)
{
	return true;
}

static __always_inline enum ushstk_word ushstk_arch_word(u64 word, u64 addr)
{
	/*
	 * A cap holds its own address in the bits above bit 11. The bits below are 0 for a signal
	 * frame, 1 for a stack that a thread can switch to, and 5 while a switch is under way.
	 */
	if (unlikely(!((word ^ addr) & ~0xfffULL)))
		return word & 0xfff ? USHSTK_WORD_END : USHSTK_WORD_SIGNAL;
	return likely(word - PAGE_SIZE < TASK_SIZE_MAX - PAGE_SIZE) ? USHSTK_WORD_CODE :
								      USHSTK_WORD_END;
}

static __always_inline void ushstk_arch_sync(void)
{
	gcsb_dsync();
}

#endif /* USHSTK_ARCH_ARM64_H */
