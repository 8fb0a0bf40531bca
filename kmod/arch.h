/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arch.h - what the modules need to know about the user shadow stacks of an architecture. To add an
 * architecture, write arch_NAME.h with the functions below and include it below. No other file
 * names an architecture.
 *
 * int ushstk_arch_init(void)
 *	Is called once when the module is loaded, before all other functions. Returns 0;
 *	-ENODEV if this CPU or kernel has no user shadow stacks; -EOPNOTSUPP if the
 *	kernel hides something that is needed. Logs the reason of an error. The data that
 *	it has to keep is in arch_NAME.c, which is linked into each module that uses the
 *	other functions.
 *
 * bool ushstk_arch_active(const struct task_struct *task)
 *	Returns whether @task runs with a shadow stack now. May be called in any context.
 *
 * int ushstk_arch_pointer(u64 *ssp)
 *	Reads the shadow stack pointer with which current will continue in user mode. May
 *	be called in any context, including NMI. The pointer may have any value, because
 *	user space can set it. Returns 0; -EBUSY if the registers may now belong to
 *	somebody else (a virtual machine or another task); -ENODATA if there is no pointer.
 *
 * int ushstk_arch_saved_pointer(struct task_struct *task, u64 *ssp)
 *	Reads the shadow stack pointer of a task that is not on a CPU. If the task is on a
 *	CPU, the caller must discard the result. Returns the same values as
 *	ushstk_arch_pointer(), and -EAGAIN if the task ran meanwhile.
 *
 * u64 ushstk_arch_enabled(task), ushstk_arch_locked(task)
 *	Return the PR_SHADOW_STACK_* bits that are enabled, and those that are locked.
 *
 * u64 ushstk_arch_base(task), ushstk_arch_size(task)
 *	Return the base and the size of the shadow stack that the kernel made for @task,
 *	or 0 if the kernel has no record of one.
 *
 * u64 ushstk_arch_return_address(const struct pt_regs *regs)
 *	Is called after a violation by current. Returns the address to which the return
 *	instruction would have gone, or 0 if it cannot be read.
 *
 * u64 ushstk_arch_end(const struct task_struct *task, u64 ssp)
 *	Returns the first address behind the shadow stack that the kernel made for @task
 *	if @ssp lies in that stack, or 0 if it does not and the end is unknown.
 *
 * bool ushstk_arch_regs_ok(const struct pt_regs *regs)
 *	Returns whether @regs belong to 64-bit code.
 *
 * bool ushstk_arch_regs_saved(const struct pt_regs *regs)
 *	@regs are task_pt_regs() of current. Returns whether they hold the registers with
 *	which current entered the kernel.
 *
 * enum ushstk_word ushstk_arch_word(u64 word, u64 addr)
 *	Returns what kind of word @word is, which was found at @addr on a shadow stack.
 *
 * void ushstk_arch_sync(void)
 *	Orders earlier shadow stack writes of this CPU before later ordinary reads.
 *
 * ushstk_arch_count(counter)
 *	Adds one to a per-CPU u64. Preemption must be disabled. No count is lost if an
 *	interrupt or an NMI increments the same counter meanwhile.
 *
 * USHSTK_ARCH, USHSTK_NATIVE_PRCTL, USHSTK_STATUS_MASK
 *	Values that SHSTK_IOC_INFO reports.
 */
#ifndef USHSTK_ARCH_H
#define USHSTK_ARCH_H

#include <linux/sched.h>
#include <linux/types.h>

enum ushstk_word {
	USHSTK_WORD_CODE, /* a return address, as far as its value tells */
	USHSTK_WORD_SIGNAL, /* the mark that the kernel puts there for a signal frame */
	USHSTK_WORD_END, /* an end marker, a token, or a value that is no user address */
};

#if defined(CONFIG_X86_USER_SHADOW_STACK)
#include "arch_x86.h"
#elif defined(CONFIG_ARM64_GCS)
#include "arch_arm64.h"
#else
#error "CONFIG_X86_USER_SHADOW_STACK or CONFIG_ARM64_GCS is needed"
#endif

#endif /* USHSTK_ARCH_H */
