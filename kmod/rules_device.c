// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_device.c - /dev/shstk_rules: checks who may make which call for unwind rules, and handles
 * the ioctls.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "ioctl.h"
#include "rules.h"
#include "rules_call.h"
#include "rules_files.h"

/* Holds the argument of any ioctl but SHSTK_RULES_MISS, which copies its own. */
union argument {
	struct shstk_rules_info info;
	struct shstk_rules_load load;
	struct shstk_rules_drop drop;
	struct shstk_rules_list list;
	struct shstk_rules_cuts cuts;
	struct shstk_rules_users users;
};

static_assert(sizeof(struct shstk_rules_header) == 32);
static_assert(sizeof(struct shstk_rules_info) == 40);
static_assert(sizeof(struct shstk_rules_load) == 72);
static_assert(sizeof(struct shstk_rules_drop) == 8);
static_assert(sizeof(struct shstk_rules_list) == 80);
static_assert(sizeof(struct shstk_rules_miss) == 16);
static_assert(sizeof(struct shstk_rules_cuts) == 56);
static_assert(sizeof(struct shstk_rules_range) == 12);
static_assert(sizeof(struct shstk_rules_users) == 16);

/* The ioctls of the device. */
static const struct ioctl_call calls[] = {
	{ SHSTK_RULES_INFO, 32 },
	{ SHSTK_RULES_LOAD, 56 },
	{ SHSTK_RULES_DROP, sizeof(struct shstk_rules_drop) },
	{ SHSTK_RULES_LIST, sizeof(struct shstk_rules_list) },
	{ SHSTK_RULES_MISS, sizeof(struct shstk_rules_miss) },
	{ SHSTK_RULES_CUTS, sizeof(struct shstk_rules_cuts) },
	{ SHSTK_RULES_USERS, sizeof(struct shstk_rules_users) },
};

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
	case _IOC_NR(SHSTK_RULES_USERS):
		return rules_call_users(&arg->users);
	}
	return -ENOTTY;
}

static long rules_ioctl(struct file *device, unsigned int cmd, unsigned long user)
{
	const struct ioctl_call *call = ioctl_find(calls, ARRAY_SIZE(calls), cmd);
	void __user *ptr = (void __user *)user;
	union argument arg = {};
	int ret;

	if (!call)
		return -ENOTTY;
	if (call->cmd != SHSTK_RULES_INFO && !(capable(CAP_PERFMON) && capable(CAP_SYS_ADMIN)))
		return -EPERM;
	ret = ioctl_take(call, cmd, ptr, &arg);
	if (ret)
		return ret;
	/* This one copies its answer itself: the descriptor in it is installed only after that. */
	if (call->cmd == SHSTK_RULES_MISS)
		return rules_call_miss(device, ptr);
	ret = dispatch(_IOC_NR(cmd), &arg);
	return ret ?: ioctl_give(call, cmd, ptr, &arg);
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
	rules_users_exit();
}
