// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trace.c - stacks, each stored once, and their counters.
 *
 * A stack is found by its identity of 64 bits (shstk_trace_id()), which the library computes while
 * it captures. Two of a million stacks have the same one with a probability of 3e-8; then their
 * counts are added up. No stack is ever removed.
 *
 * An event accesses an entry of a table and a counter, a cache line each. The stacks themselves are
 * apart, as they are written once.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <string.h>

#include "heap.h"
#include "python.h"
#include "shstk.h"
#include "tools/repeats.h"

#define SHORT_DEPTH 256 /* entries that are captured to the thread's own stack */
#define STRIPES 16 /* records of a stack, shared by threads */
#define TABLE_MIN 4096u /* entries of the first table */

/**
 * struct deep_pool - memory for deep captures
 * @room: entries that a buffer has room for.
 * @buffers: the buffers: entries, the stack pointer of each, and a mark for each.
 */
struct deep_pool {
	uint32_t room;
	uint64_t buffers[];
};

static _Atomic(struct deep_pool *) pool;

/* Returns the bytes of a buffer. */
static uint64_t buffer_bytes(uint32_t room)
{
	return (room * 17ull + 7) & ~7ull;
}

static uint64_t pool_bytes(uint32_t room)
{
	return sizeof(struct deep_pool) + buffer_bytes(room) * POOL;
}

static struct deep_pool *map_pool(uint32_t room)
{
	long p = sys6(SYS_mmap, 0, pool_bytes(room), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p < 0 && p > -4096)
		return NULL;
	((struct deep_pool *)p)->room = room;
	return (struct deep_pool *)p;
}

/*
 * Returns the memory of all buffers, or NULL if there is none. A child has it too. Locked memory
 * takes all its size, so then there is no room to shorten stacks, as where addresses are few.
 */
static struct deep_pool *find_pool(void)
{
	struct deep_pool *is = atomic_load(&pool), *none = NULL, *made = NULL;

	if (is || heap.sandboxed)
		return is;
	if (!heap.locked)
		made = map_pool(heap.deepest);
	if (!made)
		made = map_pool(heap.max_depth);
	if (!made || atomic_compare_exchange_strong(&pool, &none, made))
		return made;
	sys2(SYS_munmap, made, pool_bytes(made->room));
	return none;
}

void trace_prepare(void)
{
	find_pool();
}

/**
 * struct deep_buffer - room for a deep stack
 * @number: number of the buffer.
 * @room: entries that it has room for.
 * @pcs: the entries.
 * @sps: their stack pointers.
 * @marks: their marks.
 * @known: stacks that were shortened in this buffer; POOL_KNOWN elements.
 */
struct deep_buffer {
	int number;
	uint32_t room;
	uint64_t *pcs;
	uint64_t *sps;
	uint8_t *marks;
	struct known_stack *known;
};

/* Takes a buffer, for as long as a capture takes. Returns false if there is none. */
static bool pool_take(struct deep_buffer *ret)
{
	uint64_t used = atomic_load(&heap.unshared->pool_used);
	struct deep_pool *from = find_pool();
	int i;

	if (!from)
		return false;
	do {
		if (!~used)
			return false;
		i = __builtin_ctzll(~used);
	} while (!atomic_compare_exchange_weak(&heap.unshared->pool_used, &used, used | 1ull << i));
	ret->number = i;
	ret->room = from->room;
	ret->pcs = from->buffers + i * (buffer_bytes(from->room) / sizeof(*from->buffers));
	ret->sps = ret->pcs + from->room;
	ret->marks = (uint8_t *)(ret->sps + from->room);
	ret->known = heap.unshared->known[i];
	return true;
}

static void pool_give(const struct deep_buffer *b)
{
	atomic_fetch_and(&heap.unshared->pool_used, ~(1ull << b->number));
}

/*
 * Tables of known stacks. An entry is the upper half of the hash and the number of the counter,
 * which has the other half of the hash; 0: the entry is free. Entries are small for the sake of the
 * caches.
 *
 * Stacks are put into the newest table. When three quarters of it are full, a table of twice its
 * size follows. A stack that is found in an older table is copied to the newest one.
 */
static inline uint32_t table_mask(uint32_t i)
{
	return (TABLE_MIN << i) - 1;
}

static inline uint64_t entry_of(uint64_t hash, uint32_t counter)
{
	return (hash & ~0xffffffffull) | counter;
}

/*
 * Returns the counter of @hash in table @i, or 0 if there is none: *@free is then the place for it.
 */
static inline uint32_t probe(uint32_t i, uint64_t hash, _Atomic uint64_t **free)
{
	_Atomic uint64_t *table =
		atomic_load_explicit(&heap.unshared->tables[i], memory_order_acquire);
	uint64_t mask = table_mask(i), at = hash & mask, is;

	for (;; at = (at + 1) & mask) {
		is = atomic_load_explicit(&table[at], memory_order_acquire);
		if (!is)
			break;
		if (!((is ^ hash) >> 32) && likely(counter_at(is)->check == (uint32_t)hash))
			return is;
	}
	*free = &table[at];
	return 0;
}

static __attribute__((noinline)) bool grow(uint32_t nr)
{
	uint64_t bytes = (table_mask(nr) + 1ull) * sizeof(uint64_t);
	_Atomic uint64_t *table = NULL, *more;

	if (nr == TABLES)
		return false;
	more = heap_map(bytes, bytes >= HEAP_LARGE_PAGE);
	if (!more)
		return false;
	if (!atomic_compare_exchange_strong(&heap.unshared->tables[nr], &table, more))
		heap_unmap(more, bytes);
	atomic_compare_exchange_strong(&heap.unshared->nr_tables, &nr, nr + 1);
	return true;
}

/* Returns whether there is a table with room for one more entry; makes one if needed. */
static bool have_room(void)
{
	uint32_t nr = atomic_load(&heap.unshared->nr_tables), filled, size;

	if (!nr)
		return grow(0);
	filled = atomic_load(&heap.unshared->filled[nr - 1]);
	size = table_mask(nr - 1) + 1;
	return filled < size - size / 4 || grow(nr) || filled < size - size / 16;
}

/*
 * Inserts a stack. Two threads may insert the same one with two counters: both count, and the
 * recorder adds them up.
 */
static void insert(uint64_t hash, uint32_t counter)
{
	uint32_t i = atomic_load(&heap.unshared->nr_tables) - 1;
	_Atomic uint64_t *free;
	uint64_t is;

	do {
		is = 0;
		if (probe(i, hash, &free))
			return;
	} while (!atomic_compare_exchange_strong(free, &is, entry_of(hash, counter)));
	atomic_fetch_add(&heap.unshared->filled[i], 1);
}

static __attribute__((noinline)) uint32_t find_older(uint64_t hash)
{
	uint32_t i = atomic_load(&heap.unshared->nr_tables), counter;
	_Atomic uint64_t *free;

	while (i-- > 0) {
		counter = probe(i, hash, &free);
		if (!counter)
			continue;
		if (have_room())
			insert(hash, counter);
		return counter;
	}
	return 0;
}

/* Announces a call of find(). */
static inline void expect(uint64_t hash)
{
	uint32_t nr = atomic_load_explicit(&heap.unshared->nr_tables, memory_order_acquire);
	_Atomic uint64_t *table;

	if (unlikely(!nr))
		return;
	table = atomic_load_explicit(&heap.unshared->tables[nr - 1], memory_order_acquire);
	__builtin_prefetch(&table[hash & table_mask(nr - 1)]);
}

static inline uint32_t find(uint64_t hash)
{
	uint32_t nr = atomic_load_explicit(&heap.unshared->nr_tables, memory_order_acquire);
	_Atomic uint64_t *free;
	uint32_t counter = likely(nr) ? probe(nr - 1, hash, &free) : 0;

	return likely(counter) ? counter : find_older(hash);
}

/* Takes a new counter. Returns 0 if there is no memory. */
static uint32_t take_counter(void)
{
	uint32_t unit = atomic_load(&heap.unshared->counts);
	struct heap_counters *more;

	while (heap_counter_index(unit) < HEAP_COUNTERS)
		if (atomic_compare_exchange_weak(&heap.unshared->counts, &unit, unit + 1))
			return unit;
	more = heap_reserve(HEAP_COUNTS_BYTES, HEAP_COUNTS_BYTES);
	if (!more)
		return 0;
	heap_publish(&more->record, HEAP_COUNTS, HEAP_COUNTS_BYTES);
	unit = ((uint8_t *)more->counter - (uint8_t *)heap.image) / HEAP_UNIT;
	atomic_store(&heap.unshared->counts, unit + 1);
	return unit;
}

/* Writes the thread's name now and then, if threads are told apart. */
static void publish_thread(void)
{
	char comm[REC_COMM] = "";
	struct heap_thread *t;

	if (!heap.per_thread || heap.sandboxed || local.news++ % 64)
		return;
	t = heap_reserve(sizeof(*t), HEAP_UNIT);
	if (!t)
		return;
	sys2(SYS_prctl, PR_GET_NAME, comm);
	t->tid = local.tid;
	memcpy(t->comm, comm, sizeof(comm));
	heap_publish(&t->record, HEAP_THREAD, sizeof(*t));
}

/**
 * struct stack - a stack that was captured
 * @pcs: its entries.
 * @sps: the stack pointer of each; only if Python is known.
 * @marks: SHSTK_MARK_* of each.
 * @max: entries for which there is room.
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @folded: entries stand for others, which were left out.
 * @frames: what the interpreter ran; nothing if entries were left out.
 */
struct stack {
	uint64_t *pcs;
	uint64_t *sps;
	uint8_t *marks;
	unsigned int max;
	unsigned int nr;
	uint16_t end;
	bool folded;
	struct python_size frames;
};

/* Returns the bytes of what the interpreter ran. */
static uint64_t frames_bytes(const struct stack *s)
{
	return s->frames.frames ? s->nr * sizeof(*s->sps) + sizeof(struct language_moment) +
					  (s->frames.marks + s->frames.frames) *
						  sizeof(struct language_entry) :
				  0;
}

/*
 * Writes the entries of a stack, and what the interpreter ran. Others can write there, too: nothing is
 * read back.
 */
static void write_stack(const struct stack *s, struct heap_trace *t)
{
	struct language_moment *moment = (struct language_moment *)&t->pcs[2 * s->nr];
	const uint64_t frames = frames_bytes(s);

	t->nr = s->nr;
	t->frames = frames;
	memcpy(t->pcs, s->pcs, s->nr * sizeof(*s->pcs));
	memcpy((uint8_t *)&t->pcs[s->nr] + frames, s->marks, s->nr);
	if (!frames)
		return;
	memcpy(&t->pcs[s->nr], s->sps, s->nr * sizeof(*s->sps));
	python_write(s->frames, moment);
	moment->pc = s->pcs[0];
	moment->sp = s->sps[0];
}

static uint32_t add(uint64_t hash, const struct stack *s)
{
	uint32_t maps = maps_number(s->pcs, s->nr), counter;
	const uint64_t size = heap_trace_size(s->nr, frames_bytes(s));
	struct heap_trace *t;

	publish_thread();
	if (!have_room())
		return 0;
	counter = take_counter();
	t = counter ? heap_reserve(size, HEAP_UNIT) : NULL;
	if (!t)
		return 0;
	atomic_store_explicit(&counter_at(counter)->peak_no,
			      HEAP_PEAK(atomic_load(&heap.image->peak_state)),
			      memory_order_relaxed);
	counter_at(counter)->check = hash;
	t->counter = counter;
	t->maps = maps;
	t->tid = heap.per_thread ? local.tid : 0;
	t->end = s->end;
	t->folded = s->folded;
	write_stack(s, t);
	heap_publish(&t->record, HEAP_TRACE, size);
	insert(hash, counter);
	return counter;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Returns whether the interpreter's frames are read. In a signal handler they may be anything. */
static inline bool has_frames(const struct shstk_hook *hook)
{
	return unlikely(python_known) && !hook->crossed;
}

/*
 * Captures a stack. Whether a thread's first one goes through a signal frame is not told; that of the
 * next one is.
 */
static inline int capture(struct shstk_hook *hook, uint64_t *pcs, unsigned int max)
{
	int n = shstk_hook_capture(hook, pcs, max, NULL);

	if (unlikely(python_known) && n >= 0 && hook->crossed)
		n = shstk_hook_capture(hook, pcs, max, NULL);
	return n;
}

/*
 * Returns the hash of a stack whose entries have an identity. It depends on more: the same trace may
 * be of another thread, or of other code at the same addresses.
 */
static inline uint64_t hash_from(uint64_t id, const void *leaf)
{
	uint64_t seed = (uint64_t)atomic_load_explicit(&heap.salt, memory_order_relaxed) << 32;

	if (unlikely(heap.per_thread || !*heap.single)) {
		if (!local.tid)
			local.tid = heap_tid();
		seed |= heap.per_thread ? local.tid : local.tid % STRIPES;
	}
	if (unlikely(seed || leaf))
		id ^= mix(seed ^ 0x9e3779b97f4a7c15ULL, (uintptr_t)leaf ^ 0xa0761d6478bd642fULL);
	return likely(id) ? id : 1;
}

/* Returns the hash of a stack that was captured, and of the functions of Python in it. */
static inline uint64_t hash_of(const struct shstk_hook *hook, const void *leaf)
{
	return hash_from(has_frames(hook) ? hook->id ^ python_sum() : hook->id, leaf);
}

/*
 * Captures a stack again, with marks, shortens it if it has more entries than @most, and adds it.
 * Marks, and stack pointers for what the interpreter ran, are needed only for new stacks. @s has room
 * for them.
 */
static uint32_t take_new(struct shstk_hook *hook, const void *leaf, uint64_t hash, struct stack *s,
			 unsigned int most)
{
	struct shstk_opts opts = { .size = sizeof(opts) };
	unsigned int first = !!leaf;
	int n;

	opts.marks = s->marks + first;
	if (has_frames(hook)) {
		s->frames = python_measure();
		opts.sps = s->sps + first;
		opts.sources = SHSTK_USE_WALK;
	}
	n = shstk_hook_capture(hook, s->pcs + first, s->max - first, &opts);
	if (n < 0)
		return 0;
	s->nr = n;
	s->end = hook->end;
	if (s->nr > most - first)
		s->folded = repeats_fit(s->pcs + first, opts.marks, &s->nr, most - first, &s->end);
	if (leaf) {
		s->pcs[0] = (uintptr_t)leaf;
		s->sps[0] = hook->sp;
		s->marks[0] = SHSTK_MARK_PC;
	}
	s->nr += first;
	if (!s->nr || s->folded)
		s->frames = (struct python_size){ 0 };
	return add(hash, s);
}

static __attribute__((noinline)) uint32_t take_short(struct shstk_hook *hook, const void *leaf,
						     uint64_t hash, unsigned int max)
{
	uint64_t pcs[SHORT_DEPTH], sps[SHORT_DEPTH];
	uint8_t marks[SHORT_DEPTH];
	struct stack s = { .pcs = pcs, .sps = sps, .marks = marks, .max = max };

	return take_new(hook, leaf, hash, &s, max);
}

/* Returns a stack that the buffer has room for. */
static struct stack stack_in(const struct deep_buffer *b)
{
	return (struct stack){ .pcs = b->pcs, .sps = b->sps, .marks = b->marks, .max = b->room };
}

/*
 * Finds the counter of a stack of more entries than are kept, of which the buffer has @n. Stacks
 * that differ only by the depth of a recursion have one counter, which is found by the hash of what
 * remains. To shorten a stack takes long, so some are remembered by the hash of all their entries.
 */
static uint32_t take_folded(const struct deep_buffer *b, struct shstk_hook *hook, const void *leaf,
			    unsigned int n)
{
	const uint64_t all = hash_from(hook->id, leaf);
	struct known_stack *known = &b->known[all % POOL_KNOWN];
	struct stack s = stack_in(b);
	uint16_t end = hook->end;
	uint32_t counter;
	uint64_t hash;

	if (known->hash == all)
		return known->counter;
	repeats_fit(b->pcs, b->marks, &n, heap.max_depth - !!leaf, &end);
	hash = hash_from(shstk_trace_id(b->pcs, n), leaf);
	counter = find(hash);
	if (!counter)
		counter = take_new(hook, leaf, hash, &s, heap.max_depth);
	if (counter)
		*known = (struct known_stack){ all, counter };
	return counter;
}

/* Finds the counter of a stack that a buffer has room for, and that needs not be shortened. */
static uint32_t take_whole(const struct deep_buffer *b, struct shstk_hook *hook, const void *leaf)
{
	const uint64_t hash = hash_of(hook, leaf);
	struct stack s = stack_in(b);
	uint32_t counter = find(hash);

	return counter ? counter : take_new(hook, leaf, hash, &s, heap.max_depth);
}

static __attribute__((noinline)) uint32_t take_deep(struct shstk_hook *hook, const void *leaf)
{
	struct deep_buffer b;
	uint32_t counter = 0;
	int n;

	if (!pool_take(&b))
		return 0;
	n = capture(hook, b.pcs, b.room);
	local.deep = n > SHORT_DEPTH;
	if (n > (int)heap.max_depth)
		counter = take_folded(&b, hook, leaf, n);
	else if (n >= 0)
		counter = take_whole(&b, hook, leaf);
	pool_give(&b);
	return counter;
}

static inline unsigned int short_depth(void)
{
	return heap.max_depth < SHORT_DEPTH ? heap.max_depth : SHORT_DEPTH;
}

void trace_begin(struct event *e, const void *leaf)
{
	unsigned int max = short_depth();
	uint64_t pcs[SHORT_DEPTH];

	e->hash = 0;
	e->trace = 0;
	if (unlikely(local.deep)) {
		e->trace = take_deep(&e->hook, leaf);
		return;
	}
	if (unlikely(capture(&e->hook, pcs, max) < 0))
		return;
	if (unlikely(e->hook.end == SHSTK_END_CAPACITY && max < heap.max_depth)) {
		e->trace = take_deep(&e->hook, leaf);
		return;
	}
	e->hash = hash_of(&e->hook, leaf);
	if (e->hash == local.hash)
		e->trace = local.trace;
	else
		expect(e->hash);
}

uint32_t trace_end(struct event *e, const void *leaf)
{
	uint32_t counter = e->trace;

	if (counter || unlikely(!e->hash))
		return counter;
	counter = find(e->hash);
	if (unlikely(!counter))
		counter = take_short(&e->hook, leaf, e->hash, short_depth());
	if (likely(counter)) {
		local.hash = e->hash;
		local.trace = counter;
	}
	return counter;
}

/*
 * Adds @n to a counter and returns the sum. It is atomic only if there are several threads: the
 * difference is a third of the cost.
 */
static inline uint64_t increase(_Atomic uint64_t *counter, uint64_t n)
{
	if (likely(*heap.single)) {
		n += atomic_load_explicit(counter, memory_order_relaxed);
		atomic_store_explicit(counter, n, memory_order_relaxed);
		return n;
	}
	return atomic_fetch_add_explicit(counter, n, memory_order_relaxed) + n;
}

/*
 * Changes the bytes in use. Threads would compete for one counter. So each thread adds to one of several
 * shards, which are added to the common counter when they have become large.
 *
 * Where many bytes are in use, all shards together may hold back a thousandth of them, and the peak is that
 * exact. Where few are, it is exact: shards hold back no more than is missing to a new peak, and nothing if that
 * is little. So threads whose memory comes and goes below the peak seldom use the common counter: that of
 * "allocate threads" on two CPUs took a third of what was added to the program (bench.rst).
 */
#define SHARD_PART 16 /* a shard may hold 1 / (1 << SHARD_PART) of the bytes in use */
#define SHARD_LEAST 64 /* that is used if it is so many bytes */
#define SHARD_BELOW 512 /* bytes that a shard may hold below the peak */

_Static_assert(SHARDS <= 1 << (SHARD_PART - 10), "a thousandth");
_Static_assert(SHARDS <= 64, "a bit for each");

/* Returns which part of @now bytes in use a shard may hold back in any case. */
static inline int64_t shard_part(int64_t now)
{
	return now > 0 ? now >> SHARD_PART : 0;
}

/* Returns whether a new peak is so far from @now bytes that each shard may hold back SHARD_BELOW of them. */
static inline bool is_far_below(int64_t now, uint64_t held)
{
	const int64_t missing = atomic_load_explicit(&heap.image->peak, memory_order_relaxed) - now;

	/* Counting is a call where the compiler may not use the instruction for it. */
	if (likely(missing > (SHARDS + 1) * SHARD_BELOW))
		return true;
	/* One more than have something now, as this thread's may become one of them. */
	return missing > (__builtin_popcountll(held) + 1) * SHARD_BELOW;
}

/* Returns how many bytes a shard may hold back while @now bytes are known to be in use; 0: none. */
static inline int64_t shard_room(int64_t now, uint64_t held)
{
	const int64_t part = shard_part(now);

	if (part < SHARD_BELOW && is_far_below(now, held))
		return SHARD_BELOW;
	return part < SHARD_LEAST ? 0 : part;
}

/*
 * Returns whether what shards hold back, @held of them, may be more than it may while @now bytes are in use:
 * what they got where a new peak was far away is still there when it is near.
 */
static inline bool hold_too_much(int64_t now, uint64_t held)
{
	return held && shard_part(now) < SHARD_BELOW && !is_far_below(now, held);
}

/* Returns what the shards hold back, which then hold nothing. */
static int64_t take_held(void)
{
	uint64_t held = atomic_exchange(&heap.unshared->held, 0);
	int64_t ret = 0;

	for (; held; held &= held - 1)
		ret += atomic_exchange(&heap.unshared->shards[__builtin_ctzll(held)].bytes, 0);
	return ret;
}

/* Adds to the common counter, and returns the sum. */
static int64_t add_live(int64_t by)
{
	return atomic_fetch_add(&heap.image->live, by) + by;
}

/*
 * Adds what the shards hold back if it is too much. Returns the bytes in use, @now before that. Who changes the
 * common counter comes here after that, and whose shard begins to hold something after it has set its bit: so
 * of two who do it at the same time, one sees what the other did.
 */
static int64_t settle(int64_t now)
{
	while (unlikely(hold_too_much(now, atomic_load(&heap.unshared->held))))
		now = add_live(take_held());
	return now;
}

/* Does what change_live() does where there are several threads. */
static __attribute__((noinline)) int64_t change_shared(int64_t by)
{
	const uint32_t i = local.tid % SHARDS;
	_Atomic int64_t *shard = &heap.unshared->shards[i].bytes;
	int64_t now = atomic_load_explicit(&heap.image->live, memory_order_relaxed), room;

	room = shard_room(now, atomic_load_explicit(&heap.unshared->held, memory_order_relaxed));
	if (!room)
		return settle(add_live(by));
	by += atomic_fetch_add(shard, by);
	if (by <= -room || by >= room)
		return settle(add_live(atomic_exchange(shard, 0)));
	/* take_held() clears the bit before it takes what the shard has: so it took it, or the bit is seen as cleared. */
	if (likely(atomic_load(&heap.unshared->held) >> i & 1))
		return now;
	atomic_fetch_or(&heap.unshared->held, 1ull << i);
	return room == SHARD_BELOW ? settle(atomic_load(&heap.image->live)) : now;
}

/* Changes the bytes in use by @by. Returns what is known of them then. */
static inline int64_t change_live(int64_t by)
{
	int64_t now;

	if (unlikely(!*heap.single))
		return change_shared(by);
	now = atomic_load_explicit(&heap.image->live, memory_order_relaxed) + by;
	atomic_store_explicit(&heap.image->live, now, memory_order_relaxed);
	return now;
}

/*
 * Changes *@at from *@was to @to. Returns whether it was *@was, which otherwise becomes what it is. Like increase(), it
 * is atomic only if there are several threads.
 */
static inline bool replace(_Atomic uint32_t *at, uint32_t *was, uint32_t to)
{
	if (unlikely(!*heap.single))
		return atomic_compare_exchange_strong(at, was, to);
	atomic_store_explicit(at, to, memory_order_relaxed);
	return true;
}

/*
 * Saves the values at the last peak, before the first change after it. They are read before another
 * thread can see them as saved and change the counter.
 */
static inline void keep_peak(struct heap_counter *t)
{
	uint32_t state = atomic_load_explicit(&heap.image->peak_state, memory_order_relaxed);
	uint32_t was = atomic_load_explicit(&t->peak_no, memory_order_relaxed);
	uint64_t objects, bytes;

	if (likely(was == HEAP_PEAK(state)))
		return;
	objects = t->objects - t->freed;
	bytes = t->bytes - t->freed_bytes;
	if (!replace(&t->peak_no, &was, HEAP_PEAK(state)))
		return;
	atomic_store_explicit(&t->peak_objects, objects, memory_order_relaxed);
	atomic_store_explicit(&t->peak_bytes, bytes, memory_order_relaxed);
}

/* Lets the largest number of bytes in use be at least @live. Returns whether it was less. */
static inline bool raise_largest(int64_t live)
{
	_Atomic int64_t *peak = &heap.image->peak;
	int64_t was = atomic_load_explicit(peak, memory_order_relaxed);

	if (likely(*heap.single) && live > was) {
		atomic_store_explicit(peak, live, memory_order_relaxed);
		return true;
	}
	while (live > was)
		if (atomic_compare_exchange_weak_explicit(peak, &was, live, memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

/* Raises the peak if @live, the bytes in use, is the largest value so far. */
static inline void raise_peak(int64_t live, uint64_t ticks)
{
	_Atomic uint32_t *state = &heap.image->peak_state;
	uint32_t was;

	if (!raise_largest(live))
		return;
	was = atomic_load_explicit(state, memory_order_relaxed);
	while (!(was & HEAP_RISING) && !replace(state, &was, was | HEAP_RISING))
		;
	atomic_store_explicit(&heap.image->peak_time, ticks, memory_order_relaxed);
}

/* Ends the current peak, because the bytes in use are about to become less. */
static inline void end_peak(void)
{
	_Atomic uint32_t *state = &heap.image->peak_state;
	uint32_t was = atomic_load_explicit(state, memory_order_relaxed);

	while (was & HEAP_RISING && !replace(state, &was, was + 1))
		;
}

void trace_alloc(uint32_t trace, uint64_t size, uint64_t ticks)
{
	struct heap_counter *t = counter_at(trace);
	uint64_t bytes, objects = random_weight(size, &bytes);

	keep_peak(t);
	increase(&t->objects, objects);
	increase(&t->bytes, bytes);
	raise_peak(change_live(bytes), ticks);
}

void trace_shrink(uint32_t trace, uint64_t size)
{
	struct heap_counter *t = counter_at(trace);

	end_peak();
	keep_peak(t);
	increase(&t->freed_bytes, size);
	change_live(-(int64_t)size);
}

static inline _Atomic uint64_t *temporary_of(uint32_t counter)
{
	uint32_t i = heap_counter_index(counter);
	struct heap_counters *c = (struct heap_counters *)counter_at(counter - 1 - i);

	return &c->temporary[i];
}

void trace_free(const struct block *b, bool temporary)
{
	struct heap_counter *t = counter_at(b->trace);
	uint64_t bytes, objects = random_weight(b->size, &bytes);
	uint64_t age = ((ticks_now() >> 6) - b->time) & 0xffffffffffffULL;

	end_peak();
	keep_peak(t);
	increase(&t->freed, objects);
	increase(&t->freed_bytes, bytes);
	/* An age may be negative if the clocks of CPUs differ. */
	if (age < 1ull << 47)
		increase(&t->lifetime, heap.sample ? age * objects / HEAP_ONE : age);
	if (temporary)
		increase(temporary_of(b->trace), objects);
	change_live(-(int64_t)bytes);
}
