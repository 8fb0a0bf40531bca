/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * return_probe.h - finds what probes in user code (uprobes) hide on the stack of current.
 *
 * A function with a return probe returns to a trampoline of the kernel, which is the first byte of
 * the mapping [uprobes]; the true return address is kept in the task. An instruction with a probe
 * is executed as a copy in that page, and then the program counter goes back to the original place.
 *
 * All uprobes data of a task belongs to the task, and the task frees it itself. 6.12 frees it
 * before it unlinks it from the task, and the task may be interrupted between these two steps. So
 * the data is read as memory that may be freed already.
 */
#ifndef USHSTK_RETURN_PROBE_H
#define USHSTK_RETURN_PROBE_H

#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>

struct return_instance;
struct uprobe_task;

#ifdef CONFIG_UPROBES

#include "return_probe_read.h"

/*
 * Returns whether @addr is the address of the trampoline. The comment at ushstk_mapping_end() says
 * why VMAs may be read like this.
 */
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

/*
 * Replaces trampolines among the @nr return addresses at @ip by the true return addresses. The
 * addresses come from a shadow stack, so the frames' stack pointers are not known.
 */
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

/* Returns the program counter of the user code of current. */
static __always_inline u64 ushstk_user_ip(struct pt_regs *regs)
{
	u64 pc = instruction_pointer(regs);

	return unlikely(ushstk_own_utask()) ? ushstk_unstepped(pc) : pc;
}

#endif /* USHSTK_RETURN_PROBE_H */
