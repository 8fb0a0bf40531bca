// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - shstk.ko: loads and unloads the module, and handles the ioctls of /dev/shstk.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "arch.h"
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

/*
 * Holds the argument of any ioctl. Each argument is one structure that can grow; the ioctl number
 * contains the size that the caller knows. Fields that the caller does not know are not copied
 * back.
 */
union argument {
	struct shstk_ioc_info info;
	struct shstk_ioc_status status;
	struct shstk_ioc_map map;
	struct shstk_ioc_trace trace;
};

static const struct {
	unsigned int cmd; /* number in the first version of the ABI: smallest size */
	unsigned int size;
} calls[] = {
	{ SHSTK_IOC_INFO, sizeof(struct shstk_ioc_info) },
	{ SHSTK_IOC_STATUS, sizeof(struct shstk_ioc_status) },
	{ SHSTK_IOC_MAP, sizeof(struct shstk_ioc_map) },
	{ SHSTK_IOC_TRACE, sizeof(struct shstk_ioc_trace) },
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
	void __user *ptr = (void __user *)user;
	unsigned int nr = _IOC_NR(cmd), usize = _IOC_SIZE(cmd);
	union argument arg = {};
	int ret;

	if (_IOC_TYPE(cmd) != SHSTK_IOC_MAGIC || nr >= ARRAY_SIZE(calls))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(calls));
	if (_IOC_DIR(cmd) != _IOC_DIR(calls[nr].cmd))
		return -ENOTTY;
	if (usize < _IOC_SIZE(calls[nr].cmd))
		return -EINVAL;

	if (_IOC_DIR(cmd) & _IOC_WRITE) {
		ret = copy_struct_from_user(&arg, calls[nr].size, ptr, usize);
		if (ret)
			return ret;
	}
	ret = dispatch(nr, &arg);
	if (ret)
		return ret;
	if (copy_to_user(ptr, &arg, min(usize, calls[nr].size)))
		return -EFAULT;
	return 0;
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
