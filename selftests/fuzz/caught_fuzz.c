// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * caught_fuzz.c - texts like /proc/PID/maps, of a process whose own handler caught its signal: they
 * are read twice, to count and to keep, and a process that shares the memory may have changed what
 * is mapped meanwhile. The two texts are divided by a byte 0.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/crash/crash.h"
#include "tools/proc/maps.h"

static const char *texts[2];
static size_t sizes[2];
static int reads;

/* Opens the next text. */
int __wrap_maps_open(pid_t pid, const char *file, struct maps *ret);
int __wrap_maps_open(pid_t pid, const char *file, struct maps *ret)
{
	(void)pid, (void)file;
	*ret = (struct maps){ .in = fmemopen((char *)texts[reads], sizes[reads], "r") };
	reads++;
	return ret->in ? 0 : -errno;
}

/* Checks that each path ends within the strings, which are as many as the mappings had. */
static void check(const struct core *core)
{
	const char *at = core->strings;

	if (core->nr_maps > core->nr_segments || core->nr_segments > CORE_MAX_MAPS)
		abort();
	for (size_t i = 0; i < core->nr_maps; i++) {
		if (core->maps[i].path != at || *at != '/')
			abort();
		at += strlen(at) + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *middle = size ? memchr(data, 0, size) : NULL;
	struct core core = { .pid = getpid() };

	if (!middle)
		middle = data + size;
	texts[0] = (const char *)data;
	sizes[0] = middle - data;
	texts[1] = (const char *)(middle < data + size ? middle + 1 : data);
	sizes[1] = middle < data + size ? data + size - (middle + 1) : sizes[0];
	reads = 0;
	if (sizes[0] && sizes[1] && !crash_read_maps(&core))
		check(&core);
	free(core.segments);
	free(core.maps);
	free(core.strings);
	return 0;
}
