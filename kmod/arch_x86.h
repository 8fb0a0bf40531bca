/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arch_x86.h - CET: where the shadow stack pointer is, and what lies on the
 * stack.
 *
 * The pointer is in MSR_IA32_PL3_SSP while the CPU's extended registers belong
 * to the task, else in its saved state. TIF_NEED_FPU_LOAD does not tell the two
 * apart everywhere: kernel_fpu_begin() and switch_fpu() set it before they
 * save, and until 6.15 the task switched to runs for some instructions before
 * it is set. The kernel's own rule is exact at every instruction, in NMI too:
 * the registers are a task's if the CPU names its struct fpu as their owner
 * and that struct names the CPU (fpregs_state_valid(), private to the kernel's
 * arch/x86/kernel/fpu/context.h). The owner's per-CPU variable is not exported.
 */
#ifndef USHSTK_ARCH_X86_H
#define USHSTK_ARCH_X86_H

#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/fpu/types.h>
#include <asm/fpu/xcr.h>
#include <asm/perf_event.h>
#include <asm/processor.h>
#include <asm/processor-flags.h>
#include <asm/prctl.h>

#include "compat.h"
#include "resolve.h"

/* Set bit of a signal frame's word: arch/x86/kernel/shstk.c, SHSTK_DATA_BIT. */
#define USHSTK_SIGNAL_BIT	BIT_ULL(63)

#define USHSTK_ARCH		SHSTK_IOC_ARCH_X86
#define USHSTK_NATIVE_PRCTL	false
#define USHSTK_STATUS_MASK	(ARCH_SHSTK_SHSTK | ARCH_SHSTK_WRSS)

#define USHSTK_XSAVE_COMPACTED	BIT_ULL(63)
#define USHSTK_XSAVE_HEADER_END	(512 + 64)

extern struct fpu * __percpu *ushstk_fpregs_owner;

/* By component, from CPUID leaf 0xd: bytes, and whether aligned to 64. */
extern u16 ushstk_xstate_size[XFEATURE_CET_USER + 1];
extern bool ushstk_xstate_aligned[XFEATURE_CET_USER + 1];

#ifdef USHSTK_ARCH_INIT
struct fpu * __percpu *ushstk_fpregs_owner;
u16 ushstk_xstate_size[XFEATURE_CET_USER + 1];
bool ushstk_xstate_aligned[XFEATURE_CET_USER + 1];

static unsigned long ushstk_no_lookup(const char *name)
{
	return 0;
}

DEFINE_STATIC_CALL(ushstk_lookup, ushstk_no_lookup);

static int ushstk_arch_init(void)
{
	u32 eax, ebx, ecx, edx;
	void *lookup;
	int i;

	if (!cpu_feature_enabled(X86_FEATURE_USER_SHSTK)) {
		pr_err("this CPU or kernel has no user shadow stacks\n");
		return -ENODEV;
	}

	for (i = 2; i <= XFEATURE_CET_USER; i++) {
		cpuid_count(0xd, i, &eax, &ebx, &ecx, &edx);
		ushstk_xstate_size[i] = eax;
		ushstk_xstate_aligned[i] = ecx & BIT(1);
	}

	lookup = ushstk_resolve_text("kallsyms_lookup_name");
	if (lookup) {
		static_call_update(ushstk_lookup, lookup);
		ushstk_fpregs_owner = (struct fpu * __percpu *)
			static_call(ushstk_lookup)("fpu_fpregs_owner_ctx");
	}
	if (!ushstk_fpregs_owner) {
		pr_err("fpu_fpregs_owner_ctx: not found: cannot tell whose registers a CPU holds\n");
		return -EOPNOTSUPP;
	}
	return 0;
}
#endif /* USHSTK_ARCH_INIT */

static __always_inline bool ushstk_arch_active(const struct task_struct *task)
{
	return task->thread.features & ARCH_SHSTK_SHSTK;
}

/* Offset of the CET_U component in a compacted area with these components. */
static inline unsigned int ushstk_cet_offset(u64 xcomp_bv)
{
	unsigned int off = USHSTK_XSAVE_HEADER_END;
	int i;

	for (i = 2; i < XFEATURE_CET_USER; i++) {
		if (!(xcomp_bv & BIT_ULL(i)))
			continue;
		if (ushstk_xstate_aligned[i])
			off = ALIGN(off, 64);
		off += ushstk_xstate_size[i];
	}
	return ushstk_xstate_aligned[i] ? ALIGN(off, 64) : off;
}

static inline u64 ushstk_saved_pointer(const struct fpu *fpu)
{
	const struct xregs_state *xsave = &fpu->fpstate->regs.xsave;
	u64 xcomp_bv = xsave->header.xcomp_bv;
	const struct cet_user_state *cet;

	if (!(xcomp_bv & USHSTK_XSAVE_COMPACTED) ||
	    !(xcomp_bv & xsave->header.xfeatures & XFEATURE_MASK_CET_USER))
		return 0;
	cet = (const void *)xsave + ushstk_cet_offset(xcomp_bv);
	return cet->user_ssp;
}

static __always_inline int ushstk_arch_pointer(u64 *ssp)
{
	struct fpu *fpu = ushstk_task_fpu(current);

	/* KVM runs a guest here: both places hold the guest's state. */
	if (unlikely(READ_ONCE(fpu->__task_fpstate)))
		return -EBUSY;

	if (likely(this_cpu_read(*ushstk_fpregs_owner) == fpu &&
		   READ_ONCE(fpu->last_cpu) == raw_smp_processor_id()))
		rdmsrq(MSR_IA32_PL3_SSP, *ssp);
	else
		*ssp = ushstk_saved_pointer(fpu);
	return *ssp ? 0 : -ENODATA;
}

/* A context switch saves the registers, so they are in memory now. */
static inline int ushstk_arch_saved_pointer(struct task_struct *task, u64 *ssp)
{
	struct fpu *fpu = ushstk_task_fpu(task);

	if (READ_ONCE(fpu->__task_fpstate))
		return -EBUSY;
	*ssp = ushstk_saved_pointer(fpu);
	return *ssp ? 0 : -ENODATA;
}

static inline u64 ushstk_arch_locked(const struct task_struct *task)
{
	return task->thread.features_locked;
}

static inline u64 ushstk_arch_enabled(const struct task_struct *task)
{
	return task->thread.features & USHSTK_STATUS_MASK;
}

static inline u64 ushstk_arch_base(const struct task_struct *task)
{
	return task->thread.shstk.base;
}

static inline u64 ushstk_arch_size(const struct task_struct *task)
{
	return task->thread.shstk.size;
}

/* A return faults before it pops: the address is on top of the stack still. */
static inline u64 ushstk_arch_return_address(const struct pt_regs *regs)
{
	u64 addr;

	return copy_from_user_nofault(&addr, (void __user *)regs->sp,
				      sizeof(addr)) ? 0 : addr;
}

static __always_inline u64 ushstk_arch_end(const struct task_struct *task,
					   u64 ssp)
{
	const struct thread_shstk *shstk = &task->thread.shstk;

	/* The pointer of an empty stack is its end. */
	return ssp - shstk->base <= shstk->size ? shstk->base + shstk->size : 0;
}

static __always_inline bool ushstk_arch_regs_ok(const struct pt_regs *regs)
{
	return !(regs->flags & (X86_VM_MASK | PERF_EFLAGS_VM));
}

static __always_inline enum ushstk_word ushstk_arch_word(u64 word, u64 addr)
{
	if (likely(word - PAGE_SIZE < TASK_SIZE_MAX - PAGE_SIZE)) {
		/* A restore token holds the address behind itself, bit 0 set. */
		return unlikely((word ^ 1) == addr + 8) ? USHSTK_WORD_END :
							  USHSTK_WORD_CODE;
	}
	return word & USHSTK_SIGNAL_BIT ? USHSTK_WORD_SIGNAL : USHSTK_WORD_END;
}

static __always_inline void ushstk_arch_sync(void)
{
}

#endif /* USHSTK_ARCH_X86_H */
