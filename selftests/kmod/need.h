/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * need.h - skips a test if something that it needs is missing. kselftest.h and arch.h must be
 * included before.
 */
#ifndef KMOD_NEED_H
#define KMOD_NEED_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static inline void need_shadow_stacks(void)
{
	long addr = ss_map(0, getpagesize(), 0);

	if (addr == -EOPNOTSUPP || addr == -ENOSYS)
		ksft_exit_skip("no shadow stacks: %s\n", strerror(-addr));
}

/* Returns the open device. */
static inline int need_device(void)
{
	int fd = open("/dev/shstk", O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		ksft_exit_skip("no /dev/shstk: shstk.ko is not loaded\n");
	if (fd < 0)
		ksft_exit_fail_msg("/dev/shstk: %s\n", strerror(errno));
	return fd;
}

#endif
