/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arch_arm64.h - GCS: where the shadow stack pointer is, and what lies on the
 * stack.
 *
 * GCSPR_EL0 is live for current in every context but one: the kernel switches it
 * with the task and does not use it itself. Entries are plain addresses, without
 * pointer authentication codes.
 */
#ifndef USHSTK_ARCH_ARM64_H
#define USHSTK_ARCH_ARM64_H

#include <linux/prctl.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <asm/cpufeature.h>
#include <asm/gcs.h>
#include <asm/irq_regs.h>
#include <asm/pointer_auth.h>
#include <asm/ptrace.h>
#include <asm/sysreg.h>

#include "compat.h"

#define USHSTK_ARCH SHSTK_IOC_ARCH_ARM64
#define USHSTK_NATIVE_PRCTL true
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
 * __switch_to() loads the next task's pointer, and its mm before, while current
 * is still the one that leaves. Interrupts are off there: only a pseudo-NMI can
 * see it. What it interrupted is not told by current; so none is served that came
 * while interrupts were off.
 */
static __always_inline bool ushstk_in_switch(void)
{
	const struct pt_regs *regs;

	if (likely(!in_nmi()))
		return false;
	regs = get_irq_regs();
	return !regs || (!user_mode(regs) && !interrupts_enabled(regs));
}

static __always_inline int ushstk_arch_pointer(u64 *ssp)
{
	if (unlikely(ushstk_in_switch()))
		return -EBUSY;
	*ssp = read_sysreg_s(SYS_GCSPR_EL0);
	return *ssp ? 0 : -ENODATA;
}

/* A context switch saves it. */
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

/* RET returns to the link register unless it names another one. */
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

/* Pseudo-NMIs are off too until they are saved. */
static __always_inline bool ushstk_arch_regs_saved(const struct pt_regs *regs)
{
	return true;
}

static __always_inline enum ushstk_word ushstk_arch_word(u64 word, u64 addr)
{
	/*
	 * A cap holds its own address in the bits above 11; below are 0 for a
	 * signal frame, 1 for a stack to switch to, 5 for a switch under way.
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
