// SPDX-License-Identifier: GPL-2.0-only
/*
 * kfunc.c - bpf_shstk_get_user_stack() for BPF programs.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>

#include "probed.h"
#include "read.h"
#include "ushstk.h"

static int stack_of_current(u64 *entry, u32 max, u64 flags)
{
	struct pt_regs *regs = task_pt_regs(current);
	struct ushstk_span span;
	unsigned int saved;
	int ret;

	if (flags || !max)
		return -EINVAL;
	if (current->flags & (PF_KTHREAD | PF_USER_WORKER) || !current->mm ||
	    !ushstk_arch_active(current))
		return -ENODATA;

	/* In an NMI they may not be there yet: a wrong program counter is worse than none. */
	saved = ushstk_arch_regs_saved(regs);
	ret = ushstk_read_current(entry + saved, max - saved, &span);
	if (ret)
		return ret;
	if (unlikely(ushstk_own_utask()))
		ushstk_mend_returns(entry + saved, span.nr);
	if (saved)
		entry[0] = ushstk_user_ip(regs);
	return (saved + span.nr) * sizeof(*entry);
}

__bpf_kfunc_start_defs();

/**
 * bpf_shstk_get_user_stack() - user stack of current from its shadow stack
 * @buf: receives the program counter and then return addresses, innermost
 *	first, as words of 64 bits.
 * @buf__sz: bytes that fit.
 * @flags: must be 0.
 *
 * Unlike bpf_get_stack(), which walks frame pointers, it never guesses: without
 * a shadow stack there is an error. At most SHSTK_MAX_ENTRIES words are written;
 * the rest of the buffer is zeroed, all of it if there is an error. In an NMI that
 * came before the kernel had saved the program's registers, the program counter is
 * left out, as perf's callchains leave it out.
 *
 * Context: any, NMI as well.
 *
 * Return: bytes written; -EINVAL (flags, no room for a word); -ENODATA if
 * current has no shadow stack; -EBUSY if its registers may hold a virtual
 * machine's or another task's; -EFAULT if the shadow stack is not in memory.
 */
__bpf_kfunc int bpf_shstk_get_user_stack(void *buf, u32 buf__sz, u64 flags)
{
	u32 max = min_t(u32, buf__sz / sizeof(u64), SHSTK_MAX_ENTRIES);
	int ret = stack_of_current(buf, max, flags);
	u32 used = max(ret, 0);

	/* The copy leaves words that are no return addresses behind the others. */
	memset(buf + used, 0, buf__sz - used);
	return ret;
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(kfunc_ids)
BTF_ID_FLAGS(func, bpf_shstk_get_user_stack)
BTF_KFUNCS_END(kfunc_ids)

static const struct btf_kfunc_id_set kfunc_set = {
	.owner = THIS_MODULE,
	.set = &kfunc_ids,
};

/**
 * ushstk_kfunc_there() - whether programs can call the function
 *
 * Without BTF of this module its registration does nothing, and is no error.
 *
 * Return: whether they can.
 */
bool ushstk_kfunc_there(void)
{
#ifdef CONFIG_DEBUG_INFO_BTF_MODULES
	return THIS_MODULE->btf_data_size;
#else
	return false;
#endif
}

/**
 * ushstk_kfunc_init() - offer the function to BPF programs
 *
 * Programs of the types tracing, tracepoint, perf event and LSM share one set,
 * of which a module may register one only; kprobe and uprobe programs are one
 * type with a set of its own. They go with the module.
 *
 * Return: 0 or a negative errno.
 */
int ushstk_kfunc_init(void)
{
	int ret;

	ret = register_btf_kfunc_id_set(BPF_PROG_TYPE_TRACING, &kfunc_set);
	if (ret)
		return ret;
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_KPROBE, &kfunc_set);
}
