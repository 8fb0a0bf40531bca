// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * subordinate_fuzz.c - any bytes as /etc/subuid and /etc/passwd: what the daemon makes of them is what the module
 * takes, and each id is found in its range and in no other one.
 *
 * Input: the first file, a byte of 0, and the second one, which may have bytes of 0.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/rules/subordinate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes a file of these bytes. Its name is written to @path. */
static int make_file(const uint8_t *data, size_t size, char path[32])
{
	int fd = memfd_create("ids", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

/* The module refuses all ranges for one that is not so. */
static void judge(const struct subordinate *s)
{
	uint64_t end = 1;

	if (s->nr > SHSTK_RULES_MAX_RANGES)
		abort();
	for (size_t i = 0; i < s->nr; i++) {
		const struct shstk_rules_range *r = &s->ranges[i];

		if (r->first < end || !r->nr || !r->user || r->user == UINT32_MAX)
			abort();
		if (subordinate_user(s, r->first) != r->user ||
		    subordinate_user(s, r->first + r->nr - 1) != r->user)
			abort();
		if (r->first > end && subordinate_user(s, (uid_t)end) != end)
			abort();
		end = (uint64_t)r->first + r->nr;
		if (end > UINT32_MAX)
			abort();
	}
	if (subordinate_user(s, (uid_t)end) != (uid_t)end || subordinate_user(s, 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *middle = size ? memchr(data, 0, size) : NULL;
	const size_t first = middle ? (size_t)(middle - data) : size;
	const size_t second = middle ? size - first - 1 : 0;
	char subuid[32], passwd[32];
	const int a = make_file(data, first, subuid);
	const int b = make_file(data + size - second, second, passwd);
	struct subordinate s = { 0 };

	if (subordinate_read(subuid, passwd, &s))
		abort();
	judge(&s);
	free(s.ranges);
	close(a);
	close(b);
	return 0;
}
