/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap.h - private declarations of libshstk-heap.so, which `shstk record --heap` preloads.
 *
 *   main.c    finds the recorder's memory; handles start, fork, what is mapped
 *   alloc.c   hooks of the allocation functions
 *   trace.c   stacks and their counters
 *   live.c    which block belongs to which stack
 *   range.c   which mapping of mmap() belongs to which stack
 *   map.c     hooks of mmap() and similar functions
 *   thread.c  more stack for threads
 *   new.c     operator new and delete, where they do not use malloc()
 *   deep.c    libraries that prefer their own functions (RTLD_DEEPBIND)
 *   random.c  which allocations are sampled, and what each stands for
 *   python.c  the functions of Python that allocate
 *   objects.c the objects of Python
 *
 * All of it runs inside malloc(), in any thread, at any time: it takes no lock that it could wait
 * for, and calls no function of libc that allocates, so it never calls itself.
 *
 * State that a child of fork() must not share (counters, tables) is in memory that the kernel
 * clears or leaves out there (MADV_WIPEONFORK, MADV_DONTFORK). So the tables are empty and nothing
 * is recorded until the child has a region of its own; children made by clone(2) never get one. A
 * child of vfork() uses its parent's heap, and is recorded with it.
 */
#ifndef HEAP_HEAP_H
#define HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region.h"
#include "sys.h"
#include "hook.h"

#define HOOK_API __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define TOP_SHIFT 34 /* bytes that an entry of the top table covers */
#define LEAF_SHIFT 22 /* bytes that a leaf covers */
#define TOP_ENTRIES (1u << (48 - TOP_SHIFT))
#define TABLES 12
#define HEAP_MAX_PAGE 65536ull /* the largest size of small pages */
#define HEAP_LARGE_PAGE (1ull << 21)
#define SHARDS 64
#define FUNCTIONS 4096 /* of Python, about which the recorder need not be told again */
#define LIVE_PAGE_SHIFT 12
#define POOL 64 /* deep captures at a time */
#define POOL_KNOWN 32 /* shortened stacks that are remembered for each of these */

struct live_slot;

/* A deep stack that was shortened: the hash of all its entries, and its counter. */
struct known_stack {
	uint64_t hash;
	uint32_t counter;
};

/**
 * struct unshared - the state that is empty in a child
 * @on: allocations are recorded.
 * @top: top table of live.c.
 * @nr_leaves: number of leaves made.
 * @tables: stacks by hash; find() of trace.c uses them.
 * @nr_tables: number of tables in @tables.
 * @filled: number of entries in each table.
 * @counts: unit of the next free counter; 0: there is none.
 * @shards: bytes in use that change_live() has not added to the common counter yet.
 * @held: a bit for each shard that may hold some.
 * @pool_used: bit n is set if buffer n of trace.c is in use.
 * @known: stacks that were shortened in each of these buffers, for who uses it.
 * @range_lock: guards the list of range.c.
 * @ranges: number of ranges in that list.
 * @functions: functions of Python that the recorder was told of, by their numbers; some of them.
 */
struct unshared {
	_Atomic uint32_t on;
	struct live_slot *_Atomic *_Atomic top[TOP_ENTRIES];
	_Atomic uint32_t nr_leaves;
	_Atomic uint64_t *_Atomic tables[TABLES];
	_Atomic uint32_t nr_tables;
	_Atomic uint32_t filled[TABLES];
	_Atomic uint32_t counts;
	struct shard {
		_Alignas(64) _Atomic int64_t bytes;
	} shards[SHARDS];
	_Alignas(64) _Atomic uint64_t held;
	_Atomic uint64_t pool_used;
	struct known_stack known[POOL][POOL_KNOWN];
	_Atomic int range_lock;
	uint32_t ranges;
	_Atomic uint64_t functions[FUNCTIONS];
};

/**
 * struct heap - the state of the agent
 * @unshared: the state that is empty in a child.
 * @header: first page of the recorder's memory.
 * @image: region of this process.
 * @pid: process that has @image.
 * @size: bytes of @image that are mapped.
 * @used: bytes of @image given to records. Any program that is recorded can write to the region, so
 *	values that bound what is written are not read from there.
 * @sample: mean number of bytes between two samples, as in the header; 0: every allocation is
 *	recorded.
 * @max_depth: most entries of a stack, as in the header.
 * @deepest: most entries of a stack that is shortened to so many; at least @max_depth.
 * @with_mmap: as in the header.
 * @with_python: as in the header.
 * @per_thread: as in the header.
 * @granule: blocks are at least 1 << granule bytes apart.
 * @salt: changes when code was unmapped.
 * @foreign: the program has a malloc() of its own.
 * @objects: Python's objects are recorded, as in the region; a child that is forked has what Python was told.
 * @locked: the program has locked its memory.
 * @sandboxed: the program is about to forbid itself system calls.
 * @filtered: the program was about to install a filter of system calls.
 * @ticks_end: time when the program forbade itself the time stamp counter, in ticks; 0: it did not.
 * @single: libc's flag that there is only one thread; if libc has none, it points to a 0.
 */
struct heap {
	struct unshared *unshared;
	struct heap_header *header;
	struct heap_image *image;
	uint32_t pid;
	uint64_t size;
	_Atomic uint64_t used;
	uint64_t sample;
	uint32_t max_depth;
	uint32_t deepest;
	bool with_mmap;
	bool with_python;
	bool per_thread;
	unsigned int granule;
	_Atomic uint32_t salt;
	bool foreign;
	bool objects;
	bool locked;
	bool sandboxed;
	bool filtered;
	uint64_t ticks_end;
	const char *single;
};

extern struct heap heap __attribute__((visibility("hidden")));

/* Returns heap_ticks(). The time stands still once the program has forbidden itself the counter. */
static inline uint64_t ticks_now(void)
{
	return likely(!heap.ticks_end) ? heap_ticks() : heap.ticks_end;
}

/*
 * Returns the thread's ID. In a sandbox, where the kernel may not be asked, it returns that of the
 * first thread.
 */
static inline uint32_t heap_tid(void)
{
	return heap.sandboxed ? heap.pid : (uint32_t)sys0(SYS_gettid);
}

/**
 * struct heap_local - the state of a thread
 * @left: bytes to allocate before the next sample; 0: each allocation is one.
 * @leaf: the leaf used last: its page number, above the number of the addresses that it is for.
 *	Both are in one word because a signal handler may use it at any time.
 * @last: the block allocated last.
 * @hash: hash of the last stack.
 * @trace: counter of the last stack.
 * @random: state of the generator.
 * @tid: thread ID, 0: not known yet.
 * @news: number of new traces.
 * @busy: the thread is inside the agent: allocations of a signal handler are not recorded.
 * @deep: the last stack was a deep one.
 */
struct heap_local {
	uint64_t left;
	uint64_t leaf;
	const void *last;
	uint64_t hash;
	uint32_t trace;
	uint64_t random;
	uint32_t tid;
	uint32_t news;
	bool busy;
	bool deep;
};

extern __thread struct heap_local local
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/**
 * struct block - what is known about a block
 * @trace: counter of its stack, in units from the region's start; 0: none.
 * @time: low 48 bits of the time when it was allocated, in ticks / 64.
 * @size: bytes that were asked for.
 */
struct block {
	uint32_t trace;
	uint64_t time;
	uint64_t size;
};

static inline bool is_on(void)
{
	return heap.unshared && atomic_load_explicit(&heap.unshared->on, memory_order_relaxed);
}

static inline struct heap_counter *counter_at(uint32_t unit)
{
	return (struct heap_counter *)((uint8_t *)heap.image + (uint64_t)unit * HEAP_UNIT);
}

/* main.c */
void heap_attach(const char *env);
/*
 * Reserves room for a record, at a multiple of @align, which is a power of two and at least
 * HEAP_UNIT. Returns NULL if the region is full.
 */
void *heap_reserve(uint64_t bytes, uint64_t align);
/*
 * Maps zeroed memory of this process alone; a child does not have it. @large: it uses large pages,
 * if the kernel has some. Returns NULL if there is no memory.
 */
void *heap_map(uint64_t bytes, bool large);
/* Unmaps @bytes that heap_map() returned, if system calls may be made. */
void heap_unmap(void *p, uint64_t bytes);
void heap_publish(struct heap_record *record, uint32_t kind, uint64_t bytes);
uint32_t maps_number(const uint64_t *pcs, unsigned int nr);
void maps_begin(void);
void note_lost(void);

#define HEAP_FAR_AWAY (1ll << 62) /* more bytes than are ever allocated */

/* alloc.c */
void alloc_resolve(void);
void alloc_prepare(void);
/* Prepares for recording, with no blocks known. */
void alloc_watch(void);
/* Returns whether @pc is in the code of the allocator, if that is not libc. */
bool alloc_is(uintptr_t pc);
/* Returns whether the function at @fn is part of the allocator whose malloc() is called next. */
bool alloc_has(const void *fn);

/**
 * struct event - an allocation, from before it is made
 * @hook: where the program called a function of the agent.
 * @hash: hash of the stack; 0: it could not be captured.
 * @trace: counter of the stack; 0: not known yet.
 */
struct event {
	struct shstk_hook hook;
	uint64_t hash;
	uint32_t trace;
};

/*
 * Begins an allocation of @size bytes, which @e->hook describes. Returns false if it is not to be
 * recorded.
 */
bool alloc_begin(struct event *e, uint64_t size);
/* Records the allocation, which returned block @p. Returns @p. */
void *alloc_end(struct event *e, void *p, uint64_t size);

/*
 * The body of a hook that records. The hook jumps to it through an ALLOC_JUMP function, because
 * recording needs a frame, and the hook itself mostly does not if allocations are sampled. It is a
 * jump so that the capture begins at the program's call.
 */
#define ALLOC_RECORD(size, call)                                \
	do {                                                    \
		struct event e = { .hook = SHSTK_HOOK_HERE };   \
		bool begun = alloc_begin(&e, size);             \
		void *p = call;                                 \
                                                                \
		return begun && p ? alloc_end(&e, p, size) : p; \
	} while (0)

/* The same for a block @p that becomes one of @size bytes. @take: it may have to be recorded. */
#define ALLOC_RESIZE(p, size, take, call)                       \
	do {                                                    \
		struct event e;                                 \
		struct block b;                                 \
		bool had = live_take(p, &b), begun = false;     \
		void *q;                                        \
                                                                \
		if (take) {                                     \
			e.hook = SHSTK_HOOK_HERE;               \
			begun = alloc_begin(&e, size);          \
		}                                               \
		q = call;                                       \
		if (had && !q && (size))                        \
			live_put(p, &b);                        \
		else if (had)                                   \
			alloc_forget(p, &b);                    \
		return begun && q ? alloc_end(&e, q, size) : q; \
	} while (0)

#ifdef __OPTIMIZE__
#define ALLOC_JUMP static __attribute__((noinline))
#else /* without optimization calls would not be jumps */
#define ALLOC_JUMP static inline __attribute__((always_inline))
#endif

/*
 * trace.c. trace_begin() captures the stack, and trace_end() finds its counter, or returns 0 if
 * there is none. @leaf, if not NULL, is the function that was called at @e->hook; it becomes the
 * innermost entry.
 */
void trace_begin(struct event *e, const void *leaf);
uint32_t trace_end(struct event *e, const void *leaf);
void trace_alloc(uint32_t trace, uint64_t size, uint64_t ticks);
void trace_free(const struct block *b, bool temporary);
/* Prepares for a sandbox: maps the memory that deep stacks need. */
void trace_prepare(void);
/* Counts @size bytes as freed, because part of a mapping is unmapped. */
void trace_shrink(uint32_t trace, uint64_t size);

/*
 * live.c. live_expect() announces a call of live_put() or live_take(); live_prepare() begins with
 * no blocks known.
 */
void live_prepare(const void *pool, uint64_t bytes);
void live_expect(const void *p);
bool live_put(const void *p, const struct block *b);
bool live_take(const void *p, struct block *ret);

/**
 * struct live_filter - tells whether a block is worth looking for
 * @at: for each page, by the low bits of its number, the number of blocks in the tables; it stays
 *	at the largest number. For the agent's own pool it is not 0 either.
 * @mask: these bits of the page number; 0 if all blocks are worth looking for.
 */
struct live_filter {
	uint8_t *at;
	uint32_t mask;
};

extern struct live_filter live_filter __attribute__((visibility("hidden")));

static inline bool live_may_have(const void *p)
{
	uint32_t page = (uintptr_t)p >> LIVE_PAGE_SHIFT;

	/* Other threads may change it meanwhile, but not from or to 0 as long as @p is there. */
	return live_filter.at[page & live_filter.mask];
}

/* range.c. range_prepare() prepares for a sandbox, as trace_prepare() does. */
void range_prepare(void);
/* Adds a range. With @trace 0 it has no stack, and is only summed up. */
void range_put(uint64_t start, uint64_t size, uint32_t trace, uint64_t time);
/* Forgets ranges in these bytes and counts them as freed. Returns whether there were some. */
bool range_cut(uint64_t start, uint64_t size);
/* Adds a range that is mapped without access: it counts nothing. */
void range_reserve(uint64_t start, uint64_t size);
/* Returns whether these bytes have a range that is only @reserved, or one that is not. */
bool range_has(uint64_t start, uint64_t size, bool reserved);
/* Turns what is in these bytes into ranges that are only @reserved, or into ranges that count. */
void range_turn(uint64_t start, uint64_t size, bool reserved, uint32_t trace, uint64_t time);

/*
 * deep.c: returns whether the loader would do the same if the agent, and not the object at @caller,
 * asked for the file.
 */
bool deep_is_same(const char *file, const void *caller);
/* Loads a file with @open, and makes it call the agent's functions where it would call libc's. */
void *deep_open(const char *file, int mode, void *(*open)(const char *, int));

/* random.c: the size of a block where allocations are sampled; at least a byte. */
#define SAMPLED_SIZE(size) ((size) + 1)

uint64_t random_distance(void);
uint64_t random_scale(uint64_t size, uint64_t *bytes);

/*
 * Returns how many objects a block stands for, in units of 1 / HEAP_ONE if allocations are sampled,
 * and stores how many *@bytes.
 */
static inline uint64_t random_weight(uint64_t size, uint64_t *bytes)
{
	if (unlikely(heap.sample))
		return random_scale(size, bytes);
	*bytes = size;
	return 1;
}

/*
 * Returns whether the next allocation may have to be recorded. To be called once for each. A size
 * may be any number, also one for which there is no memory: a size that is larger than @left does
 * not change @left.
 */
static inline bool wanted(uint64_t size)
{
	uint64_t left;

	if (__builtin_sub_overflow(local.left, SAMPLED_SIZE(size), &left))
		return true;
	local.left = left;
	return false;
}

/* Announces that the counter of a block will be needed soon. */
static inline void trace_expect(uint32_t trace)
{
	__builtin_prefetch(counter_at(trace), 1);
}

static inline void alloc_forget(const void *p, const struct block *b)
{
	bool busy = local.busy;

	local.busy = true;
	trace_free(b, local.last == p);
	local.busy = busy;
}

#endif
