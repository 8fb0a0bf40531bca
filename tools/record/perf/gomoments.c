// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * gomoments.c - receives the goroutine's stacks that a BPF program copies, and finds the one that
 * belongs to a sample. See gomoments.h.
 *
 * The BPF program runs while the kernel takes the sample: since Linux 6.3 after the sample got its
 * time, in earlier kernels before that. A copy belongs to a sample of the same thread with the same
 * registers that is less than half a period away from it.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/perf/regs.h"
#include "tools/probes/probe_programs.h"
#include "tools/probes/bpf_ring.h"
#include "tools/record/perf/gomoments.h"
#include "tools/shstk.h"

#define OBJECT "shstk-goroutine.bpf.o"
#define RING_SIZE (8u << 20)
#define KEPT 1000000000 /* ns: samples of different CPUs are in order within that time */
#define MAX_APART 1000000 /* ns between a copy and its sample, at most */
#define HALF_A_SECOND 500000000 /* ns; divided by the rate of samples, half a period */
#define MAX_KEPT 16384 /* copies; nobody asks for the copy of a sample that was lost */

struct copied_moment {
	struct copied_moment *next;
	struct go_moment it; /* with its stack behind it */
};

/**
 * struct gomoments - the copies that were not asked for yet
 * @programs: the BPF program and its ring.
 * @ring: the mapped ring.
 * @apart: ns between a copy and its sample, at most.
 * @first: the copies, in the order in which they came.
 * @last: where the next copy is linked.
 * @nr: number of copies in the list.
 * @found: the copy that was asked for last.
 */
struct gomoments {
	struct programs programs;
	struct ring ring;
	uint64_t apart;
	struct copied_moment *first;
	struct copied_moment **last;
	size_t nr;
	struct copied_moment *found;
};

struct gomoments *gomoments_create(unsigned int freq)
{
	struct gomoments *all = calloc(1, sizeof(*all));
	char path[4096];
	struct reason why;

	if (!all)
		return NULL;
	all->last = &all->first;
	all->apart = HALF_A_SECOND / (freq ? freq : 1);
	if (all->apart > MAX_APART)
		all->apart = MAX_APART;
	if (!find_object(OBJECT, path, sizeof(path)) &&
	    !programs_load(&goroutine_programs, path, RING_SIZE, &all->programs, &why) &&
	    !ring_map(all->programs.maps[goroutine_programs.ring], all->programs.ring_size,
		      &all->ring))
		return all;
	gomoments_destroy(all);
	return NULL;
}

static void drop_first(struct gomoments *all)
{
	struct copied_moment *m = all->first;

	all->first = m->next;
	if (!all->first)
		all->last = &all->first;
	all->nr--;
	free(m);
}

void gomoments_destroy(struct gomoments *all)
{
	if (!all)
		return;
	while (all->first)
		drop_first(all);
	free(all->found);
	ring_unmap(&all->ring);
	programs_unload(&all->programs);
	free(all);
}

int gomoments_program(const struct gomoments *all)
{
	return all ? all->programs.programs[0] : 0;
}

/* Keeps a copy. If there is no memory for it, its sample has no copy. */
static int keep(void *arg, const void *record, size_t size)
{
	struct gomoments *all = arg;
	const struct go_moment *it = record;
	struct copied_moment *m;

	if (size < sizeof(*it) || it->room > size - sizeof(*it) || it->size > it->room)
		return 0;
	if (all->nr == MAX_KEPT)
		drop_first(all);
	m = malloc(sizeof(*m) + it->room);
	if (!m)
		return 0;
	memcpy(&m->it, it, sizeof(*it) + it->room);
	m->next = NULL;
	*all->last = m;
	all->last = &m->next;
	all->nr++;
	return 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

static bool belongs(const struct go_moment *it, const struct perf_record *record,
		    const struct perf_sample *sample)
{
	const unsigned int sp = perf_regs_arch() == SHSTK_ARCH_X86 ? 7 : 31;

	return it->tid == (uint32_t)record->tid && it->pc == sample->regs.pc &&
	       it->sp == sample->regs.r[sp];
}

/*
 * Takes from the list the copy that belongs to the sample and is nearest to it in time, or returns
 * NULL.
 */
static struct copied_moment *take(struct gomoments *all, const struct perf_record *record,
				  const struct perf_sample *sample)
{
	struct copied_moment **at, **best = NULL, *m;
	uint64_t least = all->apart, apart;

	for (at = &all->first; *at; at = &(*at)->next) {
		apart = distance((*at)->it.time, record->time);
		if (apart > least || !belongs(&(*at)->it, record, sample))
			continue;
		best = at;
		least = apart;
	}
	if (!best)
		return NULL;
	m = *best;
	*best = m->next;
	if (!m->next)
		all->last = best;
	all->nr--;
	return m;
}

/* Returns whether everything could be read that a stack of Go needs. */
static bool is_whole(const struct go_moment *it)
{
	return it->pieces[GO_PIECE_G].addr && it->pieces[GO_PIECE_G0].addr &&
	       it->pieces[GO_PIECE_M].addr && (!it->end || it->pieces[GO_PIECE_CURG].addr);
}

static size_t hand_out(const struct go_moment *it, struct memory_piece *ret)
{
	size_t n = 0;

	for (int i = 0; i < GO_PIECES; i++) {
		if (!it->pieces[i].addr)
			continue;
		ret[n++] = (struct memory_piece){
			.addr = it->pieces[i].addr,
			.bytes = (const uint8_t *)it->pieces[i].words,
			.size = sizeof(it->pieces[i].words),
		};
	}
	if (it->size)
		ret[n++] = (struct memory_piece){
			.addr = it->end - it->size,
			.bytes = it->stack + it->room - it->size,
			.size = it->size,
		};
	return n;
}

size_t gomoments_find(struct gomoments *all, const struct perf_record *record,
		      const struct perf_sample *sample, struct memory_piece ret[GOMOMENTS_PIECES])
{
	struct copied_moment *m;

	if (!all)
		return 0;
	ring_read(&all->ring, keep, all);
	while (all->first && all->first->it.time + KEPT < record->time)
		drop_first(all);
	m = take(all, record, sample);
	if (!m)
		return 0;
	free(all->found);
	all->found = m;
	return is_whole(&m->it) ? hand_out(&m->it, ret) : 0;
}
