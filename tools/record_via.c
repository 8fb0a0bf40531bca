// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record_via.c - are the kernel's callchains exact for what is to be recorded?
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/areas.h"
#include "tools/record_via.h"

#define MODULE "/sys/module/shstk_perf"

bool via_module_loaded(void)
{
	return !access(MODULE, F_OK);
}

int via_has_shadow_stack(pid_t pid)
{
	struct areas areas;
	int ret = areas_read(pid, &areas);

	if (ret)
		return ret;
	ret = areas.n > 0;
	free(areas.v);
	return ret;
}

/* A tunable of glibc that switches them on: which, and what must be in it. */
static bool tunable_says(const char *name, const char *with)
{
	const char *at = getenv("GLIBC_TUNABLES");
	size_t n;

	for (; at && *at; at += n + !!at[n]) {
		n = strcspn(at, ":");
		if (strncmp(at, name, strlen(name)))
			continue;
		at += strlen(name);
		n = strcspn(at, ":");
		if (!with)
			return *at >= '1' && *at <= '3';
		for (size_t i = 0; i < n; i++)
			if (!strncmp(at + i, with, strlen(with)))
				return true;
	}
	return false;
}

bool via_will_have_shadow_stack(char *const command[])
{
	const char *base = strrchr(command[0], '/');
	const char *preload = getenv("LD_PRELOAD");

	base = base ? base + 1 : command[0];
	if (!strcmp(base, "shstk") && command[1])
		return !strcmp(command[1], "run");
	return tunable_says("glibc.cpu.aarch64_gcs=", NULL) ||
	       tunable_says("glibc.cpu.hwcaps=", "SHSTK") ||
	       (preload && strstr(preload, "libshstk-start.so"));
}

static uint64_t read_count(const char *name)
{
	char path[96];
	uint64_t count = 0;
	FILE *file;

	snprintf(path, sizeof(path), MODULE "/chains/%s", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64, &count) != 1)
		count = 0;
	fclose(file);
	return count;
}

void via_read_chains(struct via_chains *ret)
{
	ret->exact = read_count("served") + read_count("served_switched") +
		     read_count("served_deferred");
	ret->other = read_count("no_shadow_stack") + read_count("other_mode") +
		     read_count("no_pointer") + read_count("not_present");
}
