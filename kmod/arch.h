/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arch.h - what the modules need to know about an architecture's user shadow
 * stacks. To add one, write arch_NAME.h with these functions and include it
 * below; nothing else names an architecture.
 *
 * int ushstk_arch_init(void)
 *	Once at load, before all others. Return: 0; -ENODEV if this CPU or
 *	kernel has no user shadow stacks; -EOPNOTSUPP if the kernel hides what
 *	is needed. Says why. What it has to keep is in arch_NAME.c, which is
 *	linked into each module that uses the other functions.
 *
 * bool ushstk_arch_active(const struct task_struct *task)
 *	Whether @task runs with a shadow stack now. Any context.
 *
 * int ushstk_arch_pointer(u64 *ssp)
 *	The shadow stack pointer with which current will go on in user mode.
 *	Any context, NMI as well. It may have any value, as users can set it.
 *	Return: 0; -EBUSY if the registers may be another's now (a virtual
 *	machine's, another task's); -ENODATA if there is none.
 *
 * int ushstk_arch_saved_pointer(struct task_struct *task, u64 *ssp)
 *	The same of a task that is not on a CPU; what comes of one that is, is
 *	to be thrown away. Return: as ushstk_arch_pointer(); -EAGAIN if the
 *	task ran meanwhile.
 *
 * u64 ushstk_arch_enabled(task), ushstk_arch_locked(task)
 *	PR_SHADOW_STACK_* that are on, and locked.
 *
 * u64 ushstk_arch_base(task), ushstk_arch_size(task)
 *	The stack that the kernel made for @task; 0 if it has no record.
 *
 * u64 ushstk_arch_return_address(const struct pt_regs *regs)
 *	After a violation of current: where the return would have gone; 0 if
 *	that cannot be read.
 *
 * u64 ushstk_arch_end(const struct task_struct *task, u64 ssp)
 *	The first address behind the shadow stack that the kernel made for
 *	@task if @ssp lies in it, else 0: not known.
 *
 * bool ushstk_arch_regs_ok(const struct pt_regs *regs)
 *	Whether @regs are those of 64-bit code.
 *
 * bool ushstk_arch_regs_saved(const struct pt_regs *regs)
 *	Whether @regs, of current, are those with which it came into the kernel.
 *
 * enum ushstk_word ushstk_arch_word(u64 word, u64 addr)
 *	What the word found at @addr is.
 *
 * void ushstk_arch_sync(void)
 *	Order earlier shadow stack writes of this CPU before ordinary reads.
 *
 * ushstk_arch_count(counter)
 *	Add one to a per-CPU u64 while preemption is disabled, so that nothing is lost
 *	if an interrupt or an NMI does the same meanwhile.
 *
 * USHSTK_ARCH, USHSTK_NATIVE_PRCTL, USHSTK_STATUS_MASK
 *	What SHSTK_IOC_INFO says.
 */
#ifndef USHSTK_ARCH_H
#define USHSTK_ARCH_H

#include <linux/sched.h>
#include <linux/types.h>

enum ushstk_word {
	USHSTK_WORD_CODE, /* a return address, as far as its value tells */
	USHSTK_WORD_SIGNAL, /* the kernel's mark of a signal frame */
	USHSTK_WORD_END, /* end marker, token, or no user address */
};

#if defined(CONFIG_X86_USER_SHADOW_STACK)
#include "arch_x86.h"
#elif defined(CONFIG_ARM64_GCS)
#include "arch_arm64.h"
#else
#error "CONFIG_X86_USER_SHADOW_STACK or CONFIG_ARM64_GCS is needed"
#endif

#endif /* USHSTK_ARCH_H */
