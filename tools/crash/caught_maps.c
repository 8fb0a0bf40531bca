// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * caught_maps.c - reads from /proc what a stopped process has mapped, as its core file would tell it.
 * See crash.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/crash/crash.h"
#include "tools/proc/maps.h"
#include "tools/proc/tasks.h"

/* The room for mappings that were counted. */
struct room {
	size_t maps;
	size_t bytes; /* of paths */
};

static int count_maps(int pid, struct room *room)
{
	struct mapping m;
	struct maps maps;
	int err = maps_open(pid, "maps", &maps);

	if (err)
		return err;
	while (maps_next(&maps, &m) && room->maps < CORE_MAX_MAPS) {
		room->maps++;
		room->bytes += strlen(m.path) + 1;
	}
	return maps_close(&maps);
}

/* Adds a mapping. @at is where its path goes. Returns where the next one goes. */
static char *add_map(struct core *core, const struct mapping *m, char *at)
{
	core->segments[core->nr_segments++] = (struct core_segment){
		.start = m->start,
		.end = m->end,
		.dumped = m->end - m->start,
		.exec = m->exec,
		.write = m->write,
	};
	if (*m->path != '/' || !m->inode)
		return at;
	core->maps[core->nr_maps++] = (struct core_map){
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.path = at,
	};
	return stpcpy(at, m->path) + 1;
}

int crash_read_maps(struct core *core)
{
	struct room room = { 0 };
	struct mapping m;
	struct maps maps;
	char *at;
	int err = count_maps(tasks_living(core->pid), &room);

	if (err)
		return err;
	core->segments = calloc(room.maps + 1, sizeof(*core->segments));
	core->maps = calloc(room.maps + 1, sizeof(*core->maps));
	core->strings = at = malloc(room.bytes + 1);
	if (!core->segments || !core->maps || !core->strings)
		return -ENOMEM;
	err = maps_open(tasks_living(core->pid), "maps", &maps);
	if (err)
		return err;
	/* A process that shares this memory may have changed it meanwhile. */
	while (core->nr_segments < room.maps && maps_next(&maps, &m) &&
	       strlen(m.path) < room.bytes - (at - core->strings))
		at = add_map(core, &m, at);
	return maps_close(&maps);
}
