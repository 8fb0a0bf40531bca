// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shadow.c - finds shadow stacks among the mappings of a process, which smaps marks by "ss". See
 * shadow.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/proc/maps.h"
#include "tools/proc/shadow.h"
#include "tools/proc/tasks.h"

int shadow_stacks_read(pid_t pid, struct shadow_stacks *ret)
{
	struct shadow_stack *v;
	struct mapping m;
	struct maps maps;
	int err;

	memset(ret, 0, sizeof(*ret));
	err = maps_open(tasks_living(pid), "smaps", &maps);
	if (err)
		return err;
	while (maps_next_flagged(&maps, "ss", &m)) {
		v = reallocarray(ret->v, ret->n + 1, sizeof(*v));
		if (!v)
			break;
		ret->v = v;
		v[ret->n++] = (struct shadow_stack){ m.start, m.end };
	}
	maps_close(&maps);
	/* The file of a process that has ended and was not waited for is empty. */
	return !ret->n && process_is_zombie(pid) ? -ESRCH : 0;
}

int shadow_stacks_any(pid_t pid)
{
	struct shadow_stacks stacks;
	int ret = shadow_stacks_read(pid, &stacks);

	if (ret)
		return ret;
	ret = stacks.n > 0;
	free(stacks.v);
	return ret;
}
