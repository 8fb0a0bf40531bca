/* SPDX-License-Identifier: GPL-2.0-or-later */
/* whole_io.h - write(2) and read(2) that go on until all bytes are through. */
#ifndef TOOLS_WHOLE_IO_H
#define TOOLS_WHOLE_IO_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Writes all bytes. Returns 0 or a negative errno; then a part of them may have been written. */
static inline int write_whole(int fd, const void *data, size_t size)
{
	const char *from = data;

	while (size) {
		ssize_t n = write(fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		from += n;
		size -= n;
	}
	return 0;
}

/* Reads until @size bytes are there or the file ends. Returns their number or a negative errno. */
static inline ssize_t read_whole(int fd, void *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		ssize_t n = read(fd, (char *)data + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		at += n;
	}
	return at;
}

#endif
