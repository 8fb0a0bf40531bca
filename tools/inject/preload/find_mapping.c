// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * find_mapping.c - finds the mapping that holds an address in /proc/self/maps, without memory or
 * locks. This is for signal handlers, and for the rare switch to a shadow stack whose bounds are
 * not known.
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "start.h"

static const char *hex(const char *p, uint64_t *ret)
{
	uint64_t v = 0;

	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			v = v << 4 | (uint64_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			v = v << 4 | (uint64_t)(*p - 'a' + 10);
		else
			break;
	}
	*ret = v;
	return p;
}

static bool take_line(struct map_line *line, uint64_t addr)
{
	const char *p = hex(line->text, &line->start);

	if (*p != '-')
		return false;
	hex(p + 1, &line->end);
	return addr >= line->start && addr < line->end;
}

bool start_map_find(uint64_t addr, struct map_line *ret)
{
	char buf[512];
	size_t used = 0;
	bool found = false;
	long fd, n;

	fd = sys3(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (!found) {
		n = sys3(SYS_read, fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		for (long i = 0; i < n && !found; i++) {
			if (buf[i] != '\n') {
				if (used < sizeof(ret->text) - 1)
					ret->text[used++] = buf[i];
				continue;
			}
			ret->text[used] = '\0';
			used = 0;
			found = take_line(ret, addr);
		}
	}
	sys1(SYS_close, fd);
	return found;
}
