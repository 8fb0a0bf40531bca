// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trace.c - stacks, each kept once, and their counters.
 *
 * A stack is found by its hash of 64 bits: two of a million stacks share one
 * with a probability of 3e-8, and then their figures are added up. New records
 * are put in front of their bucket's list; none is ever removed.
 */
#include <sys/single_threaded.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <string.h>

#include "heap.h"
#include "shstk.h"

#define SHORT_DEPTH	256	/* entries that the stack is used for */
#define POOL		64	/* deeper captures at a time */
#define STRIPES		16	/* records of a stack that threads share */

static _Atomic(uint64_t *) pool;

/*
 * Memory for a deep stack; -1: there is none. Buffers are held for as long as
 * a capture takes.
 */
static int pool_take(uint64_t **ret)
{
	uint64_t used = atomic_load(&heap.own->pool_used), *base = atomic_load(&pool);
	uint64_t bytes = heap.header->max_depth * 9ull;
	int i;

	if (!base) {
		uint64_t *none = NULL;
		long p = sys6(SYS_mmap, 0, bytes * POOL, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			      0);

		if (p < 0 && p > -4096)
			return -1;
		base = (uint64_t *)p;
		if (!atomic_compare_exchange_strong(&pool, &none, base)) {
			sys2(SYS_munmap, base, bytes * POOL);
			base = none;
		}
	}
	do {
		if (!~used)
			return -1;
		i = __builtin_ctzll(~used);
	} while (!atomic_compare_exchange_weak(&heap.own->pool_used, &used,
					       used | 1ull << i));
	*ret = (uint64_t *)((uint8_t *)base + i * bytes);
	return i;
}

static void pool_give(int i)
{
	atomic_fetch_and(&heap.own->pool_used, ~(1ull << i));
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash_stack(const uint64_t *pcs, unsigned int nr, uint64_t seed)
{
	uint64_t a = seed ^ 0x9e3779b97f4a7c15ULL, b = nr;
	unsigned int i;

	for (i = 0; i + 4 <= nr; i += 4) {
		a = mix(pcs[i] ^ a, pcs[i + 1] ^ 0xa0761d6478bd642fULL);
		b = mix(pcs[i + 2] ^ b, pcs[i + 3] ^ 0xe7037ed1a0b428dbULL);
	}
	for (; i < nr; i++)
		a = mix(pcs[i] ^ a, 0x8ebc6af09c88c6e3ULL);
	a = mix(a ^ 0x589965cc75374cc3ULL, b ^ 0x1d8e4e27c47d124fULL);
	return a ? a : 1;
}

static uint32_t find(uint64_t hash)
{
	uint32_t unit = atomic_load_explicit(&heap.own->buckets[hash % BUCKETS],
					     memory_order_acquire);

	while (unit) {
		const struct heap_trace *t = trace_at(unit);

		if (t->hash == hash)
			break;
		unit = t->next;
	}
	return unit;
}

/* Where threads are told apart their names are told too, and told again. */
static void tell_thread(void)
{
	char comm[HEAP_COMM] = "";
	struct heap_thread *t;

	if (!heap.header->per_thread || heap.sandboxed ||
	    local.news++ % 64)
		return;
	t = heap_reserve(sizeof(*t));
	if (!t)
		return;
	sys2(SYS_prctl, PR_GET_NAME, comm);
	t->tid = local.tid;
	memcpy(t->comm, comm, sizeof(comm));
	heap_publish(&t->record, HEAP_THREAD, sizeof(*t));
}

static uint32_t add(uint64_t hash, const uint64_t *pcs, const uint8_t *marks,
		    unsigned int nr, unsigned int end)
{
	_Atomic uint32_t *bucket = &heap.own->buckets[hash % BUCKETS];
	uint32_t maps = maps_number(pcs, nr), unit, head;
	struct heap_trace *t;

	tell_thread();
	t = heap_reserve(heap_trace_size(nr));
	if (!t)
		return 0;
	t->hash = hash;
	t->peak_no = atomic_load_explicit(&heap.image->peak_no,
					  memory_order_relaxed);
	t->maps = maps;
	t->tid = heap.header->per_thread ? local.tid : 0;
	t->nr = nr;
	t->end = end;
	memcpy(t->pcs, pcs, nr * sizeof(*pcs));
	memcpy(&t->pcs[nr], marks, nr);
	heap_publish(&t->record, HEAP_TRACE, heap_trace_size(nr));
	unit = ((uint8_t *)t - (uint8_t *)heap.image) / HEAP_UNIT;
	head = atomic_load_explicit(bucket, memory_order_relaxed);
	/* Two threads may add the same: both count, and are added up. */
	do {
		t->next = head;
	} while (!atomic_compare_exchange_weak_explicit(bucket, &head, unit,
							memory_order_release,
							memory_order_relaxed));
	return unit;
}

/*
 * Captures, with @skip frames of the agent left out. @leaf, if not NULL, comes
 * first: what was called. Marks are wanted only of new stacks, so a stack is
 * taken again for them.
 */
static inline __attribute__((always_inline)) int
capture(uint64_t *pcs, uint8_t *marks, unsigned int max, unsigned int skip,
	const void *leaf, struct shstk_info *info)
{
	struct shstk_opts opts = { .size = sizeof(opts), .skip = skip };
	unsigned int first = !!leaf;
	int n;

	if (marks)
		opts.marks = marks + first;
	n = shstk_capture(pcs + first, max - first, &opts, info);
	if (n < 0)
		return n;
	if (leaf) {
		pcs[0] = (uintptr_t)leaf;
		if (marks)
			marks[0] = SHSTK_MARK_PC;
	}
	return n + first;
}

static uint64_t seed(void)
{
	uint64_t salt = atomic_load_explicit(&heap.salt, memory_order_relaxed);
	uint32_t thread = 0;

	if (unlikely(heap.header->per_thread || !__libc_single_threaded)) {
		if (!local.tid)
			local.tid = sys0(SYS_gettid);
		thread = heap.header->per_thread ? local.tid :
						   local.tid % STRIPES;
	}
	return salt << 32 | thread;
}

static unsigned int short_depth(void)
{
	unsigned int max = heap.header->max_depth;

	return max < SHORT_DEPTH ? max : SHORT_DEPTH;
}

static __attribute__((noinline)) uint32_t take_deep(const void *leaf,
						     unsigned int skip)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t *pcs, hash;
	uint32_t unit = 0;
	uint8_t *marks;
	int i = pool_take(&pcs), n;

	if (i < 0)
		return 0;
	n = capture(pcs, NULL, heap.header->max_depth, skip + 1, leaf, &info);
	if (n >= 0) {
		local.deep = n > SHORT_DEPTH;
		hash = hash_stack(pcs, n, seed());
		unit = find(hash);
		if (!unit) {
			marks = (uint8_t *)(pcs + heap.header->max_depth);
			n = capture(pcs, marks, heap.header->max_depth,
				    skip + 1, leaf, &info);
			if (n >= 0)
				unit = add(hash, pcs, marks, n, info.end);
		}
	}
	pool_give(i);
	return unit;
}

static __attribute__((noinline)) uint32_t take_new(const void *leaf,
						    unsigned int skip,
						    uint64_t hash)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[SHORT_DEPTH];
	uint8_t marks[SHORT_DEPTH];
	int n = capture(pcs, marks, short_depth(), skip + 1, leaf, &info);

	return n < 0 ? 0 : add(hash, pcs, marks, n, info.end);
}

__attribute__((noinline)) uint32_t trace_take(const void *leaf,
					      unsigned int extra)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[SHORT_DEPTH], hash;
	unsigned int max = short_depth();
	uint32_t unit;
	int n;

	if (unlikely(local.deep))
		return take_deep(leaf, extra + 1);
	n = capture(pcs, NULL, max, extra + 1, leaf, &info);
	if (unlikely(n < 0))
		return 0;
	if (unlikely(info.end == SHSTK_END_CAPACITY &&
		     max < heap.header->max_depth))
		return take_deep(leaf, extra + 1);
	hash = hash_stack(pcs, n, seed());
	unit = find(hash);
	return likely(unit) ? unit : take_new(leaf, extra + 1, hash);
}

/* Atomic only where there are threads: the difference is a third of the cost. */
static inline uint64_t increase(_Atomic uint64_t *counter, uint64_t n)
{
	if (likely(__libc_single_threaded)) {
		n += atomic_load_explicit(counter, memory_order_relaxed);
		atomic_store_explicit(counter, n, memory_order_relaxed);
		return n;
	}
	return atomic_fetch_add_explicit(counter, n, memory_order_relaxed) + n;
}

/*
 * Bytes in use. Threads would fight over one counter, so each adds to one of
 * several, which go to the common one when they have come far.
 */
#define SHARD_FAR	65536

static int64_t change_live(int64_t by)
{
	_Atomic int64_t *live = &heap.image->live;
	_Atomic int64_t *shard;
	int64_t now;

	if (likely(__libc_single_threaded)) {
		now = atomic_load_explicit(live, memory_order_relaxed) + by;
		atomic_store_explicit(live, now, memory_order_relaxed);
		return now;
	}
	shard = &heap.own->shards[local.tid % SHARDS].bytes;
	now = atomic_fetch_add_explicit(shard, by, memory_order_relaxed) + by;
	if (now > -SHARD_FAR && now < SHARD_FAR)
		return atomic_load_explicit(live, memory_order_relaxed);
	by = atomic_exchange_explicit(shard, 0, memory_order_relaxed);
	return atomic_fetch_add_explicit(live, by, memory_order_relaxed) + by;
}

/* The first change after a peak: keep what it was. */
static inline void keep_peak(struct heap_trace *t)
{
	uint32_t no = atomic_load_explicit(&heap.image->peak_no,
					   memory_order_relaxed);

	if (likely(atomic_load_explicit(&t->peak_no, memory_order_relaxed) ==
		   no))
		return;
	atomic_store_explicit(&t->peak_no, no, memory_order_relaxed);
	atomic_store_explicit(&t->peak_objects, t->objects - t->freed,
			      memory_order_relaxed);
	atomic_store_explicit(&t->peak_bytes, t->bytes - t->freed_bytes,
			      memory_order_relaxed);
}

void trace_alloc(uint32_t trace, uint64_t size)
{
	struct heap_image *image = heap.image;
	struct heap_trace *t = trace_at(trace);
	uint64_t bytes, objects = random_weight(size, &bytes);
	int64_t live;

	keep_peak(t);
	increase(&t->objects, objects);
	increase(&t->bytes, bytes);
	live = change_live(bytes);
	if (live <= atomic_load_explicit(&image->peak, memory_order_relaxed))
		return;
	atomic_store_explicit(&image->peak, live, memory_order_relaxed);
	atomic_store_explicit(&image->rising, 1, memory_order_relaxed);
	atomic_store_explicit(&image->peak_time, heap_ticks(),
			      memory_order_relaxed);
}

static inline void end_peak(void)
{
	struct heap_image *image = heap.image;

	if (!atomic_load_explicit(&image->rising, memory_order_relaxed))
		return;
	atomic_store_explicit(&image->rising, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&image->peak_no, 1, memory_order_relaxed);
}

void trace_shrink(uint32_t trace, uint64_t size)
{
	struct heap_trace *t = trace_at(trace);

	end_peak();
	keep_peak(t);
	increase(&t->freed_bytes, size);
	change_live(-(int64_t)size);
}

void trace_free(const struct block *b, bool temporary)
{
	struct heap_trace *t = trace_at(b->trace);
	uint64_t bytes, objects = random_weight(b->size, &bytes);
	uint64_t age = ((heap_ticks() >> 6) - b->time) & 0xffffffffffffULL;

	end_peak();
	keep_peak(t);
	increase(&t->freed, objects);
	increase(&t->freed_bytes, bytes);
	/* An age may be negative where the clocks of CPUs differ. */
	if (age < 1ull << 47)
		increase(&t->lifetime, heap.sample ? age * objects / HEAP_ONE :
						     age);
	if (temporary)
		increase(&t->temporary, objects);
	change_live(-(int64_t)bytes);
}
