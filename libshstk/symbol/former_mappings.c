// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * former_mappings.c - mappings that a process had, and has no more.
 *
 * They are a sorted array of disjoint ranges, each with the mapping that was there last. The search
 * must be fast, as each address of each sample may be looked for here, and a process decides how
 * many mappings there are and which addresses its stacks have.
 */
#include <stdlib.h>
#include <string.h>

#include "store.h"

#define KEEP 2048 /* number of newest mappings that are remembered for sure */
#define FORMER_MAPPINGS_MAX (4 * KEEP) /* most ranges */

/**
 * struct shstk_former_mapping - a piece of a former mapping
 * @start: first address.
 * @end: first address behind it.
 * @age: number of mappings that were added before this one.
 * @map: the mapping.
 */
struct shstk_former_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t age;
	struct shstk_map *map;
};

static void unref(struct shstk_map *map)
{
	if (!--map->pieces)
		shstk_map_put(map);
}

/* Returns the index of the first range that ends behind @addr. */
static size_t first_behind(const struct shstk_former_mappings *former, uint64_t addr)
{
	size_t lo = 0, hi = former->nr, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (former->v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Makes room for what shstk_former_mappings_add() adds: one range, and one more if a range is
 * split. Returns false when memory runs out.
 */
static bool make_room(struct shstk_former_mappings *former)
{
	size_t max = former->max ? 2 * former->max : 16;
	struct shstk_former_mapping *v;

	if (former->nr + 2 <= former->max)
		return true;
	v = reallocarray(former->v, max, sizeof(*v));
	if (!v)
		return false;
	former->v = v;
	former->max = max;
	return true;
}

/*
 * Forgets all but the newest mappings. Many go at once, so that not each one costs a pass over all.
 */
static void forget_old(struct shstk_former_mappings *former)
{
	size_t to = 0;

	for (size_t i = 0; i < former->nr; i++) {
		if (former->v[i].age + KEEP < former->added)
			unref(former->v[i].map);
		else
			former->v[to++] = former->v[i];
	}
	former->nr = to;
}

/*
 * Removes what lies between @start and @end. Returns the index at which a range for that place is
 * to be inserted.
 */
static size_t cut(struct shstk_former_mappings *former, uint64_t start, uint64_t end)
{
	size_t at = first_behind(former, start), stop;
	struct shstk_former_mapping *v = former->v + at;

	/* A range around the removed one becomes two. */
	if (at < former->nr && v->start < start && v->end > end) {
		memmove(v + 1, v, (former->nr - at) * sizeof(*v));
		former->nr++;
		v->map->pieces++;
		v[0].end = start;
		v[1].start = end;
		return at + 1;
	}
	if (at < former->nr && v->start < start) {
		v->end = start;
		at++;
	}
	for (stop = at; stop < former->nr && former->v[stop].end <= end; stop++)
		unref(former->v[stop].map);
	memmove(former->v + at, former->v + stop, (former->nr - stop) * sizeof(*v));
	former->nr -= stop - at;
	if (at < former->nr && former->v[at].start < end)
		former->v[at].start = end;
	return at;
}

void shstk_former_mappings_add(struct shstk_former_mappings *former, struct shstk_map *map)
{
	size_t at;

	if (former->nr + 2 > FORMER_MAPPINGS_MAX)
		forget_old(former);
	if (!make_room(former)) {
		shstk_map_put(map);
		return;
	}
	at = cut(former, map->pub.start, map->pub.end);
	memmove(former->v + at + 1, former->v + at, (former->nr - at) * sizeof(*former->v));
	former->v[at] =
		(struct shstk_former_mapping){ map->pub.start, map->pub.end, former->added++, map };
	former->nr++;
	map->pieces = 1;
}

struct shstk_map *shstk_former_mappings_find(const struct shstk_former_mappings *former,
					     uint64_t addr)
{
	size_t at = first_behind(former, addr);

	return at < former->nr && former->v[at].start <= addr ? former->v[at].map : NULL;
}

void shstk_former_mappings_clear(struct shstk_former_mappings *former)
{
	while (former->nr)
		unref(former->v[--former->nr].map);
	free(former->v);
	former->v = NULL;
	former->max = 0;
}
