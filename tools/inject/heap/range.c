// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * range.c - the sorted ranges that mmap() has mapped; parts of them may be unmapped or mapped over.
 * If mmap() is not recorded, the ranges have no stack and are only summed up. A range that is only
 * reserved, without access, counts once mprotect() gives access to it.
 *
 * The lock is held for a moment, with the thread's signals not blocked: a signal handler that maps
 * memory meanwhile finds @local.busy set and does nothing here.
 */
#include <string.h>
#include <sys/mman.h>

#include "heap.h"

#define MAX_RANGES 65530 /* the kernel's default limit of mappings */

struct mapped_range {
	uint64_t start, end;
	uint64_t time;
	uint32_t trace;
	bool object; /* exactly one of the parts of a mapping counts as its object */
	bool reserved; /* it has no access yet and counts nothing */
};

static struct mapped_range *_Atomic list;

static void unlock(void)
{
	atomic_store_explicit(&heap.unshared->range_lock, 0, memory_order_release);
}

static bool lock(void)
{
	int free = 0;

	while (!atomic_compare_exchange_weak_explicit(&heap.unshared->range_lock, &free, 1,
						      memory_order_acquire, memory_order_relaxed)) {
		free = 0;
		if (!heap.sandboxed)
			sys0(SYS_sched_yield);
	}
	if (!list && !heap.sandboxed) {
		long p = sys6(SYS_mmap, 0, MAX_RANGES * sizeof(struct mapped_range),
			      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			      -1, 0);

		if (p > 0 || p <= -4096)
			list = (struct mapped_range *)p;
	}
	if (list)
		return true;
	unlock();
	return false;
}

/* Returns the index of the first range that ends behind @addr. */
static uint32_t find(uint64_t addr)
{
	uint32_t lo = 0, hi = heap.unshared->ranges;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (list[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void range_prepare(void)
{
	if (lock())
		unlock();
}

static bool insert(uint32_t at, struct mapped_range r)
{
	if (heap.unshared->ranges == MAX_RANGES) {
		if (r.trace)
			note_lost();
		return false;
	}
	memmove(&list[at + 1], &list[at], (heap.unshared->ranges - at) * sizeof(r));
	list[at] = r;
	heap.unshared->ranges++;
	return true;
}

/* Changes the sum of the bytes of mappings without a stack by @by. */
static void change_mapped(int64_t by)
{
	struct heap_image *image = heap.image;
	int64_t now = atomic_load(&image->mapped) + by;

	atomic_store(&image->mapped, now);
	if (now > atomic_load(&image->mapped_peak))
		atomic_store(&image->mapped_peak, now);
}

static void shrink(const struct mapped_range *r, uint64_t bytes)
{
	if (r->reserved)
		return;
	if (r->trace)
		trace_shrink(r->trace, bytes);
	else
		change_mapped(-(int64_t)bytes);
}

static void removed(const struct mapped_range *r)
{
	struct block b = { .trace = r->trace, .time = r->time, .size = r->end - r->start };

	if (r->trace && r->object)
		trace_free(&b, false);
	else
		shrink(r, b.size);
}

/* Cuts [start, end) out of range @i. Returns the index where to go on. */
static uint32_t cut_one(uint32_t i, uint64_t start, uint64_t end)
{
	struct mapped_range *r = &list[i], behind = *r;

	if (r->start >= start && r->end <= end) {
		removed(r);
		memmove(r, r + 1, (--heap.unshared->ranges - i) * sizeof(*r));
		return i;
	}
	if (r->start < start && r->end > end) {
		behind.start = end;
		behind.object = false;
		shrink(r, end - start);
		r->end = start;
		if (!insert(i + 1, behind))
			shrink(&behind, behind.end - behind.start);
		return i + 2;
	}
	if (r->start < start) {
		shrink(r, r->end - start);
		r->end = start;
	} else {
		shrink(r, end - r->start);
		r->start = end;
	}
	return i + 1;
}

/* Cuts [start, end) out of all ranges. Returns how many ranges it cut. */
static uint32_t cut(uint64_t start, uint64_t end)
{
	uint32_t i = find(start), nr = 0;

	for (; i < heap.unshared->ranges && list[i].start < end; nr++)
		i = cut_one(i, start, end);
	return nr;
}

/* Adds range @r where no other range is. */
static void put(struct mapped_range r)
{
	uint64_t size = r.end - r.start;

	if (!insert(find(r.start), r) || r.reserved)
		return;
	if (r.trace)
		trace_alloc(r.trace, size, ticks_now());
	else
		change_mapped(size);
}

bool range_cut(uint64_t start, uint64_t size)
{
	uint32_t nr;

	if (!lock())
		return false;
	nr = cut(start, start + size);
	unlock();
	return nr;
}

void range_put(uint64_t start, uint64_t size, uint32_t trace, uint64_t time)
{
	if (!lock())
		return;
	cut(start, start + size);
	put((struct mapped_range){ start, start + size, time, trace, true, false });
	unlock();
}

void range_reserve(uint64_t start, uint64_t size)
{
	if (!lock())
		return;
	cut(start, start + size);
	put((struct mapped_range){ start, start + size, 0, 0, false, true });
	unlock();
}

/*
 * Returns the index of the first range in [start, end) that is @reserved, or is not; the number of
 * ranges if there is none.
 */
static uint32_t find_kind(uint64_t start, uint64_t end, bool reserved)
{
	uint32_t i = find(start);

	for (; i < heap.unshared->ranges && list[i].start < end; i++)
		if (list[i].reserved == reserved)
			return i;
	return heap.unshared->ranges;
}

bool range_has(uint64_t start, uint64_t size, bool reserved)
{
	bool has;

	if (!lock())
		return false;
	has = find_kind(start, start + size, reserved) < heap.unshared->ranges;
	unlock();
	return has;
}

void range_turn(uint64_t start, uint64_t size, bool reserved, uint32_t trace, uint64_t time)
{
	uint64_t end = start + size;
	uint32_t i;

	if (!lock())
		return;
	while ((i = find_kind(start, end, !reserved)) < heap.unshared->ranges) {
		uint64_t from = list[i].start > start ? list[i].start : start;
		uint64_t to = list[i].end < end ? list[i].end : end;

		cut_one(i, from, to);
		put((struct mapped_range){ from, to, time, trace, !reserved, reserved });
		start = to;
	}
	unlock();
}
