/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap.h - private parts of libshstk-heap.so, preloaded by
 * `shstk record --heap`.
 *
 *   main.c    finds the recorder's memory; start, fork, what is mapped
 *   alloc.c   the allocation functions that stand in front of the program's
 *   trace.c   stacks and their counters
 *   live.c    which block belongs to which stack
 *   range.c   the same for mmap()
 *   map.c     mmap() and its like that stand in front of libc's
 *   thread.c  more stack for threads
 *   new.c     operator new and delete, where they do without malloc()
 *   deep.c    libraries that prefer their own functions (RTLD_DEEPBIND)
 *   random.c  which allocations are sampled, and what each stands for
 *
 * All of it runs inside malloc(), of any thread, at any time: it takes no lock
 * that it could wait for, calls nothing of libc that allocates, and never itself.
 *
 * What a child of fork() must not share (counters, tables) lies in memory that
 * the kernel empties or leaves out there (MADV_WIPEONFORK, MADV_DONTFORK): until
 * the child has a region of its own, and also in children made by clone(2) that
 * never get one, the tables are empty and nothing is recorded. A child of
 * vfork() uses its parent's heap, and is recorded with it.
 */
#ifndef HEAP_HEAP_H
#define HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#include "sys.h"
#include "hook.h"

#define HOOK_API __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define TOP_SHIFT 34 /* bytes that an entry of the top table covers */
#define LEAF_SHIFT 22 /* bytes that a leaf covers */
#define TOP_ENTRIES (1u << (48 - TOP_SHIFT))
#define TABLES 12
#define HEAP_MAX_PAGE 65536ull /* of small pages */
#define HEAP_LARGE_PAGE (1ull << 21)
#define SHARDS 64
#define LIVE_PAGE_SHIFT 12

struct slot;

/**
 * struct shared_none - what is empty in a child
 * @on: recording.
 * @top: top table of live.c.
 * @nr_leaves: number of leaves made.
 * @tables: stacks by hash; see find() of trace.c.
 * @nr_tables: their number.
 * @filled: entries of each.
 * @counts: the unit of the counter that is handed out next; 0: there is none.
 * @shards: see change_live().
 * @pool_used: bit n: buffer n of trace.c is in use.
 * @range_lock: guards range.c's list.
 * @ranges: number of its elements.
 */
struct shared_none {
	_Atomic uint32_t on;
	struct slot *_Atomic *_Atomic top[TOP_ENTRIES];
	_Atomic uint32_t nr_leaves;
	_Atomic uint64_t *_Atomic tables[TABLES];
	_Atomic uint32_t nr_tables;
	_Atomic uint32_t filled[TABLES];
	_Atomic uint32_t counts;
	struct shard {
		_Alignas(64) _Atomic int64_t bytes;
	} shards[SHARDS];
	_Atomic uint64_t pool_used;
	_Atomic int range_lock;
	uint32_t ranges;
};

/**
 * struct heap - the state of the agent
 * @own: see struct shared_none.
 * @header: the recorder's memory, first page.
 * @image: the region of this process.
 * @pid: the process that has it.
 * @size: bytes of it that are mapped,
 * @used: and those handed out to records. Any program that is recorded can write to the region:
 *	what bounds what is written there is not read from it.
 * @sample: as in the header.
 * @max_depth: as in the header.
 * @per_thread: as in the header.
 * @granule: blocks are at least 1 << granule bytes apart.
 * @salt: changes when code was unmapped.
 * @foreign: the program brings a malloc() of its own.
 * @locked: the program has locked its memory.
 * @sandboxed: the program is about to forbid itself system calls.
 * @filtered: it was about to install a filter of system calls.
 * @ticks_end: when the program forbade itself the time stamp counter; 0: it did not.
 * @single: where libc says that there is one thread, or 0: it does not.
 */
struct heap {
	struct shared_none *own;
	struct heap_header *header;
	struct heap_image *image;
	uint32_t pid;
	uint64_t size;
	_Atomic uint64_t used;
	uint64_t sample;
	uint32_t max_depth;
	bool per_thread;
	unsigned int granule;
	_Atomic uint32_t salt;
	bool foreign;
	bool locked;
	bool sandboxed;
	bool filtered;
	uint64_t ticks_end;
	const char *single;
};

extern struct heap heap __attribute__((visibility("hidden")));

/* heap_ticks(), which stand still once the program has forbidden itself the counter. */
static inline uint64_t ticks_now(void)
{
	return likely(!heap.ticks_end) ? heap_ticks() : heap.ticks_end;
}

/* The thread's ID; in a sandbox that of the first thread, as nothing may be asked for. */
static inline uint32_t heap_tid(void)
{
	return heap.sandboxed ? heap.pid : (uint32_t)sys0(SYS_gettid);
}

/**
 * struct local - the state of a thread
 * @left: bytes that are allocated before the next sample; 0: each is one.
 * @leaf: the leaf used last: its page number above the number of the addresses
 *	it is for. One word, as a signal handler may use it at any time.
 * @last: the block allocated last.
 * @hash: the stack met last.
 * @trace: its counter.
 * @random: state of the generator.
 * @tid: thread ID, 0: not known yet.
 * @news: traces that were new.
 * @busy: inside the agent: what a signal handler allocates is not recorded.
 * @deep: the last stack was a deep one.
 */
struct local {
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

extern __thread struct local local __attribute__((visibility("hidden"), tls_model("initial-exec")));

/**
 * struct block - what is known of a block
 * @trace: the counter of its stack, in units from the region's start; 0: none.
 * @time: ticks / 64 when it was allocated, the low 48 bits.
 * @size: bytes asked for.
 */
struct block {
	uint32_t trace;
	uint64_t time;
	uint64_t size;
};

static inline bool is_on(void)
{
	return heap.own && atomic_load_explicit(&heap.own->on, memory_order_relaxed);
}

static inline struct heap_counter *counter_at(uint32_t unit)
{
	return (struct heap_counter *)((uint8_t *)heap.image + (uint64_t)unit * HEAP_UNIT);
}

/* main.c */
void heap_attach(const char *env);
/* @align: a power of two, at least HEAP_UNIT. */
void *heap_reserve(uint64_t bytes, uint64_t align);
/*
 * Zeroed memory of this process alone; a child has nothing there. @large: in large
 * pages, if the kernel has some. NULL: there is none.
 */
void *heap_map(uint64_t bytes, bool large);
/* Gives @bytes back that heap_map() returned, where calls may be made. */
void heap_unmap(void *p, uint64_t bytes);
void heap_publish(struct heap_record *record, uint32_t kind, uint64_t bytes);
uint32_t maps_number(const uint64_t *pcs, unsigned int nr);
void maps_begin(void);
void note_lost(void);

/* alloc.c */
void alloc_resolve(void);
void alloc_prepare(void);
/* Recording begins, with nothing known. */
void alloc_watch(void);
/* Is @pc in the code of that allocator, if it is not libc? */
bool alloc_is(uintptr_t pc);
/* Is the function at @fn part of the allocator whose malloc() comes next? */
bool alloc_has(const void *fn);

/**
 * struct event - an allocation, from before it is made
 * @hook: where the program called a function of the agent.
 * @hash: of its stack; 0: it could not be taken.
 * @trace: its counter, 0: not known yet.
 */
struct event {
	struct shstk_hook hook;
	uint64_t hash;
	uint32_t trace;
};

/* @size bytes are about to be allocated, as @e->hook says. False: not to be recorded. */
bool alloc_begin(struct event *e, uint64_t size);
/* And they were: @p. Returns that. */
void *alloc_end(struct event *e, void *p, uint64_t size);

/*
 * The body of a function that stands in front of another one. It begins with an
 * ALLOC_JUMP, as what it records with has a frame, and most others need none where
 * allocations are sampled. Jumps, so that it finds the program's call.
 */
#define ALLOC_RECORD(size, call)                                \
	do {                                                    \
		struct event e = { .hook = SHSTK_HOOK_HERE };   \
		bool begun = alloc_begin(&e, size);             \
		void *p = call;                                 \
                                                                \
		return begun && p ? alloc_end(&e, p, size) : p; \
	} while (0)

#ifdef __OPTIMIZE__
#define ALLOC_JUMP static __attribute__((noinline))
#else /* calls would not be jumps */
#define ALLOC_JUMP static inline __attribute__((always_inline))
#endif

/*
 * trace.c, in two parts: the first takes the stack, the second finds its counter, 0 if
 * there is none. @leaf, if not NULL, is the function that was called at @e->hook; it is
 * shown as the innermost one.
 */
void trace_begin(struct event *e, const void *leaf);
uint32_t trace_end(struct event *e, const void *leaf);
void trace_alloc(uint32_t trace, uint64_t size, uint64_t ticks);
void trace_free(const struct block *b, bool temporary);
/* Before a sandbox: what deep stacks need is there. */
void trace_prepare(void);
/* Part of a mapping is freed, but not yet all of it. */
void trace_shrink(uint32_t trace, uint64_t size);

/*
 * live.c; live_expect() says that one of the others comes soon, live_prepare() that
 * nothing is known any more.
 */
void live_prepare(const void *pool, uint64_t bytes);
void live_expect(const void *p);
bool live_put(const void *p, const struct block *b);
bool live_take(const void *p, struct block *ret);

/**
 * struct live_filter - is a block worth looking for?
 * @at: for each page, by the low bits of its number, the blocks of the tables there; it
 *	stays at the highest number. Not 0 also for the agent's own pool.
 * @mask: those bits; none where all are worth it.
 */
struct live_filter {
	uint8_t *at;
	uint32_t mask;
};

extern struct live_filter live_filter __attribute__((visibility("hidden")));

static inline bool live_may_have(const void *p)
{
	uint32_t page = (uintptr_t)p >> LIVE_PAGE_SHIFT;

	/* Others may change it meanwhile, but not from or to 0 as long as @p is there. */
	return live_filter.at[page & live_filter.mask];
}

/* range.c; range_prepare() as trace_prepare() */
void range_prepare(void);
/* @trace: 0: it has none, and is only summed up. */
void range_put(uint64_t start, uint64_t size, uint32_t trace, uint64_t time);
/* Forgets what lies there; accounts it as freed. Returns whether there was something. */
bool range_cut(uint64_t start, uint64_t size);
/* Mapped without access: it counts nothing. */
void range_reserve(uint64_t start, uint64_t size);
/* Is there something that is only reserved, or something that is not? */
bool range_has(uint64_t start, uint64_t size, bool reserved);
/* What is there is only reserved now; or what was only reserved counts from now on. */
void range_turn(uint64_t start, uint64_t size, bool reserved, uint32_t trace, uint64_t time);

/* deep.c: would the loader do the same, if not the object at @caller but the agent asked for it? */
bool deep_is_same(const char *file, const void *caller);
/* Loads it by @open, and has it call the agent's functions, where it would libc's. */
void *deep_open(const char *file, int mode, void *(*open)(const char *, int));

/* random.c: what a block counts where samples are drawn; at least a byte. */
#define SAMPLED_SIZE(size) ((size) + 1)

uint64_t random_distance(void);
uint64_t random_scale(uint64_t size, uint64_t *bytes);

/* How many objects and bytes a block stands for; see HEAP_ONE. */
static inline uint64_t random_weight(uint64_t size, uint64_t *bytes)
{
	if (unlikely(heap.sample))
		return random_scale(size, bytes);
	*bytes = size;
	return 1;
}

/*
 * Is the allocation that comes next perhaps to be recorded? To be asked once. A size may be any
 * number, for which there is no memory: what is not less than @left changes nothing here.
 */
static inline bool wanted(uint64_t size)
{
	uint64_t left;

	if (__builtin_sub_overflow(local.left, SAMPLED_SIZE(size), &left))
		return true;
	local.left = left;
	return false;
}

/* The counter of a block will be needed soon. */
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
