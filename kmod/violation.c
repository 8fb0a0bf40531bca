// SPDX-License-Identifier: GPL-2.0-only
/*
 * violation.c - emits a trace event for each control-protection fault of any task, and counts these
 * faults.
 *
 * The fault handlers themselves cannot be hooked (noinstr). But on every architecture each of them,
 * and nothing else, ends in force_sig_fault(SIGSEGV, SEGV_CPERR) for current, so a kprobe is put
 * there. The siginfo of a signal is no proof of a fault, because a program may send itself any
 * siginfo.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#include <uapi/asm-generic/siginfo.h>

#include "arch.h"
#include "trace.h"
#include "ushstk.h"

static atomic64_t violations;

/* Returns the return address on top of the shadow stack of current, or 0 if it cannot be read. */
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

/* Runs at the entry of force_sig_fault(int sig, int code, void __user *addr). */
static int on_fault(struct kprobe *probe, struct pt_regs *args)
{
	struct pt_regs *regs;

	if ((int)regs_get_kernel_argument(args, 0) != SIGSEGV ||
	    (int)regs_get_kernel_argument(args, 1) != SEGV_CPERR)
		return 0;
	atomic64_inc(&violations);
	if (!trace_shstk_violation_enabled())
		return 0;
	regs = task_pt_regs(current);
	trace_shstk_violation(instruction_pointer(regs), ushstk_arch_return_address(regs),
			      shadow_address());
	return 0;
}

static struct kprobe fault_probe = {
	.symbol_name = "force_sig_fault",
	.pre_handler = on_fault,
};

static ssize_t violations_show(struct device *dev, struct device_attribute *attr, char *buf)
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

/**
 * ushstk_violation_init() - start to watch for faults
 *
 * Return: 0 or a negative errno.
 */
int ushstk_violation_init(void)
{
	int ret = register_kprobe(&fault_probe);

	if (ret)
		pr_err("%s: cannot be probed on this kernel (%d)\n", fault_probe.symbol_name, ret);
	return ret;
}

/**
 * ushstk_violation_exit() - stop watching, and wait for handlers that still run
 */
void ushstk_violation_exit(void)
{
	unregister_kprobe(&fault_probe);
}
