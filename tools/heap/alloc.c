// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc.c - the allocation functions that the program gets to see.
 *
 * Each calls the next one of its name: libc's, or that of an allocator which
 * the program is linked with or which is preloaded behind the agent. operator
 * new and delete of the C++ libraries end here as well; their frame is taken off
 * the stacks when they are read.
 *
 * Before the next functions are known, dlsym() itself may allocate: it gets
 * memory of a small pool that is never given back.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"

#define FAR_AWAY (1ll << 62)	/* more bytes than are ever allocated */

__thread struct local local;

static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
} next;

#define RESOLVE(name) (*(void **)&next.name = dlsym(RTLD_NEXT, #name))

/* Blocks of the pool have their size in front. */
static _Alignas(16) uint8_t pool[65536];
static _Atomic uint32_t pool_used;

static void *pool_alloc(size_t size)
{
	uint32_t at;

	if (size > sizeof(pool) / 2)
		return NULL;
	at = atomic_fetch_add(&pool_used, (size + 31) & ~15u);
	if (at + size + 16 > sizeof(pool)) {
		atomic_fetch_sub(&pool_used, (size + 31) & ~15u);
		return NULL;
	}
	*(size_t *)(pool + at) = size;
	return pool + at + 16;
}

static inline bool in_pool(const void *p)
{
	return (uintptr_t)p - (uintptr_t)pool < sizeof(pool);
}

static __attribute__((noinline, cold)) bool resolve(void)
{
	static __thread bool resolving
		__attribute__((tls_model("initial-exec")));
	int saved = errno;

	if (resolving)
		return false;
	resolving = true;
	RESOLVE(calloc);
	RESOLVE(realloc);
	RESOLVE(free);
	RESOLVE(posix_memalign);
	RESOLVE(aligned_alloc);
	RESOLVE(memalign);
	RESOLVE(valloc);
	RESOLVE(pvalloc);
	/* Last: it says that all are known. */
	RESOLVE(malloc);
	resolving = false;
	errno = saved;
	return next.malloc;
}

void alloc_resolve(void)
{
	if (!next.malloc)
		resolve();
}

#define READY() (likely(next.malloc) || resolve())

static const void *object_of(const void *fn)
{
	Dl_info info;

	return dladdr(fn, &info) ? info.dli_fbase : NULL;
}

bool alloc_has(const void *fn)
{
	return object_of(fn) == object_of((void *)next.malloc);
}

/*
 * A malloc() in the program itself comes before the agent's. Its address does not
 * tell: in a program at a fixed place that is a jump to whatever comes first. So
 * it is called, and whoever passes here has changed @left.
 */
void alloc_check(void)
{
	void *(*allocate)(size_t) = dlsym(RTLD_DEFAULT, "malloc");
	void (*release)(void *) = dlsym(RTLD_DEFAULT, "free");

	if (!is_on() || !allocate || !release)
		return;
	local.left = FAR_AWAY;
	release(allocate(1));
	heap.image->foreign = local.left == FAR_AWAY;
	local.left = 0;
}

/* Blocks of glibc are at least 32 bytes apart; of others one knows less. */
void alloc_prepare(void)
{
	heap.granule = alloc_has((void *)sbrk) ? 5 : 3;
}

/*
 * The thread is about to be sampled, or does not know yet when. Returns whether
 * this allocation of @size bytes is to be recorded.
 */
__attribute__((noinline)) bool alloc_sampled(uint64_t size)
{
	struct local *l = &local;

	if (l->busy)
		return false;
	if (!is_on() || atomic_load_explicit(&heap.header->stop,
					     memory_order_relaxed)) {
		/* Before the agent is attached: look again next time. */
		l->left = heap.own ? FAR_AWAY : 0;
		return false;
	}
	if (!l->tid)
		l->tid = sys0(SYS_gettid);
	if (!heap.sample) {
		l->left = -1;
		return true;
	}
	if (!l->random) {
		l->random = (heap_ticks() ^ (uint64_t)l->tid << 40 ^
			     (uintptr_t)l) | 1;
		l->left = random_distance() - (int64_t)SAMPLED_SIZE(size);
		if (l->left >= 0)
			return false;
	}
	l->left = random_distance();
	return true;
}

__attribute__((noinline)) void *alloc_record(void *p, uint64_t size,
					     uint64_t ra, uint64_t sp,
					     uint64_t fp)
{
	struct shstk_hook hook = { .ra = ra, .sp = sp, .fp = fp };
	struct block b = { .size = size };
	uint64_t ticks;

	local.busy = true;
	live_expect(p);
	b.trace = trace_take(&hook, NULL);
	if (likely(b.trace)) {
		ticks = heap_ticks();
		b.time = ticks >> 6;
		/* Before it is counted: nobody can free it yet. */
		if (live_put(p, &b))
			trace_alloc(b.trace, size, ticks);
		else
			b.trace = 0;
	}
	if (unlikely(!b.trace))
		note_lost();
	local.last = p;
	local.busy = false;
	return p;
}

HOOK_API void free(void *p)
{
	struct block b;

	if (unlikely(in_pool(p)))
		return;
	if (live_take(p, &b))
		alloc_forget(p, &b);
	if (READY())
		next.free(p);
}

HOOK_API void *malloc(size_t size)
{
	void *p;

	if (!READY())
		return pool_alloc(size);
	if (!wanted(size))
		return next.malloc(size);
	p = next.malloc(size);
	return p ? ALLOC_RECORD(p, size) : NULL;
}

HOOK_API void *calloc(size_t nr, size_t size)
{
	void *p;

	if (!READY())	/* the pool is zero */
		return pool_alloc(nr * size);
	if (!wanted(nr * size))
		return next.calloc(nr, size);
	p = next.calloc(nr, size);
	return p ? ALLOC_RECORD(p, nr * size) : NULL;
}

/* A block of the pool goes on as an ordinary one. */
static void *leave_pool(const void *p, size_t size)
{
	size_t old = *(const size_t *)((const uint8_t *)p - 16);
	void *q = READY() ? next.malloc(size) : pool_alloc(size);

	if (q)
		memcpy(q, p, old < size ? old : size);
	return q;
}

static inline __attribute__((always_inline)) void *resize(void *p, size_t size)
{
	struct block b;
	bool had, take;
	void *q;

	if (unlikely(in_pool(p)) || !READY())
		return p ? leave_pool(p, size) : pool_alloc(size);
	/* Once it is freed, another thread may get the same address. */
	had = live_take(p, &b);
	take = wanted(size);
	q = next.realloc(p, size);
	if (had && !q && size)
		live_put(p, &b);
	else if (had)
		alloc_forget(q, &b);
	return take && q ? ALLOC_RECORD(q, size) : q;
}

HOOK_API void *realloc(void *p, size_t size)
{
	return resize(p, size);
}

HOOK_API void *reallocarray(void *p, size_t nr, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(p, bytes);
}

HOOK_API int posix_memalign(void **ret, size_t align, size_t size)
{
	int err;

	if (!READY() || !next.posix_memalign)
		return ENOMEM;
	if (!wanted(size))
		return next.posix_memalign(ret, align, size);
	err = next.posix_memalign(ret, align, size);
	if (!err && *ret)
		ALLOC_RECORD(*ret, size);
	return err;
}

/* The others that return the block; @size is the size among @params. */
#define ALLOCATES(name, params, args)                                          \
	HOOK_API void *name params                                             \
	{                                                                      \
		void *p;                                                       \
									       \
		if (!READY() || !next.name) {                                  \
			errno = ENOMEM;                                        \
			return NULL;                                           \
		}                                                              \
		if (!wanted(size))                                             \
			return next.name args;                                 \
		p = next.name args;                                            \
		return p ? ALLOC_RECORD(p, size) : NULL;                       \
	}

ALLOCATES(aligned_alloc, (size_t align, size_t size), (align, size))
ALLOCATES(memalign, (size_t align, size_t size), (align, size))
ALLOCATES(valloc, (size_t size), (size))
ALLOCATES(pvalloc, (size_t size), (size))
