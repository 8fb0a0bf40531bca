/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_offset.h - where a function of this program lies in its file, for uprobes. */
#ifndef KMOD_FILE_OFFSET_H
#define KMOD_FILE_OFFSET_H

#include <stdint.h>
#include <stdio.h>

/* Returns the offset of a function in its file. */
static inline uint64_t offset_of(const void *function)
{
	unsigned long start, end, offset, ret = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !ret && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    (uintptr_t)function - start < end - start)
			ret = (uintptr_t)function - start + offset;
	if (f)
		fclose(f);
	return ret;
}

#endif
