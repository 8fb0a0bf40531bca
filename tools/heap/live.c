// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * live.c - which block belongs to which stack.
 *
 * A radix tree over addresses: top table, middle table, leaf; a leaf has one
 * slot for every place at which a block can begin. No lock is needed: between
 * malloc() and free() a block, and so its slot, has one owner, and the
 * allocator itself orders one owner before the next. Blocks that lie side by
 * side have their slots side by side, which caches like.
 *
 * Where few blocks are sampled, most leaves' slots would be pages that are only
 * looked at to find them empty. So a leaf counts the blocks in each page.
 */
#include <sys/mman.h>

#include "heap.h"

#define MID_ENTRIES	(1u << (TOP_SHIFT - LEAF_SHIFT))
#define PAGE_SHIFT	12
#define LEAF_PAGES	(1u << (LEAF_SHIFT - PAGE_SHIFT))

/* trace: low half of @a; time: its high half and 16 bits of @b; size: the rest. */
struct slot {
	uint64_t a, b;
};

struct leaf {
	_Atomic uint16_t blocks[LEAF_PAGES];
	struct slot slots[];
};

static void *map_table(uint64_t bytes)
{
	long p = sys6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p < 0 && p > -4096)
		return NULL;
	sys3(SYS_madvise, p, bytes, MADV_DONTFORK);
	sys3(SYS_madvise, p, bytes, MADV_DONTDUMP);
	sys3(SYS_madvise, p, bytes, MADV_NOHUGEPAGE);
	return (void *)p;
}

static uint64_t leaf_bytes(void)
{
	return sizeof(struct leaf) +
	       ((1ull << LEAF_SHIFT) >> heap.granule) * sizeof(struct slot);
}

static struct leaf *add_leaf(uint64_t addr)
{
	struct leaf *_Atomic *_Atomic *top = &heap.own->top[addr >> TOP_SHIFT];
	struct leaf *_Atomic *mid = atomic_load(top), *_Atomic *no_mid = NULL;
	struct leaf *_Atomic *at, *leaf, *none = NULL;

	if (!mid) {
		mid = map_table(MID_ENTRIES * sizeof(*mid));
		if (!mid)
			return NULL;
		if (!atomic_compare_exchange_strong(top, &no_mid, mid)) {
			sys2(SYS_munmap, mid, MID_ENTRIES * sizeof(*mid));
			mid = no_mid;
		}
	}
	at = &mid[addr >> LEAF_SHIFT & (MID_ENTRIES - 1)];
	leaf = atomic_load(at);
	if (leaf)
		return leaf;
	leaf = map_table(leaf_bytes());
	if (!leaf)
		return NULL;
	if (!atomic_compare_exchange_strong(at, &none, leaf)) {
		sys2(SYS_munmap, leaf, leaf_bytes());
		leaf = none;
	}
	return leaf;
}

static inline struct leaf *find_leaf(uint64_t addr)
{
	struct leaf *_Atomic *mid;

	if (unlikely(addr >> 48 || !heap.own))
		return NULL;
	mid = atomic_load_explicit(&heap.own->top[addr >> TOP_SHIFT],
				   memory_order_acquire);
	if (!mid)
		return NULL;
	return atomic_load_explicit(&mid[addr >> LEAF_SHIFT & (MID_ENTRIES - 1)],
				    memory_order_acquire);
}

static inline struct slot *slot_of(struct leaf *leaf, uint64_t addr)
{
	return &leaf->slots[(addr & ((1ull << LEAF_SHIFT) - 1)) >> heap.granule];
}

static inline _Atomic uint16_t *page_of(struct leaf *leaf, uint64_t addr)
{
	return &leaf->blocks[addr >> PAGE_SHIFT & (LEAF_PAGES - 1)];
}

bool live_put(const void *p, const struct block *b)
{
	uint64_t addr = (uintptr_t)p;
	struct leaf *leaf = find_leaf(addr);
	struct slot *slot;

	if (unlikely(!leaf)) {
		if (addr >> 48)
			return false;
		leaf = add_leaf(addr);
		if (!leaf)
			return false;
	}
	slot = slot_of(leaf, addr);
	slot->b = b->size << 16 | (b->time >> 32 & 0xffff);
	slot->a = b->time << 32 | b->trace;
	if (heap.sample)
		atomic_fetch_add_explicit(page_of(leaf, addr), 1,
					  memory_order_relaxed);
	return true;
}

bool live_take(const void *p, struct block *ret)
{
	uint64_t addr = (uintptr_t)p, a, b;
	struct leaf *leaf = find_leaf(addr);
	struct slot *slot;

	if (!leaf || (heap.sample &&
		      !atomic_load_explicit(page_of(leaf, addr),
					    memory_order_relaxed)))
		return false;
	slot = slot_of(leaf, addr);
	a = slot->a;
	if (!(uint32_t)a)
		return false;
	b = slot->b;
	slot->a = 0;
	if (heap.sample)
		atomic_fetch_sub_explicit(page_of(leaf, addr), 1,
					  memory_order_relaxed);
	*ret = (struct block){
		.trace = a,
		.time = a >> 32 | (b & 0xffff) << 32,
		.size = b >> 16,
	};
	return true;
}
