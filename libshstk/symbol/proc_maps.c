// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * proc_maps.c - the text of /proc/PID/maps.
 *
 *   7f10a000-7f10c000 r-xp 00002000 fe:01 1234   /usr/lib/some name.so
 *
 * The path is the rest of the line: it may contain blanks and anything else; the kernel writes a
 * line break in it as \012.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc_maps.h"
#include "root.h"
#include "symbol.h"

/*
 * Longest text that is read: more than any process has (vm.max_map_count), whatever its paths are.
 */
#define MAPS_TEXT_MAX (512u << 20)

static bool hex(const char **s, const char *end, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;
	int digit;

	for (; p < end; p++) {
		if (*p >= '0' && *p <= '9')
			digit = *p - '0';
		else if (*p >= 'a' && *p <= 'f')
			digit = *p - 'a' + 10;
		else
			break;
		if (v >> 60)
			return false;
		v = v << 4 | digit;
	}
	if (p == *s)
		return false;
	*s = p;
	*ret = v;
	return true;
}

static bool literal(const char **s, const char *end, char c)
{
	if (*s == end || **s != c)
		return false;
	(*s)++;
	return true;
}

static void skip_word(const char **s, const char *end)
{
	while (*s < end && **s != ' ')
		(*s)++;
	while (*s < end && **s == ' ')
		(*s)++;
}

static void copy_path(char *path, const char *s, const char *end)
{
	char *stop = path + PATH_MAX + 15;

	while (s < end && path < stop) {
		if (end - s >= 4 && !memcmp(s, "\\012", 4)) {
			*path++ = '\n';
			s += 4;
		} else {
			*path++ = *s++;
		}
	}
	*path = '\0';
}

static bool parse_line(const char *s, const char *end, struct shstk_symmap_info *info, char *path)
{
	uint64_t major, minor;
	bool exec;

	memset(info, 0, sizeof(*info));
	if (!hex(&s, end, &info->start) || !literal(&s, end, '-') || !hex(&s, end, &info->end) ||
	    !literal(&s, end, ' '))
		return false;
	if (info->start >= info->end || end - s < 5)
		return false;
	exec = s[2] == 'x';
	skip_word(&s, end);
	if (!exec || !hex(&s, end, &info->offset))
		return false;
	skip_word(&s, end);
	if (hex(&s, end, &major) && literal(&s, end, ':') && hex(&s, end, &minor))
		info->dev = makedev(major, minor);
	skip_word(&s, end);
	while (s < end && *s >= '0' && *s <= '9')
		info->inode = info->inode * 10 + (*s++ - '0');
	skip_word(&s, end);
	copy_path(path, s, end);
	info->path = path;
	return true;
}

bool shstk_maps_next(const char **text, const char *end, struct shstk_symmap_info *info, char *path)
{
	const char *line, *stop;

	while (*text < end) {
		line = *text;
		stop = memchr(line, '\n', end - line);
		if (!stop) {
			/* The text is cut off here: this may be half a path. */
			*text = end;
			return false;
		}
		*text = stop + 1;
		if (parse_line(line, stop, info, path))
			return true;
	}
	return false;
}

static ssize_t read_all(int fd, char **ret)
{
	size_t size = 0, max = 64 * 1024;
	char *buf = malloc(max), *more;
	ssize_t n = 0;

	while (buf) {
		if (size == max) {
			max *= 2;
			more = max > MAPS_TEXT_MAX ? NULL : realloc(buf, max);
			if (!more)
				break;
			buf = more;
		}
		n = read(fd, buf + size, max - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size += n;
	}
	if (!buf || size == max || n < 0) {
		n = n < 0 ? -errno : -ENOMEM;
		free(buf);
		return n;
	}
	*ret = buf;
	return size;
}

ssize_t shstk_maps_read(int pid, char **ret)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", shstk_living_thread(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read_all(fd, ret);
	close(fd);
	/* A process that is just ending has an empty text. */
	if (n == 0) {
		free(*ret);
		return -ESRCH;
	}
	return n;
}
