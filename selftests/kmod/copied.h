/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * copied.h - copies this program's code to memory without a file, in the same place, as programs do
 * that want their code on huge pages
 */
#ifndef KMOD_COPIED_H
#define KMOD_COPIED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Finds the mapping of this program's code. */
static inline bool copied_find(char **start, char **end)
{
	char line[512], prot[8];
	unsigned long lo, hi;
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		found = sscanf(line, "%lx-%lx %7s", &lo, &hi, prot) == 3 && prot[2] == 'x' &&
			(uintptr_t)copied_find - lo < hi - lo;
		*start = (char *)lo;
		*end = (char *)hi;
	}
	if (f)
		fclose(f);
	return found;
}

/* Copies the whole mapping except @rest bytes at either end. Returns whether that worked. */
static inline bool copied_in_place(size_t rest)
{
	char *start, *end, *copy;
	size_t size;

	if (!copied_find(&start, &end) || (size_t)(end - start) <= 2 * rest)
		return false;
	start += rest;
	size = (size_t)(end - start) - rest;
	copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, start, size);
	__builtin___clear_cache(copy, copy + size);
	return !mprotect(copy, size, PROT_READ | PROT_EXEC) &&
	       mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
}

#endif /* KMOD_COPIED_H */
