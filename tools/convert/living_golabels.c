// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * living_golabels.c - finds the goroutine of a sample and reads its labels. See living_golabels.h.
 *
 * Mostly a register of the sample leads to the goroutine. Otherwise it is one that was seen before,
 * or it is searched among all goroutines; at most one twentieth of the time is spent on searches.
 * Everything that is read may be wrong or change at any time. So an address of the sample must lie
 * on the stack of what is taken for its goroutine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libshstk/go/goroutine.h"
#include "tools/convert/living_golabels.h"
#include "tools/perf/regs.h"
#include "tools/shstk.h"

#define SEEN 64 /* goroutines that are remembered */
#define REST 20 /* after a search there is none for this many times its duration */
#define MIN_REST 20000000 /* ns until the runtime is searched again, at first */
#define MAX_REST 5000000000 /* ns, for a process in which nothing was found */

/**
 * struct seen_goroutine - a goroutine to which a sample belonged
 * @g: address of its description; 0: none.
 * @stack: its stack at that time.
 * @size: bytes in @labels.
 * @labels: its labels at that time.
 */
struct seen_goroutine {
	uint64_t g;
	struct shstk_gostack stack;
	size_t size;
	char labels[GOLABELS_MAX];
};

/**
 * struct golabels - what is known of the goroutines of a process
 * @pid: process ID.
 * @space: the code of the process.
 * @rt: its Go runtime.
 * @found: @rt is known.
 * @rest: ns until the runtime is searched again after a search in vain.
 * @next: CLOCK_MONOTONIC in ns, before which the runtime is not searched.
 * @next_search: CLOCK_MONOTONIC in ns, before which no process is searched.
 * @seen: goroutines that were seen, at a place that the address tells; a new one replaces another.
 */
struct golabels {
	pid_t pid;
	struct shstk_space *space;
	struct shstk_goruntime rt;
	bool found;
	uint64_t rest;
	uint64_t next;
	uint64_t *next_search;
	struct seen_goroutine seen[SEEN];
};

struct golabels *golabels_create(pid_t pid, uint64_t *next_search)
{
	struct golabels *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->pid = pid;
	all->next_search = next_search;
	return all;
}

void golabels_destroy(struct golabels *all)
{
	if (!all)
		return;
	shstk_space_destroy(all->space);
	free(all);
}

/* ---- Searching ---- */

static bool may_search(const struct golabels *all, uint64_t *began)
{
	*began = now_ns(CLOCK_MONOTONIC);
	return *began >= *all->next_search;
}

static void searched(struct golabels *all, uint64_t began)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC);

	*all->next_search = end + REST * (end - began);
}

/*
 * Finds the Go runtime, and returns whether it is known. A program that has just begun may not have
 * it yet, and memory of another one may not be readable.
 */
static bool find_runtime(struct golabels *all)
{
	uint64_t began;

	if (all->found || !may_search(all, &began) || began < all->next)
		return all->found;
	all->rest = !all->rest ? MIN_REST : 2 * all->rest < MAX_REST ? 2 * all->rest : MAX_REST;
	all->next = began + all->rest;
	shstk_space_destroy(all->space);
	all->space = NULL;
	all->found = !shstk_space_create(perf_regs_arch(), &all->space) &&
		     shstk_space_add_pid(all->space, all->pid) > 0 &&
		     !shstk_goruntime_find(&all->rt, all->space, shstk_read_process, &all->pid);
	searched(all, began);
	return all->found;
}

static bool has(const struct shstk_gostack *stack, uint64_t place)
{
	return place > stack->lo && place <= stack->hi;
}

/* A search for the goroutine that has the address @place on its stack. */
struct wanted {
	struct golabels *all;
	uint64_t place;
	uint64_t g;
};

static int compare(void *arg, const struct shstk_goroutine *g)
{
	struct wanted *w = arg;
	struct shstk_gostack stack;

	if (!shstk_goroutine_stack(&w->all->rt, g->g, &stack) || !has(&stack, w->place))
		return 0;
	w->g = g->g;
	return 1;
}

static uint64_t search_all(struct golabels *all, uint64_t place)
{
	struct wanted w = { all, place, 0 };
	uint64_t began;

	if (!may_search(all, &began))
		return 0;
	shstk_goruntime_each(&all->rt, compare, &w);
	searched(all, began);
	return w.g;
}

/* ---- One goroutine ---- */

/*
 * Returns @g, or the goroutine that its thread runs, if @place is on the stack of that one;
 * otherwise 0.
 */
static uint64_t by_register(const struct golabels *all, uint64_t g, uint64_t place)
{
	struct shstk_gostack stack, current;

	if (!shstk_goroutine_stack(&all->rt, g, &stack))
		return 0;
	if (has(&stack, place) && stack.current == g)
		return g;
	if (shstk_goroutine_stack(&all->rt, stack.current, &current) && has(&current, place))
		return stack.current;
	return has(&stack, place) ? g : 0;
}

static struct seen_goroutine *slot_of(struct golabels *all, uint64_t g)
{
	return &all->seen[(g * 0x9e3779b97f4a7c15) >> 58];
}

/*
 * Finds a remembered goroutine by the place of its last known stack. That helps if the goroutine is
 * gone, as at the end of a program.
 */
static struct seen_goroutine *find_seen(struct golabels *all, uint64_t place)
{
	for (unsigned int i = 0; i < SEEN; i++)
		if (all->seen[i].g && has(&all->seen[i].stack, place))
			return &all->seen[i];
	return NULL;
}

static int put_label(void *arg, const char *key, const char *value)
{
	struct seen_goroutine *s = arg;
	size_t klen = strlen(key) + 1, vlen = strlen(value) + 1;

	if (klen + vlen > sizeof(s->labels) - s->size)
		return 0;
	memcpy(s->labels + s->size, key, klen);
	memcpy(s->labels + s->size + klen, value, vlen);
	s->size += klen + vlen;
	return 0;
}

/* Reads and remembers what the process tells of @g now. Returns NULL if it cannot be read. */
static struct seen_goroutine *read_goroutine(struct golabels *all, uint64_t g)
{
	struct shstk_goroutine it = { .g = g };
	struct seen_goroutine *s = slot_of(all, g);

	s->g = 0;
	if (!shstk_goroutine_stack(&all->rt, g, &s->stack))
		return NULL;
	s->g = g;
	s->size = 0;
	shstk_goroutine_find_labels(&all->rt, &it);
	shstk_goroutine_labels(&all->rt, &it, put_label, s);
	return s;
}

/* Returns the goroutine on whose stack the address is, or NULL. */
static struct seen_goroutine *find_at(struct golabels *all, uint64_t g, uint64_t place)
{
	uint64_t found = by_register(all, g, place);
	struct seen_goroutine *old = found ? NULL : find_seen(all, place), *s;
	struct shstk_gostack stack;

	if (old) {
		if (!shstk_goroutine_stack(&all->rt, old->g, &stack))
			return old; /* it cannot be read any more */
		found = has(&stack, place) ? old->g : 0;
	}
	if (!found)
		found = search_all(all, place);
	s = found ? read_goroutine(all, found) : NULL;
	return s && has(&s->stack, place) ? s : NULL;
}

size_t golabels_find(struct golabels *all, const struct golabels_hints *hints, char *buf)
{
	const struct seen_goroutine *s = NULL;

	if (!find_runtime(all))
		return 0;
	for (unsigned int i = 0; i < hints->nr && !s; i++)
		s = find_at(all, hints->g, hints->places[i]);
	if (!s)
		return 0;
	memcpy(buf, s->labels, s->size);
	return s->size;
}
