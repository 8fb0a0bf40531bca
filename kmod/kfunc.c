// SPDX-License-Identifier: GPL-2.0-only
/*
 * kfunc.c - the kfunc bpf_shstk_get_user_stack(), which BPF programs call.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>

#include "return_probe.h"
#include "read.h"
#include "ushstk.h"

/* Does the work of bpf_shstk_get_user_stack(), except zeroing the rest of the buffer. */
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

	/*
	 * In an NMI the registers may not be saved yet. A wrong program counter is worse than none.
	 */
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
 * bpf_shstk_get_user_stack() - get the user stack of current from its shadow stack
 * @buf: receives the program counter and then the return addresses, innermost first, as words of 64
 *	bits.
 * @buf__sz: size of @buf in bytes.
 * @flags: must be 0.
 *
 * bpf_get_stack() walks frame pointers. This function does not guess: it returns an error if there
 * is no shadow stack. It writes at most SHSTK_MAX_ENTRIES words and zeroes the rest of the buffer;
 * if there is an error, it zeroes all of the buffer. In an NMI that came before the kernel had
 * saved the registers of the program, the program counter is left out; the callchains of perf leave
 * it out, too.
 *
 * Context: any, including NMI.
 *
 * Return: number of bytes written; -EINVAL if @flags is not 0 or there is no room for a word;
 * -ENODATA if current has no shadow stack; -EBUSY if the registers may be those of a virtual
 * machine or of another task; -EFAULT if the shadow stack is not in memory.
 */
__bpf_kfunc int bpf_shstk_get_user_stack(void *buf, u32 buf__sz, u64 flags)
{
	u32 max = min_t(u32, buf__sz / sizeof(u64), SHSTK_MAX_ENTRIES);
	int ret = stack_of_current(buf, max, flags);
	u32 used = max(ret, 0);

	/* The copy may leave words behind the entries that are no return addresses. */
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
 * ushstk_kfunc_there() - tell whether BPF programs can call the kfunc
 *
 * If this module has no BTF, registering the kfunc does nothing and returns no error.
 *
 * Return: true if programs can call it.
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
 * ushstk_kfunc_init() - register the kfunc for BPF programs
 *
 * The program types tracing, tracepoint, perf event and LSM share one set of kfuncs, and a module
 * may register only one set for them. kprobe and uprobe programs are one type with a set of their
 * own. The kernel unregisters the sets when the module is unloaded.
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
