/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arch_x86.h - the architecture functions for x86 (CET): where the shadow stack pointer is, and
 * what words lie on the stack.
 *
 * The pointer is in MSR_IA32_PL3_SSP while the extended registers of the CPU belong to the task,
 * and otherwise in the saved state of the task. TIF_NEED_FPU_LOAD does not tell these two cases
 * apart everywhere: kernel_fpu_begin() and switch_fpu() set it before they save, and until 6.15 the
 * next task runs for some instructions before it is set. The kernel's own rule is exact at every
 * instruction, also in NMI: the registers belong to a task if the CPU names its struct fpu as their
 * owner and that struct names the CPU (fpregs_state_valid(), private to the kernel's
 * arch/x86/kernel/fpu/context.h). The per-CPU variable that names the owner is not exported.
 */
#ifndef USHSTK_ARCH_X86_H
#define USHSTK_ARCH_X86_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/cpu_entry_area.h>
#include <asm/fpu/types.h>
#include <asm/fpu/xcr.h>
#include <asm/perf_event.h>
#include <asm/processor.h>
#include <asm/processor-flags.h>
#include <asm/prctl.h>

#include "compat.h"

/* This bit is set in the word of a signal frame: arch/x86/kernel/shstk.c, SHSTK_DATA_BIT. */
#define USHSTK_SIGNAL_BIT BIT_ULL(63)

#define ushstk_arch_count(counter) this_cpu_inc(counter)
#define USHSTK_ARCH SHSTK_IOC_ARCH_X86
#define USHSTK_NATIVE_PRCTL false
#define USHSTK_STATUS_MASK (ARCH_SHSTK_SHSTK | ARCH_SHSTK_WRSS)

#define USHSTK_XSAVE_COMPACTED BIT_ULL(63)
#define USHSTK_XSAVE_HEADER_END (512 + 64)

extern struct fpu *__percpu *ushstk_fpregs_owner;

/* Size in bytes of each xstate component, and whether it is aligned to 64, from CPUID leaf 0xd. */
extern u16 ushstk_xstate_size[XFEATURE_CET_USER + 1];
extern bool ushstk_xstate_aligned[XFEATURE_CET_USER + 1];

int ushstk_arch_init(void);

static __always_inline bool ushstk_arch_active(const struct task_struct *task)
{
	return task->thread.features & ARCH_SHSTK_SHSTK;
}

/*
 * Returns the offset of the CET_U component in a compacted area that holds the components
 * @xcomp_bv.
 */
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

/* Returns the offset of the pointer in a saved state with this header, or 0 if it is not there. */
static inline unsigned int ushstk_cet_saved(const struct xstate_header *header)
{
	u64 xcomp_bv = header->xcomp_bv;

	if (!(xcomp_bv & USHSTK_XSAVE_COMPACTED) ||
	    !(xcomp_bv & header->xfeatures & XFEATURE_MASK_CET_USER))
		return 0;
	return ushstk_cet_offset(xcomp_bv) + offsetof(struct cet_user_state, user_ssp);
}

/*
 * Reads the saved pointer of current. Nobody else changes or frees this state. Returns 0 if none.
 */
static inline u64 ushstk_own_saved_pointer(const struct fpu *fpu)
{
	const struct xregs_state *xsave = &fpu->fpstate->regs.xsave;
	unsigned int off = ushstk_cet_saved(&xsave->header);

	return off ? *(const u64 *)((const void *)xsave + off) : 0;
}

/*
 * Returns whether the extended registers may be those of a virtual machine that current runs.
 * fpu_swap_kvm_fpstate() sets __task_fpstate before it loads the guest's registers, and clears it
 * before it has loaded the registers of current again. Between the clearing and the loading it can
 * be interrupted while the guest's registers are still there. It holds fpregs_lock() then, which
 * turns softirqs off, so in a process that has virtual CPUs any section with softirqs off counts as
 * that section. With PREEMPT_RT fpregs_lock() leaves no trace, so there the answer is always yes
 * for a process that has virtual CPUs.
 */
static __always_inline bool ushstk_guest_registers(struct fpu *fpu)
{
	if (unlikely(READ_ONCE(fpu->__task_fpstate)))
		return true;
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) && likely(!softirq_count()))
		return false;
	fpu = ushstk_task_fpu(current->group_leader);
	return READ_ONCE(fpu->guest_perm.__state_perm) & FPU_GUEST_PERM_LOCKED;
}

static __always_inline int ushstk_arch_pointer(u64 *ssp)
{
	struct fpu *fpu = ushstk_task_fpu(current);
	int ret = 0;

	/* The owner and the register must be read on the same CPU. */
	preempt_disable_notrace();
	if (unlikely(ushstk_guest_registers(fpu)))
		ret = -EBUSY;
	else if (likely(this_cpu_read(*ushstk_fpregs_owner) == fpu &&
			READ_ONCE(fpu->last_cpu) == raw_smp_processor_id()))
		rdmsrq(MSR_IA32_PL3_SSP, *ssp);
	else
		*ssp = ushstk_own_saved_pointer(fpu);
	preempt_enable_notrace();
	if (unlikely(ret))
		return ret;
	return *ssp ? 0 : -ENODATA;
}

/*
 * A context switch saves the registers, so the pointer is in memory now. But the task may start to
 * run, and give its state back to KVM or get a larger one. Then the memory that is read here may be
 * freed already, so it is read with copy_from_kernel_nofault() and checked again at the end.
 */
static inline int ushstk_arch_saved_pointer(struct task_struct *task, u64 *ssp)
{
	struct fpu *fpu = ushstk_task_fpu(task);
	struct fpstate *fpstate = READ_ONCE(fpu->fpstate);
	const void *xsave = &fpstate->regs.xsave;
	struct xstate_header header;
	unsigned int off;

	*ssp = 0;
	if (READ_ONCE(fpu->__task_fpstate))
		return -EBUSY;
	if (copy_from_kernel_nofault(&header, xsave + offsetof(struct xregs_state, header),
				     sizeof(header)))
		return -EAGAIN;
	off = ushstk_cet_saved(&header);
	if (off && copy_from_kernel_nofault(ssp, xsave + off, sizeof(*ssp)))
		return -EAGAIN;

	/* All reads above must come before the two checks below. */
	smp_rmb();
	if (READ_ONCE(fpu->fpstate) != fpstate || READ_ONCE(fpu->__task_fpstate))
		return -EAGAIN;
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

/* A return instruction faults before it pops, so the address is still on top of the stack. */
static inline u64 ushstk_arch_return_address(const struct pt_regs *regs)
{
	u64 addr;

	return copy_from_user_nofault(&addr, (void __user *)regs->sp, sizeof(addr)) ? 0 : addr;
}

static __always_inline u64 ushstk_arch_end(const struct task_struct *task, u64 ssp)
{
	const struct thread_shstk *shstk = &task->thread.shstk;

	/* The pointer of an empty stack is the end of the stack, so <= is right. */
	return ssp - shstk->base <= shstk->size ? shstk->base + shstk->size : 0;
}

static __always_inline bool ushstk_arch_regs_ok(const struct pt_regs *regs)
{
	return !(regs->flags & (X86_VM_MASK | PERF_EFLAGS_VM));
}

/*
 * The distance in words from the top of the NMI stack to the registers that exc_nmi() gets:
 * entry_64.S, asm_exc_nmi.
 */
#define USHSTK_NMI_WORDS 12

/* Returns whether @sp lies on the stack of @size bytes that ends at @top. */
static __always_inline bool ushstk_on_stack(u64 sp, u64 top, u64 size)
{
	return top - sp < size;
}

/*
 * Returns whether @regs, which are task_pt_regs(), hold the registers with which current entered
 * the kernel. An NMI may hit the entry code before it has saved them; then the memory still holds
 * the registers of an earlier entry. If the NMI hit the kernel, the interrupted stack pointer
 * tells: before the registers are saved it is still that of the program, or on one of the stacks of
 * the entry code, or inside @regs. On the way out of the kernel it looks the same although the
 * saved registers are still right; nothing tells these two cases apart, so both return false. FRED
 * saves all registers that matter at once.
 */
static __always_inline bool ushstk_arch_regs_saved(const struct pt_regs *regs)
{
	const struct x86_hw_tss *tss;
	const struct pt_regs *nmi;
	u64 top, sp;

	if (likely(!in_nmi()) || cpu_feature_enabled(X86_FEATURE_FRED))
		return true;
	tss = this_cpu_ptr(&cpu_tss_rw.x86_tss);
	top = tss->ist[IST_INDEX_NMI];
	/* An NMI that hit user mode runs on the stack of the task, and @regs are its own. */
	if (!ushstk_on_stack(current_stack_pointer, top, EXCEPTION_STKSZ))
		return true;
	nmi = (const struct pt_regs *)(top - USHSTK_NMI_WORDS * sizeof(long)) - 1;
	sp = nmi->sp;
	return sp >= TASK_SIZE_MAX &&
	       !ushstk_on_stack(sp, (unsigned long)(regs + 1), sizeof(*regs)) &&
	       !ushstk_on_stack(sp, tss->sp0, sizeof(struct entry_stack)) &&
	       !ushstk_on_stack(sp, tss->ist[IST_INDEX_DB], EXCEPTION_STKSZ);
}

static __always_inline enum ushstk_word ushstk_arch_word(u64 word, u64 addr)
{
	if (likely(word - PAGE_SIZE < TASK_SIZE_MAX - PAGE_SIZE)) {
		/* A restore token holds the address behind itself, with bit 0 set. */
		return unlikely((word ^ 1) == addr + 8) ? USHSTK_WORD_END : USHSTK_WORD_CODE;
	}
	return word & USHSTK_SIGNAL_BIT ? USHSTK_WORD_SIGNAL : USHSTK_WORD_END;
}

static __always_inline void ushstk_arch_sync(void)
{
}

#endif /* USHSTK_ARCH_X86_H */
