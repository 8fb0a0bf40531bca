// SPDX-License-Identifier: GPL-2.0-or-later
/* files.c - finds the files that a process has mapped. See crash.h. */
#include <string.h>

#include "tools/crash/crash.h"
#include "tools/elf/image.h"

#define PAGE 4096

size_t crash_whole_file(const struct core *core, size_t i, struct build_id *id)
{
	const struct core_map *m = &core->maps[i];
	uint8_t page[PAGE];

	id->size = 0;
	if (!m->offset && !core_read(core, m->start, page, sizeof(page)))
		build_id_of(page, sizeof(page), id);
	while (++i < core->nr_maps && core->maps[i].offset && !strcmp(core->maps[i].path, m->path))
		;
	return i;
}
