// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jit.c - see jit.h.
 *
 * The code is read from the process. It may have been replaced since the sample was taken,
 * and is replaced now and then: what was found is looked for anew after a while.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shstk.h"
#include "tools/unwind/hotspot.h"
#include "tools/unwind/jit.h"

#define KEPT 4096 /* addresses, a power of two */
#define FRESH 1000000000 /* ns for which they are */
#define NEAR 2048 /* bytes in front of an address that are read at first, */
#define FAR 65536 /* and at most */
#define BUDGET (1u << 20) /* bytes that are read for one stack */

/* What is known of an address. */
struct known {
	uint64_t pc;
	uint64_t time;
	bool exact;
	bool after_call;
	int kind;
	struct hotspot_frame frame;
};

struct jit {
	pid_t pid;
	const struct layout *layout;
	size_t budget;
	uint64_t time;
	struct known known[KEPT];
	uint8_t code[FAR + HOTSPOT_TAIL];
};

bool jit_is_known(const struct layout_map *map)
{
	const char *name = strrchr(map->path, '/');

	return name && !strcmp(name, "/libjvm.so");
}

struct jit *jit_create(void)
{
	return calloc(1, sizeof(struct jit));
}

void jit_destroy(struct jit *jit)
{
	free(jit);
}

void jit_begin(struct jit *jit, pid_t pid, const struct layout *layout)
{
	jit->pid = pid;
	jit->layout = layout;
	jit->budget = BUDGET;
	jit->time = now_ns(CLOCK_MONOTONIC);
}

/* Looks at no more than @reach bytes in front of the address. False: they can't be read. */
static bool look(struct jit *jit, const struct layout_map *map, size_t reach, struct known *k)
{
	size_t before = k->pc - map->start < reach ? k->pc - map->start : reach;
	size_t behind = map->end - k->pc < HOTSPOT_TAIL ? map->end - k->pc : HOTSPOT_TAIL;
	size_t size = before + behind;

	if (size > jit->budget ||
	    layout_read(jit->layout, jit->pid, k->pc - before, jit->code, size))
		return false;
	jit->budget -= size;
	k->kind = hotspot_find(jit->code, size, before, k->exact, &k->frame);
	k->after_call = hotspot_after_call(jit->code, before);
	return true;
}

static const struct known *find(struct jit *jit, uint64_t pc, bool exact)
{
	struct known *k = &jit->known[(pc ^ pc >> 12) % KEPT];
	const struct layout_map *map = layout_find(jit->layout, pc);
	struct known new = { .pc = pc, .exact = exact, .time = jit->time };
	bool same = k->pc == pc && k->exact == exact;

	if (same && jit->time - k->time < FRESH)
		return k;
	if (map && look(jit, map, NEAR, &new) &&
	    (new.kind != HOTSPOT_NOTHING || look(jit, map, FAR, &new))) {
		*k = new;
		return k;
	}
	/* The process has ended, perhaps. */
	return same ? k : NULL;
}

int jit_shape(void *arg, uint64_t pc, int exact, struct shstk_frame_shape *ret)
{
	const struct known *k = find(arg, pc, exact);

	if (!k)
		return -ENOENT;
	if (!ret)
		return k->after_call ? 0 : -ENOENT;
	if (k->kind != HOTSPOT_FRAME)
		return -ENOENT;
	ret->cfa = k->frame.cfa;
	ret->fp_saved = k->frame.fp_saved;
	return 0;
}
