/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * join.h - finds the recorder's memory and the process's state in the kernel.
 */
#ifndef INJECT_JOIN_H
#define INJECT_JOIN_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sys.h"

/*
 * Returns the number at @at in @base. strtoull() is not used because newer glibc gives it a name
 * that other C libraries lack.
 */
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

#define STATUS_BYTES 4096

/*
 * Reads what the kernel says about this thread; an empty text if it cannot be read. It makes only
 * system calls that the loader makes too.
 */
static inline void read_status(char status[STATUS_BYTES])
{
	long fd = sys4(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0);
	size_t size = 0;
	long n;

	status[0] = '\0';
	if (fd < 0)
		return;
	do {
		n = sys3(SYS_read, fd, status + size, STATUS_BYTES - 1 - size);
		size += n > 0 ? n : 0;
	} while (n > 0);
	sys1(SYS_close, fd);
	status[size] = '\0';
}

/* Returns the number of seccomp filters; before Linux 5.9, 1 if there are any. */
static inline unsigned int filters_of(const char *status)
{
	return status_field(status, "\nSeccomp_filters:\t") ?:
		       status_field(status, "\nSeccomp:\t") > 0;
}

static inline unsigned int seccomp_filters(void)
{
	char status[STATUS_BYTES];

	read_status(status);
	return filters_of(status);
}

/*
 * Opens the memory that @env, the value of REC_ENV, names, and stores its *@cookie. *@tracer,
 * unless NULL, is the process other than the recorder that traces this one, or 0. Returns a
 * descriptor or a negative errno: -EPERM if there are more filters than @env says, which may forbid
 * the calls that follow. The file must be sealed so that nobody can make it smaller: an access
 * behind its end would end this process.
 */
static inline int open_memory(const char *env, uint64_t *cookie, int *tracer)
{
	const char *space = strchr(env, ' ');
	const char *filters = space ? strchr(space + 1, ' ') : NULL;
	char path[64], status[STATUS_BYTES];
	long fd, seals;

	if (!space || (size_t)(space - env) >= sizeof(path) || strncmp(env, "/proc/", 6))
		return -EINVAL;
	memcpy(path, env, space - env);
	path[space - env] = '\0';
	*cookie = parse_digits(space + 1, 16);
	read_status(status);
	if (filters && filters_of(status) > parse_digits(filters + 1, 10))
		return -EPERM;
	if (tracer)
		*tracer = status_field(status, "\nTracerPid:\t");
	if (tracer && (uint64_t)*tracer == parse_digits(path + strlen("/proc/"), 10))
		*tracer = 0;
	fd = sys4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	seals = fd < 0 ? 0 : sys3(SYS_fcntl, fd, F_GET_SEALS, 0);
	if (fd < 0 || (seals > 0 && seals & F_SEAL_SHRINK))
		return fd;
	sys1(SYS_close, fd);
	return -EINVAL;
}

/*
 * Returns whether the process is in another PID namespace than /proc. There its number means
 * another process to the recorder; such processes are not followed.
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
