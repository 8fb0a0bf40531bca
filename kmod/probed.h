/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probed.h - what probes in user code (uprobes) hide of current's stack, and what was there.
 *
 * A function with a return probe returns to a trampoline of the kernel's, the first byte of the
 * page [uprobes]; where it would have returned to is in the task. And an instruction with a probe
 * is made in that page, from where the program counter goes back to where it lies.
 *
 * All that a task has of uprobes is its own, and freed by itself. 6.12 frees it before it is taken
 * from the task, which may be interrupted in between: so it is read as what may be gone.
 */
#ifndef USHSTK_PROBED_H
#define USHSTK_PROBED_H

#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>

struct return_instance;
struct uprobe_task;

#ifdef CONFIG_UPROBES

#include "probed_read.h"

/* Whether that is the trampoline's address. See ushstk_mapping_end() on VMAs. */
static inline bool ushstk_is_trampoline(u64 addr)
{
	struct vm_area_struct *vma;
	bool ret;

	if (!PAGE_ALIGNED(addr))
		return false;
	rcu_read_lock();
	vma = vma_lookup(current->mm, addr);
	ret = vma && vma->vm_mm == current->mm && vma->vm_start == addr && !vma->vm_file &&
	      vma->vm_ops && (vma->vm_flags & (VM_EXEC | VM_IO)) == (VM_EXEC | VM_IO);
	rcu_read_unlock();
	return ret;
}

/* The true return addresses in place of trampolines, of a stack that does not say where it lies. */
static noinline __maybe_unused void ushstk_mend_returns(u64 *ip, unsigned int nr)
{
	const struct return_instance *first = ushstk_returns(ushstk_own_utask());
	unsigned long address;
	unsigned int i;

	for (i = 0; first && i < nr; i++)
		if (ushstk_is_trampoline(ip[i]) && ushstk_take_return(&first, 0, &address))
			ip[i] = address;
}

#else

static inline const struct uprobe_task *ushstk_own_utask(void)
{
	return NULL;
}

static inline const struct return_instance *ushstk_returns(const struct uprobe_task *utask)
{
	return NULL;
}

static inline bool ushstk_take_return(const struct return_instance **first, unsigned long stack,
				      unsigned long *address)
{
	return false;
}

static inline void ushstk_mend_returns(u64 *ip, unsigned int nr)
{
}

static inline u64 ushstk_unstepped(u64 pc)
{
	return pc;
}

#endif

/* The program counter of current's user code. */
static __always_inline u64 ushstk_user_ip(struct pt_regs *regs)
{
	u64 pc = instruction_pointer(regs);

	return unlikely(ushstk_own_utask()) ? ushstk_unstepped(pc) : pc;
}

#endif /* USHSTK_PROBED_H */
