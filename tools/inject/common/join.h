/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * join.h - how an agent finds the memory of its recorder.
 */
#ifndef INJECT_JOIN_H
#define INJECT_JOIN_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sys.h"

/* As strtoull(), which newer glibc gives a name that other C libraries lack. */
static inline uint64_t parse_digits(const char *at, unsigned int base)
{
	uint64_t value = 0;

	for (;; at++) {
		unsigned int digit = *at >= 'a' ? *at - 'a' + 10 : *at - '0';

		if (digit >= base)
			return value;
		value = value * base + digit;
	}
}

static inline unsigned int status_field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? parse_digits(at + strlen(name), 10) : 0;
}

/*
 * How many seccomp filters this thread has; before Linux 5.9 whether there are any. Only calls are
 * made that the loader makes too.
 */
static inline unsigned int seccomp_filters(void)
{
	char status[4096];
	size_t size = 0;
	long fd = sys4(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return 0;
	do {
		n = sys3(SYS_read, fd, status + size, sizeof(status) - 1 - size);
		size += n > 0 ? n : 0;
	} while (n > 0);
	sys1(SYS_close, fd);
	status[size] = '\0';
	return status_field(status, "\nSeccomp_filters:\t") ?:
		       status_field(status, "\nSeccomp:\t") > 0;
}

/*
 * Splits "/proc/PID/fd/N COOKIE FILTERS", the value of REC_ENV. Returns a descriptor or a
 * negative errno: -EPERM if there are more filters than that, which may forbid what comes next.
 * The file is one that nobody can make smaller: to touch what lay behind its end would end this
 * process.
 */
static inline int open_memory(const char *env, uint64_t *cookie)
{
	const char *space = strchr(env, ' ');
	const char *filters = space ? strchr(space + 1, ' ') : NULL;
	char path[64];
	long fd, seals;

	if (!space || (size_t)(space - env) >= sizeof(path) || strncmp(env, "/proc/", 6))
		return -EINVAL;
	memcpy(path, env, space - env);
	path[space - env] = '\0';
	*cookie = parse_digits(space + 1, 16);
	if (filters && seccomp_filters() > parse_digits(filters + 1, 10))
		return -EPERM;
	fd = sys4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	seals = fd < 0 ? 0 : sys3(SYS_fcntl, fd, F_GET_SEALS, 0);
	if (fd < 0 || (seals > 0 && seals & F_SEAL_SHRINK))
		return fd;
	sys1(SYS_close, fd);
	return -EINVAL;
}

/*
 * In a new PID namespace the own number means another process to the recorder
 * and to /proc; such processes are not followed.
 */
static inline bool foreign_pid(int pid)
{
	char buf[16];
	long n = sys4(SYS_readlinkat, AT_FDCWD, "/proc/self", buf, sizeof(buf) - 1);

	if (n <= 0)
		return true;
	buf[n] = '\0';
	return parse_digits(buf, 10) != (uint64_t)pid;
}

#endif
