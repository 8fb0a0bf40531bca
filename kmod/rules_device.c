// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_device.c - /dev/shstk_rules: checks who may make which call for unwind rules, and handles
 * the ioctls.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "rules.h"
#include "rules_call.h"
#include "rules_files.h"

union argument {
	struct shstk_rules_info info;
	struct shstk_rules_load load;
	struct shstk_rules_drop drop;
	struct shstk_rules_list list;
	struct shstk_rules_cuts cuts;
};

static_assert(sizeof(struct shstk_rules_header) == 32);
static_assert(sizeof(struct shstk_rules_info) == 40);
static_assert(sizeof(struct shstk_rules_load) == 72);
static_assert(sizeof(struct shstk_rules_drop) == 8);
static_assert(sizeof(struct shstk_rules_list) == 80);
static_assert(sizeof(struct shstk_rules_miss) == 16);
static_assert(sizeof(struct shstk_rules_cuts) == 56);

/* The calls of the device. @least is the size of the structure in the first version of the ABI. */
static const struct call {
	unsigned int cmd;
	unsigned int least;
} calls[] = {
	{ SHSTK_RULES_INFO, 32 },
	{ SHSTK_RULES_LOAD, 56 },
	{ SHSTK_RULES_DROP, sizeof(struct shstk_rules_drop) },
	{ SHSTK_RULES_LIST, sizeof(struct shstk_rules_list) },
	{ SHSTK_RULES_MISS, sizeof(struct shstk_rules_miss) },
	{ SHSTK_RULES_CUTS, sizeof(struct shstk_rules_cuts) },
};

/* Returns the call that @cmd names, with any size of the argument, or NULL if there is none. */
static const struct call *find_call(unsigned int cmd)
{
	int i;

	if (_IOC_TYPE(cmd) != SHSTK_RULES_IOC)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (_IOC_NR(cmd) == _IOC_NR(calls[i].cmd) &&
		    _IOC_DIR(cmd) == _IOC_DIR(calls[i].cmd))
			return &calls[i];
	return NULL;
}

/* Makes the call number @nr. Returns 0 or a negative errno. */
static int dispatch(unsigned int nr, union argument *arg)
{
	switch (nr) {
	case _IOC_NR(SHSTK_RULES_INFO):
		return rules_call_info(&arg->info);
	case _IOC_NR(SHSTK_RULES_LOAD):
		return rules_call_load(&arg->load);
	case _IOC_NR(SHSTK_RULES_DROP):
		return rules_call_drop(&arg->drop);
	case _IOC_NR(SHSTK_RULES_LIST):
		return rules_call_list(&arg->list);
	case _IOC_NR(SHSTK_RULES_CUTS):
		return rules_call_cuts(&arg->cuts);
	}
	return -ENOTTY;
}

static long rules_ioctl(struct file *device, unsigned int cmd, unsigned long user)
{
	void __user *ptr = (void __user *)user;
	const struct call *call = find_call(cmd);
	size_t size, given = _IOC_SIZE(cmd);
	union argument arg = {};
	int ret;

	if (!call)
		return -ENOTTY;
	if (call->cmd != SHSTK_RULES_INFO && !(capable(CAP_PERFMON) && capable(CAP_SYS_ADMIN)))
		return -EPERM;
	if (given < call->least)
		return -EINVAL;
	if (call->cmd == SHSTK_RULES_MISS)
		return rules_call_miss(device, ptr);

	size = _IOC_SIZE(call->cmd);
	if (_IOC_DIR(cmd) & _IOC_WRITE) {
		ret = copy_struct_from_user(&arg, size, ptr, given);
		if (ret)
			return ret;
	}
	ret = dispatch(_IOC_NR(cmd), &arg);
	if (ret)
		return ret;
	if (_IOC_DIR(cmd) & _IOC_READ && copy_to_user(ptr, &arg, min(size, given)))
		return -EFAULT;
	return 0;
}

static int rules_release(struct inode *inode, struct file *device)
{
	rules_stop_listening(device);
	return 0;
}

static int rules_open(struct inode *inode, struct file *device)
{
	/* This is the pointer to the misc device, which no call needs. */
	device->private_data = NULL;
	return 0;
}

static const struct file_operations rules_fops = {
	.owner = THIS_MODULE,
	.open = rules_open,
	.release = rules_release,
	.unlocked_ioctl = rules_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = rules_poll_misses,
	.llseek = noop_llseek,
};

static struct miscdevice rules_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "shstk_rules",
	.fops = &rules_fops,
	.mode = 0600,
};

int __init rules_init(void)
{
	int ret;

	ret = rules_files_init();
	if (ret)
		return ret;
	ret = misc_register(&rules_device);
	if (ret)
		rules_files_exit();
	return ret;
}

/* The hooks are removed already, so no walk runs. */
void rules_exit(void)
{
	misc_deregister(&rules_device);
	rules_misses_exit();
	rules_files_exit();
}
