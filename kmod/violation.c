// SPDX-License-Identifier: GPL-2.0-only
/*
 * violation.c - control-protection faults of all tasks: a trace event and
 * counts.
 *
 * The fault handlers themselves cannot be hooked (noinstr), but each of them
 * ends in a SIGSEGV with SEGV_CPERR for current, on every architecture, and
 * sending signals has a tracepoint. Kernel-sent: a positive si_code cannot come
 * from kill() or sigqueue() to another task. The tracepoint itself is not
 * exported; modules may look it up.
 */
#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <uapi/asm-generic/siginfo.h>

#include "arch.h"
#include "trace.h"
#include "ushstk.h"

static atomic64_t violations;

static u64 shadow_address(void)
{
	u64 ssp, addr;

	if (ushstk_arch_pointer(&ssp))
		return 0;
	ushstk_arch_sync();
	if (copy_from_user_nofault(&addr, (void __user *)ssp, sizeof(addr)))
		return 0;
	return addr;
}

/* Interrupts are off, sighand->siglock is held: only record. */
static void on_signal(void *data, int sig, struct kernel_siginfo *info,
		      struct task_struct *task, int group, int result)
{
	struct pt_regs *regs;

	/* The first values are marks, not addresses: no details. */
	if (sig != SIGSEGV || (unsigned long)info < PAGE_SIZE ||
	    info->si_code != SEGV_CPERR || task != current)
		return;
	atomic64_inc(&violations);
	if (!trace_shstk_violation_enabled())
		return;
	regs = task_pt_regs(current);
	trace_shstk_violation(instruction_pointer(regs),
			      ushstk_arch_return_address(regs),
			      shadow_address());
}

static ssize_t violations_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&violations));
}

static DEVICE_ATTR_RO(violations);

static struct attribute *violation_attrs[] = {
	&dev_attr_violations.attr,
	NULL,
};

static const struct attribute_group violation_group = {
	.attrs = violation_attrs,
};

const struct attribute_group *ushstk_violation_groups[] = {
	&violation_group,
	NULL,
};

static struct tracepoint *signal_generate;

static void find_signal_generate(struct tracepoint *tp, void *priv)
{
	if (!strcmp(tp->name, "signal_generate"))
		signal_generate = tp;
}

/**
 * ushstk_violation_init() - start to look at signals
 *
 * Return: 0, -EOPNOTSUPP if the kernel has no such tracepoint, -ENOMEM.
 */
int ushstk_violation_init(void)
{
	for_each_kernel_tracepoint(find_signal_generate, NULL);
	if (!signal_generate)
		return -EOPNOTSUPP;
	return tracepoint_probe_register(signal_generate, on_signal, NULL);
}

/**
 * ushstk_violation_exit() - stop looking, and wait for those who still do
 */
void ushstk_violation_exit(void)
{
	tracepoint_probe_unregister(signal_generate, on_signal, NULL);
	tracepoint_synchronize_unregister();
}
