// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * heap_values.c - the names and units of the values of a profile of allocations. See
 * heap_values.h.
 */
#include <stdio.h>
#include <string.h>

#include "tools/record/heap/heap_values.h"

static const struct {
	const char *name, *unit;
} types[HEAP_VALUES] = {
	[ALLOC_OBJECTS] = { "alloc_objects", "count" },
	[ALLOC_SPACE] = { "alloc_space", "bytes" },
	[INUSE_OBJECTS] = { "inuse_objects", "count" },
	[INUSE_SPACE] = { "inuse_space", "bytes" },
	[PEAK_OBJECTS] = { "peak_objects", "count" },
	[PEAK_SPACE] = { "peak_space", "bytes" },
	[TEMPORARY] = { "temporary_objects", "count" },
	[LIFETIME] = { "lifetime", "nanoseconds" },
	[GROWTH_OBJECTS] = { "growth_objects", "count" },
	[GROWTH_SPACE] = { "growth_space", "bytes" },
};

int heap_add_types(struct shstk_profile *profile, const struct heap_opts *opts)
{
	for (int i = 0; i < (opts->snapshots ? HEAP_VALUES : ALL_VALUES); i++) {
		int ret = shstk_profile_add_type(profile, types[i].name, types[i].unit);

		if (ret < 0)
			return ret;
	}
	return shstk_profile_set_period(profile, "space", "bytes", opts->sample ? opts->sample : 1);
}

unsigned int heap_find_type(const char *name)
{
	for (int i = 0; i < HEAP_VALUES; i++)
		if (!strcmp(name, types[i].name))
			return i + 1;
	return 0;
}

const char *heap_type_name(unsigned int type)
{
	return types[type - 1].name;
}

bool heap_type_is_growth(unsigned int type)
{
	return type > ALL_VALUES;
}

const char *heap_type_names(void)
{
	static char names[256];
	size_t n = 0;

	for (int i = 0; i < HEAP_VALUES && n < sizeof(names); i++)
		n += snprintf(names + n, sizeof(names) - n, "%s%s", i ? " " : "", types[i].name);
	return names;
}

bool heap_type_counts(enum heap_value value)
{
	return types[value].unit[0] == 'c';
}

/* Returns whether the address is in operator new or new[], with any arguments. */
static bool is_new(struct shstk_symproc *proc, uint64_t pc)
{
	const struct shstk_symbol *s = shstk_symproc_lookup(proc, pc, SHSTK_SYMADDR_RETURN);
	const char *name = s->frames[s->nr - 1].linkage;

	return name && (!strncmp(name, "_Znwm", 5) || !strncmp(name, "_Znam", 5));
}

unsigned int heap_skip_new(struct shstk_symproc *proc, const uint64_t *pcs, unsigned int nr)
{
	unsigned int skip = 0;

	while (skip < 4 && skip + 1 < nr && is_new(proc, pcs[skip]))
		skip++;
	return skip;
}
