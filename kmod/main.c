// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - shstk.ko: loads and unloads the module, and handles the ioctls of /dev/shstk.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "arch.h"
#include "ioctl.h"
#include "ushstk.h"

static int info(struct shstk_ioc_info *arg)
{
	arg->abi = SHSTK_ABI_VERSION;
	arg->arch = USHSTK_ARCH;
	arg->features = SHSTK_FEATURE_VIOLATIONS;
	if (USHSTK_NATIVE_PRCTL)
		arg->features |= SHSTK_FEATURE_NATIVE_PRCTL;
	if (ushstk_ptrace_check())
		arg->features |= SHSTK_FEATURE_PTRACE_CHECK;
	if (ushstk_kfunc_there())
		arg->features |= SHSTK_FEATURE_KFUNC;
	arg->status_mask = USHSTK_STATUS_MASK;
	return 0;
}

/* Holds the argument of any ioctl. */
union argument {
	struct shstk_ioc_info info;
	struct shstk_ioc_status status;
	struct shstk_ioc_map map;
	struct shstk_ioc_trace trace;
};

/* The ioctls of the device. */
static const struct ioctl_call calls[] = {
	{ SHSTK_IOC_INFO, 24 },
	{ SHSTK_IOC_STATUS, 48 },
	{ SHSTK_IOC_MAP, 32 },
	{ SHSTK_IOC_TRACE, 40 },
};

static_assert(sizeof(struct shstk_ioc_info) == 24);
static_assert(sizeof(struct shstk_ioc_status) == 48);
static_assert(sizeof(struct shstk_ioc_map) == 32);
static_assert(sizeof(struct shstk_ioc_thread) == 16);
static_assert(sizeof(struct shstk_ioc_trace) == 40);

/* Makes the call number @nr. Returns 0 or a negative errno. */
static int dispatch(unsigned int nr, union argument *arg)
{
	switch (nr) {
	case _IOC_NR(SHSTK_IOC_INFO):
		return info(&arg->info);
	case _IOC_NR(SHSTK_IOC_STATUS):
		return ushstk_status(&arg->status);
	case _IOC_NR(SHSTK_IOC_MAP):
		return ushstk_map(&arg->map);
	case _IOC_NR(SHSTK_IOC_TRACE):
		return ushstk_trace(&arg->trace);
	}
	return -ENOTTY;
}

static long ushstk_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	const struct ioctl_call *call = ioctl_find(calls, ARRAY_SIZE(calls), cmd);
	void __user *ptr = (void __user *)user;
	union argument arg = {};
	int ret;

	if (!call)
		return -ENOTTY;
	ret = ioctl_take(call, cmd, ptr, &arg);
	if (!ret)
		ret = dispatch(_IOC_NR(cmd), &arg);
	return ret ?: ioctl_give(call, cmd, ptr, &arg);
}

static const struct file_operations ushstk_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = ushstk_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/*
 * Everyone may open the device, because every call decides by itself which tasks the caller may ask
 * about.
 */
static struct miscdevice ushstk_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "shstk",
	.fops = &ushstk_fops,
	.mode = 0666,
	.groups = ushstk_violation_groups,
};

static int __init ushstk_init(void)
{
	int ret;

	ret = ushstk_arch_init();
	if (ret)
		return ret;
	ret = ushstk_remote_init();
	if (ret)
		return ret;
	ret = ushstk_kfunc_init();
	if (ret)
		return ret;
	ret = ushstk_violation_init();
	if (ret)
		return ret;
	ret = misc_register(&ushstk_device);
	if (ret)
		ushstk_violation_exit();
	return ret;
}

static void __exit ushstk_exit(void)
{
	misc_deregister(&ushstk_device);
	ushstk_violation_exit();
}

module_init(ushstk_init);
module_exit(ushstk_exit);

MODULE_DESCRIPTION("Shadow stacks of this and other tasks, for tracers");
MODULE_LICENSE("GPL");
