// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * functions_fuzz.c - any file as a program at whose functions probes are set: names are strings, and reading ends,
 * also where it is asked whether the program brings its own allocator.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/elf/allocator.h"
#include "tools/elf/functions.h"

#define ENOUGH 1000 /* functions behind which the search is ended */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t read_bytes; /* so that names are read */

static int count(void *arg, const char *name, uint64_t offset)
{
	unsigned int *nr = arg;

	(void)offset;
	read_bytes += strlen(name);
	return ++*nr == ENOUGH;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int fd = memfd_create("program", MFD_CLOEXEC);
	unsigned int nr = 0;
	const char *inside;
	char path[32];
	int ret;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	ret = functions_find(fd, count, &nr);
	if (ret != (nr == ENOUGH) && (ret != -ENOEXEC || nr))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	inside = allocator_inside(path);
	if (inside)
		read_bytes += strlen(inside);
	close(fd);
	return 0;
}
