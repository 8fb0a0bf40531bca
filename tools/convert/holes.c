// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * holes.c - recognises code that was copied out of the mappings of its file, by comparing the
 * addresses with those of the file's code. See holes.h.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/convert/holes.h"
#include "tools/convert/living_files.h"

void holes_begin(struct holes *holes, struct shstk_symbols *symbols, pid_t pid)
{
	*holes = (struct holes){ .symbols = symbols, .pid = pid, .nr_code = -1 };
}

void holes_end(struct holes *holes)
{
	free(holes->path);
	holes->path = NULL;
}

/* Remembers a mapping of a file, as the memory beside it may be a copy of the file's code. */
static void follow(struct holes *holes, const struct mapping *m)
{
	if (holes->path && !strcmp(holes->path, m->path) && holes->beside.inode == m->inode &&
	    holes->beside.dev == m->dev)
		return;
	free(holes->path);
	holes->path = strdup(m->path);
	holes->beside = *m;
	holes->beside.path = holes->path;
	holes->nr_code = -1;
}

static void find_code(struct holes *holes)
{
	struct mappings_map map = live_map(&holes->beside);
	int fd = live_open(holes->symbols, holes->pid, &map);

	holes->nr_code = 0;
	if (fd < 0)
		return;
	holes->nr_code = shstk_file_code(fd, map.start, map.end, map.offset, holes->code);
	if (holes->nr_code < 0)
		holes->nr_code = 0;
	close(fd);
}

bool holes_may_be(const struct mapping *m)
{
	return m->exec && (!*m->path || !strncmp(m->path, "[anon", 5));
}

bool holes_look(struct holes *holes, struct mapping *m)
{
	if (*m->path == '/' && m->inode)
		follow(holes, m);
	if (!holes->path || !holes_may_be(m))
		return false;
	if (holes->nr_code < 0)
		find_code(holes);
	for (int i = 0; i < holes->nr_code; i++) {
		const struct shstk_file_code *c = &holes->code[i];

		if (m->start < c->start || m->end > c->end)
			continue;
		m->offset = c->offset + (m->start - c->start);
		m->path = holes->path;
		m->inode = holes->beside.inode;
		m->dev = holes->beside.dev;
		return true;
	}
	return false;
}
