/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ioctl.h - the arguments of the ioctls of a device: how they are checked and copied in and out.
 *
 * Each argument is one structure that can grow at its end. The number of an ioctl contains the size
 * that the caller knows. Fields that the caller does not know are 0 on the way in, and are not
 * copied on the way out; fields that this module does not know have to be 0.
 */
#ifndef USHSTK_IOCTL_H
#define USHSTK_IOCTL_H

#include <linux/ioctl.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

/**
 * struct ioctl_call - an ioctl
 * @cmd: its number, with the size that the structure has in this module.
 * @least: size in bytes of the structure in the first version of the ABI.
 */
struct ioctl_call {
	unsigned int cmd;
	unsigned int least;
};

/**
 * ioctl_find() - find the ioctl that a caller means
 * @calls: the ioctls of the device.
 * @nr: number of @calls.
 * @cmd: the number that the caller gave, with any size.
 *
 * Return: the ioctl, or NULL if there is none.
 */
static inline const struct ioctl_call *ioctl_find(const struct ioctl_call *calls, size_t nr,
						  unsigned int cmd)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (_IOC_TYPE(cmd) == _IOC_TYPE(calls[i].cmd) &&
		    _IOC_NR(cmd) == _IOC_NR(calls[i].cmd) &&
		    _IOC_DIR(cmd) == _IOC_DIR(calls[i].cmd))
			return &calls[i];
	return NULL;
}

/**
 * ioctl_take() - copy the argument of an ioctl from the caller
 * @call: the ioctl.
 * @cmd: the number that the caller gave.
 * @user: the caller's structure.
 * @arg: receives the structure; it has room for that of this module, and is all zeros.
 *
 * Return: 0 or a negative errno: -EINVAL if the caller's structure is smaller than that of the
 * first version.
 */
static inline int ioctl_take(const struct ioctl_call *call, unsigned int cmd,
			     const void __user *user, void *arg)
{
	if (_IOC_SIZE(cmd) < call->least)
		return -EINVAL;
	if (!(_IOC_DIR(cmd) & _IOC_WRITE))
		return 0;
	return copy_struct_from_user(arg, _IOC_SIZE(call->cmd), user, _IOC_SIZE(cmd));
}

/**
 * ioctl_give() - copy the argument of an ioctl back to the caller, if the ioctl answers in it
 * @call: the ioctl.
 * @cmd: the number that the caller gave.
 * @user: the caller's structure.
 * @arg: the structure.
 *
 * Return: 0 or -EFAULT.
 */
static inline int ioctl_give(const struct ioctl_call *call, unsigned int cmd, void __user *user,
			     const void *arg)
{
	if (!(_IOC_DIR(cmd) & _IOC_READ))
		return 0;
	return copy_to_user(user, arg, min(_IOC_SIZE(call->cmd), _IOC_SIZE(cmd))) ? -EFAULT : 0;
}

#endif
