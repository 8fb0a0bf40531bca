// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * live.c - which block belongs to which stack.
 *
 * A radix tree over addresses: top table, middle table, leaf. A leaf has one slot for every place
 * at which a block can begin. No lock is needed: between malloc() and free() a block, and so its
 * slot, has one owner, and the allocator itself orders one owner before the next. Blocks that lie
 * side by side have their slots side by side, which is good for the caches.
 *
 * Where few blocks are sampled, most pages of slots would only be read to find them empty. So a
 * leaf also counts the blocks in each page; these counts are behind the slots. And a small table
 * has such counts by the low bits of the page's number: it tells about nearly all blocks that they
 * are not in the tree. Where all blocks are recorded, a large heap gets large pages.
 */
#include <string.h>

#include "heap.h"

#define MID_ENTRIES (1u << (TOP_SHIFT - LEAF_SHIFT))
#define LEAF_PAGES (1u << (LEAF_SHIFT - LIVE_PAGE_SHIFT))
#define SMALL_LEAVES 2 /* so many leaves use small pages */
#define FILTER 65536u

/* The number of a leaf is that of the addresses that it is for; local.leaf holds both. */
#define NUMBER_BITS (48 - LEAF_SHIFT)
#define NUMBER_MASK ((1ull << NUMBER_BITS) - 1)

/*
 * The low half of @a is the trace; its high half and 16 bits of @b are the time; the rest of @b is
 * the size.
 */
struct live_slot {
	uint64_t a, b;
};

static uint8_t filter[FILTER];
static uint8_t always = 1;

struct live_filter live_filter = { .at = &always };

static uint8_t *filter_of(uint64_t addr)
{
	return &filter[addr >> LIVE_PAGE_SHIFT & (FILTER - 1)];
}

static void filter_change(uint64_t addr, int by)
{
	uint8_t *at = filter_of(addr);
	uint8_t was = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (was != UINT8_MAX && !__atomic_compare_exchange_n(at, &was, was + by, true,
								__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void live_prepare(const void *pool, uint64_t bytes)
{
	uint64_t first = (uintptr_t)pool, at;

	if (!heap.sample)
		return;
	if (live_filter.mask) /* this is a child */
		memset(filter, 0, sizeof(filter));
	for (at = first & ~((1ull << LIVE_PAGE_SHIFT) - 1); at < first + bytes;
	     at += 1ull << LIVE_PAGE_SHIFT)
		*filter_of(at) = UINT8_MAX;
	live_filter.at = filter;
	live_filter.mask = FILTER - 1;
}

static uint64_t slots_bytes(void)
{
	return ((1ull << LEAF_SHIFT) >> heap.granule) * sizeof(struct live_slot);
}

static uint64_t leaf_bytes(void)
{
	return slots_bytes() + LEAF_PAGES * sizeof(uint16_t);
}

static struct live_slot *map_leaf(void)
{
	uint32_t nr = atomic_fetch_add(&heap.unshared->nr_leaves, 1);

	return heap_map(leaf_bytes(), !heap.sample && nr >= SMALL_LEAVES);
}

static struct live_slot *_Atomic *leaf_at(struct live_slot *_Atomic *mid, uint64_t addr)
{
	return &mid[addr >> LEAF_SHIFT & (MID_ENTRIES - 1)];
}

static struct live_slot *add_leaf(uint64_t addr)
{
	struct live_slot *_Atomic *_Atomic *top = &heap.unshared->top[addr >> TOP_SHIFT];
	struct live_slot *_Atomic *mid = atomic_load(top), *_Atomic *no_mid = NULL;
	struct live_slot *_Atomic *at, *leaf, *none = NULL;

	if (!mid) {
		mid = heap_map(MID_ENTRIES * sizeof(*mid), false);
		if (!mid)
			return NULL;
		if (!atomic_compare_exchange_strong(top, &no_mid, mid)) {
			heap_unmap(mid, MID_ENTRIES * sizeof(*mid));
			mid = no_mid;
		}
	}
	at = leaf_at(mid, addr);
	leaf = atomic_load(at);
	if (leaf)
		return leaf;
	leaf = map_leaf();
	if (!leaf)
		return NULL;
	if (!atomic_compare_exchange_strong(at, &none, leaf)) {
		heap_unmap(leaf, leaf_bytes());
		leaf = none;
	}
	return leaf;
}

static __attribute__((noinline)) struct live_slot *look_up_leaf(uint64_t addr)
{
	struct live_slot *_Atomic *mid;
	struct live_slot *leaf;

	if (addr >> 48)
		return NULL;
	mid = atomic_load_explicit(&heap.unshared->top[addr >> TOP_SHIFT], memory_order_acquire);
	leaf = mid ? atomic_load_explicit(leaf_at(mid, addr), memory_order_acquire) : NULL;
	if (leaf)
		local.leaf = (uintptr_t)leaf >> LIVE_PAGE_SHIFT << NUMBER_BITS | addr >> LEAF_SHIFT;
	return leaf;
}

/* Returns the leaf used last if it is that of @addr; else NULL. */
static inline struct live_slot *last_leaf(uint64_t addr)
{
	uint64_t cached = local.leaf;

	if (likely((cached & NUMBER_MASK) == addr >> LEAF_SHIFT))
		return (struct live_slot *)(cached >> NUMBER_BITS << LIVE_PAGE_SHIFT);
	return NULL;
}

static inline struct live_slot *find_leaf(uint64_t addr)
{
	struct live_slot *leaf = last_leaf(addr);

	return likely(leaf) ? leaf : look_up_leaf(addr);
}

static inline struct live_slot *slot_of(struct live_slot *leaf, uint64_t addr)
{
	return &leaf[(addr & ((1ull << LEAF_SHIFT) - 1)) >> heap.granule];
}

static inline _Atomic uint16_t *page_of(struct live_slot *leaf, uint64_t addr)
{
	return (_Atomic uint16_t *)((uint8_t *)leaf + slots_bytes()) +
	       (addr >> LIVE_PAGE_SHIFT & (LEAF_PAGES - 1));
}

void live_expect(const void *p)
{
	uint64_t addr = (uintptr_t)p;
	struct live_slot *leaf = find_leaf(addr);

	if (likely(leaf))
		__builtin_prefetch(slot_of(leaf, addr), 1);
}

/* Stores @b in @leaf, which is that of @addr. */
static inline void put_in(struct live_slot *leaf, uint64_t addr, const struct block *b)
{
	struct live_slot *slot = slot_of(leaf, addr);

	slot->b = b->size << 16 | (b->time >> 32 & 0xffff);
	slot->a = b->time << 32 | b->trace;
	if (unlikely(heap.sample)) {
		atomic_fetch_add_explicit(page_of(leaf, addr), 1, memory_order_relaxed);
		filter_change(addr, 1);
	}
}

/* Does what live_put() does for a leaf that is not the one used last, or that does not exist yet. */
static __attribute__((noinline)) bool put_elsewhere(uint64_t addr, const struct block *b)
{
	struct live_slot *leaf = look_up_leaf(addr);

	if (!leaf && !(addr >> 48))
		leaf = add_leaf(addr);
	if (leaf)
		put_in(leaf, addr, b);
	return leaf;
}

bool live_put(const void *p, const struct block *b)
{
	uint64_t addr = (uintptr_t)p;
	struct live_slot *leaf = last_leaf(addr);

	if (unlikely(!leaf))
		return put_elsewhere(addr, b);
	put_in(leaf, addr, b);
	return true;
}

bool live_take(const void *p, struct block *ret)
{
	uint64_t addr = (uintptr_t)p, a, b;
	struct live_slot *leaf, *slot;

	/* @local may be that of a parent, whose tables are not here. */
	if (unlikely(!is_on()))
		return false;
	leaf = find_leaf(addr);
	if (!leaf ||
	    (heap.sample && !atomic_load_explicit(page_of(leaf, addr), memory_order_relaxed)))
		return false;
	slot = slot_of(leaf, addr);
	a = slot->a;
	if (!(uint32_t)a)
		return false;
	b = slot->b;
	slot->a = 0;
	if (unlikely(heap.sample)) {
		atomic_fetch_sub_explicit(page_of(leaf, addr), 1, memory_order_relaxed);
		filter_change(addr, -1);
	}
	*ret = (struct block){
		.trace = a,
		.time = a >> 32 | (b & 0xffff) << 32,
		.size = b >> 16,
	};
	return true;
}
