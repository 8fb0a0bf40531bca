// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * prepare.c - names of many addresses at once.
 *
 * Looking up an address reads the unit of debug information that describes it, and a profile of a
 * large program has addresses in hundreds of units. So before the first one is looked up, the
 * addresses of each file are read together, by as many threads as there are CPUs.
 */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "export.h"
#include "store.h"

#define THREADS_MAX 32
#define WORTH_IT 1000 /* new locations */

/* An address in a file. */
struct place {
	struct shstk_object *object;
	uint64_t addr;
};

static int compare(const void *a, const void *b)
{
	const struct place *one = a, *two = b;

	if (one->object != two->object)
		return (uintptr_t)one->object < (uintptr_t)two->object ? -1 : 1;
	return one->addr < two->addr ? -1 : one->addr > two->addr;
}

/* Returns the number of CPUs that this process may use, up to THREADS_MAX. */
static unsigned int cpus(void)
{
	cpu_set_t set;
	unsigned int nr;

	/* On a machine with more CPUs than fit in @set this fails. */
	if (sched_getaffinity(0, sizeof(set), &set))
		return THREADS_MAX;
	nr = CPU_COUNT(&set);
	return nr < THREADS_MAX ? nr : THREADS_MAX;
}

/* Finds where a location lies in a file. Returns false if it lies in none. */
static bool find_place(const struct shstk_location *location, struct place *ret)
{
	const struct shstk_map *map = (const struct shstk_map *)location->map;
	bool exact = location->how == SHSTK_SYMADDR_PC || !location->pc;
	uint64_t addr = location->pc - !exact;

	if (location->symbol || location->generated || !map || !map->object)
		return false;
	ret->object = map->object;
	return shstk_object_address(map->object, addr - map->pub.start + map->pub.offset,
				    &ret->addr);
}

/* Prepares the places of one file, which are sorted; keeps their different addresses in @addrs. */
static void prepare_object(const struct place *places, size_t nr, uint64_t *addrs,
			   unsigned int threads)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++)
		if (!n || addrs[n - 1] != places[i].addr)
			addrs[n++] = places[i].addr;
	shstk_object_prepare(places->object, addrs, n, threads);
}

static void prepare(struct place *places, size_t nr, uint64_t *addrs, unsigned int threads)
{
	size_t from, to;

	qsort(places, nr, sizeof(*places), compare);
	for (from = 0; from < nr; from = to) {
		for (to = from + 1; to < nr && places[to].object == places[from].object; to++)
			;
		prepare_object(places + from, to - from, addrs, threads);
	}
}

void shstk_profile_prepare(struct shstk_profile *profile)
{
	size_t new = profile->nr_locations - profile->prepared, nr = 0;
	unsigned int threads = cpus();
	struct place *places;
	uint64_t *addrs;

	if (threads < 2 || new < WORTH_IT)
		return;
	places = calloc(new, sizeof(*places));
	addrs = calloc(new, sizeof(*addrs));
	for (size_t i = profile->prepared; places && i < profile->nr_locations; i++)
		nr += find_place(profile->locations[i], &places[nr]);
	if (places && addrs)
		prepare(places, nr, addrs, threads);
	profile->prepared = profile->nr_locations;
	free(places);
	free(addrs);
}
