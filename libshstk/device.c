// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * device.c - /dev/shstk: one wrapper per ioctl.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "linux/shstk.h"
#include "shstk.h"

int shstk_device_open(void)
{
	int saved = errno, fd, ret;

	fd = open("/dev/shstk", O_RDWR | O_CLOEXEC);
	ret = fd < 0 ? -errno : fd;
	errno = saved;
	return ret;
}

static int call(int fd, unsigned long cmd, void *arg)
{
	int saved = errno, ret;

	ret = ioctl(fd, cmd, arg) ? -errno : 0;
	errno = saved;
	return ret;
}

int shstk_device_info(int fd, struct shstk_ioc_info *info)
{
	return call(fd, SHSTK_IOC_INFO, info);
}

int shstk_device_status(int fd, struct shstk_ioc_status *status)
{
	return call(fd, SHSTK_IOC_STATUS, status);
}

int shstk_device_map(int fd, struct shstk_ioc_map *map)
{
	return call(fd, SHSTK_IOC_MAP, map);
}

int shstk_device_trace(int fd, struct shstk_ioc_trace *trace)
{
	return call(fd, SHSTK_IOC_TRACE, trace);
}
