// SPDX-License-Identifier: LGPL-2.1-or-later
/* device.c - access to /dev/shstk, with one wrapper for each ioctl. */
#include "linux/shstk.h"
#include "shstk.h"
#include "sys.h"

int shstk_device_open(void)
{
	return sys_open("/dev/shstk", O_RDWR | O_CLOEXEC);
}

int shstk_device_info(int fd, struct shstk_ioc_info *info)
{
	return sys_ioctl(fd, SHSTK_IOC_INFO, info);
}

int shstk_device_status(int fd, struct shstk_ioc_status *status)
{
	return sys_ioctl(fd, SHSTK_IOC_STATUS, status);
}

int shstk_device_map(int fd, struct shstk_ioc_map *map)
{
	return sys_ioctl(fd, SHSTK_IOC_MAP, map);
}

int shstk_device_trace(int fd, struct shstk_ioc_trace *trace)
{
	return sys_ioctl(fd, SHSTK_IOC_TRACE, trace);
}
