// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maps_fuzz.c - texts like /proc/PID/maps: each mapping that is read is a range with a path of
 * bounded length.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/proc_maps.h"
#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size, *before;
	struct shstk_symmap_info info;
	char *path = malloc(PATH_MAX + 16);

	if (!path)
		abort();
	for (before = text; shstk_maps_next(&text, end, &info, path); before = text) {
		if (text <= before || text > end || info.start >= info.end || info.path != path ||
		    strlen(path) > PATH_MAX + 15)
			abort();
	}
	if (text != end)
		abort();
	free(path);
	return 0;
}
