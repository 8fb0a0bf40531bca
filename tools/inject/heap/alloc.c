// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc.c - hooks of the allocation functions.
 *
 * Each calls the next function of its name: libc's, or that of an allocator that the program is
 * linked with or that is preloaded behind the agent. operator new and delete of the C++ libraries
 * call these hooks as well; their frame is removed from the stacks when they are read.
 *
 * Before the next functions are known, dlsym() itself may allocate: it gets memory of a small pool
 * that is never freed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"
#include "python.h"

__thread struct heap_local local;

/* libc's function that starts a program. */
typedef int (*main_fn)(int argc, char **argv, char **envp);
int __libc_start_main(main_fn main, int argc, char **argv, void (*init)(void), void (*fini)(void),
		      void (*loader_fini)(void), void *stack_end);

/* The next functions; before they are known, the first_*() functions below. */
struct next {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
};

#define FIRST(name, params) static void *first_##name params

FIRST(malloc, (size_t size));
FIRST(calloc, (size_t nr, size_t size));
FIRST(realloc, (void *p, size_t size));
FIRST(aligned_alloc, (size_t align, size_t size));
FIRST(memalign, (size_t align, size_t size));
FIRST(valloc, (size_t size));
FIRST(pvalloc, (size_t size));
static void first_free(void *p);

static struct next next = {
	.malloc = first_malloc,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.free = first_free,
	.aligned_alloc = first_aligned_alloc,
	.memalign = first_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
};

#define RESOLVE(name) (*(void **)&known.name = dlsym(RTLD_NEXT, #name))
/* Looks up a function that not every allocator has. */
#define RESOLVE_IF(name) (RESOLVE(name) ? (void)0 : (void)(known.name = first_##name))

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

static inline bool is_known(void)
{
	return next.malloc != first_malloc;
}

/*
 * Looks up the next functions. Meanwhile, allocations come from the pool. Returns whether they are
 * known.
 */
static __attribute__((noinline, cold)) bool resolve(void)
{
	static __thread bool resolving __attribute__((tls_model("initial-exec")));
	struct next known;
	int saved = errno;

	if (is_known())
		return true;
	if (resolving)
		return false;
	resolving = true;
	RESOLVE(malloc);
	RESOLVE(calloc);
	RESOLVE(realloc);
	RESOLVE(free);
	RESOLVE(posix_memalign);
	RESOLVE_IF(aligned_alloc);
	RESOLVE_IF(memalign);
	RESOLVE_IF(valloc);
	RESOLVE_IF(pvalloc);
	if (known.malloc)
		next = known;
	resolving = false;
	errno = saved;
	return known.malloc;
}

#define READY() (likely(is_known()) || resolve())

void alloc_resolve(void)
{
	resolve();
}

FIRST(malloc, (size_t size))
{
	return resolve() ? next.malloc(size) : pool_alloc(size);
}

FIRST(calloc, (size_t nr, size_t size))
{
	return resolve() ? next.calloc(nr, size) : pool_alloc(nr * size);
}

FIRST(realloc, (void *p, size_t size))
{
	return resolve() ? next.realloc(p, size) : NULL;
}

static void first_free(void *p)
{
	if (resolve())
		next.free(p);
}

#define FIRST_ALIGNED(name, params, args)                   \
	FIRST(name, params)                                 \
	{                                                   \
		if (resolve() && next.name != first_##name) \
			return next.name args;              \
		errno = ENOMEM;                             \
		return NULL;                                \
	}

FIRST_ALIGNED(aligned_alloc, (size_t align, size_t size), (align, size))
FIRST_ALIGNED(memalign, (size_t align, size_t size), (align, size))
FIRST_ALIGNED(valloc, (size_t size), (size))
FIRST_ALIGNED(pvalloc, (size_t size), (size))

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
 * Finds out whether the program itself has a malloc(), which is called instead of the agent's. Its
 * address does not tell, because in a program at a fixed address it is that of a jump to the first
 * malloc(). So malloc() is called: the agent's would change @left.
 */
static void find_foreign_malloc(void)
{
	void *(*allocate)(size_t) = dlsym(RTLD_DEFAULT, "malloc");
	void (*release)(void *) = dlsym(RTLD_DEFAULT, "free");
	uint64_t left = local.left;

	if (!is_on() || !allocate || !release)
		return;
	local.left = HEAP_FAR_AWAY;
	release(allocate(1));
	heap.image->foreign = heap.foreign = local.left == HEAP_FAR_AWAY;
	local.left = left;
}

static main_fn program_main;

/* Looks for Python. What the C library allocates for that is not the program's. */
static void find_python(void)
{
	local.busy = true;
	python_find();
	local.busy = false;
	if (is_on())
		python_begin();
	objects_begin();
}

/* Starts the program by a tail call, so that stacks look as they do without the agent. */
static int start_program(int argc, char **argv, char **envp)
{
	find_foreign_malloc();
	find_python();
	return program_main(argc, argv, envp);
}

/*
 * The program's malloc() may work only after its constructors, as those of sanitizers do. So it is
 * called right before main().
 */
HOOK_API int __libc_start_main(main_fn main, int argc, char **argv, void (*init)(void),
			       void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	static __typeof__(&__libc_start_main) next_start;

	*(void **)&next_start = dlsym(RTLD_NEXT, "__libc_start_main");
	if (heap.image) {
		program_main = main;
		main = start_program;
	}
	return next_start(main, argc, argv, init, fini, loader_fini, stack_end);
}

void alloc_watch(void)
{
	live_prepare(pool, sizeof(pool));
}

static struct {
	uintptr_t start, end;
} allocator;

/*
 * A callback of dl_iterate_phdr(): finds the object that has the code of the allocator's malloc().
 */
static int find_allocator(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t fn = (uintptr_t)next.malloc;

	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_LOAD || fn - start >= h->p_memsz)
			continue;
		allocator.start = start;
		allocator.end = start + h->p_memsz;
		return 1;
	}
	return 0;
}

bool alloc_is(uintptr_t pc)
{
	return pc - allocator.start < allocator.end - allocator.start;
}

/* Blocks of glibc are at least 32 bytes apart; for other allocators 8 bytes are assumed. */
void alloc_prepare(void)
{
	bool libc = alloc_has((void *)sbrk);

	heap.granule = libc ? 5 : 3;
	if (!libc)
		dl_iterate_phdr(find_allocator, NULL);
}

/* Returns whether this allocation of @size bytes is sampled, where not all are recorded. */
static __attribute__((noinline)) bool is_sampled(uint64_t size)
{
	struct heap_local *l = &local;

	if (!l->random) {
		l->random = (ticks_now() ^ (uint64_t)l->tid << 40 ^ (uintptr_t)l) | 1;
		l->left = random_distance();
		if (!wanted(size))
			return false;
	}
	l->left = random_distance();
	return true;
}

/*
 * Called if all allocations are recorded, the thread is about to be sampled, or does not know yet
 * when it is. The stack is captured before the block is allocated: then data is fetched from memory
 * while the allocator works.
 */
__attribute__((noinline)) bool alloc_begin(struct event *e, uint64_t size)
{
	struct heap_local *l = &local;

	if (unlikely(l->busy))
		return false;
	if (unlikely(!is_on() || atomic_load_explicit(&heap.header->stop, memory_order_relaxed))) {
		/* This is before the agent is attached: look again next time. */
		l->left = heap.unshared ? HEAP_FAR_AWAY : 0;
		return false;
	}
	if (unlikely(!l->tid))
		l->tid = heap_tid();
	if (unlikely(heap.sample)) {
		if (!is_sampled(size))
			return false;
	} else {
		l->left = 0;
	}
	l->busy = true;
	trace_begin(e, NULL);
	l->busy = false;
	return true;
}

__attribute__((noinline)) void *alloc_end(struct event *e, void *p, uint64_t size)
{
	struct block b = { .size = size };
	uint64_t ticks;

	local.busy = true;
	live_expect(p);
	b.trace = trace_end(e, NULL);
	if (likely(b.trace)) {
		ticks = ticks_now();
		b.time = ticks >> 6;
		/* This comes before the block is counted: nobody can free it yet. */
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

/* Frees a block that may be recorded or may be of the pool. */
static __attribute__((noinline)) void free_known(void *p)
{
	struct block b;
	bool had;

	if (unlikely(in_pool(p)))
		return;
	/* This comes first: once the block is freed, another thread may get the same address. */
	had = live_take(p, &b);
	if (had)
		trace_expect(b.trace);
	next.free(p);
	if (had)
		alloc_forget(p, &b);
}

HOOK_API void free(void *p)
{
	if (live_may_have(p))
		free_known(p);
	else
		next.free(p);
}

#define ALLOCATES(name, size, params, args)         \
	ALLOC_JUMP void *name##_wanted params       \
	{                                           \
		ALLOC_RECORD(size, next.name args); \
	}                                           \
	HOOK_API void *name params                  \
	{                                           \
		if (wanted(size))                   \
			return name##_wanted args;  \
		return next.name args;              \
	}

ALLOCATES(malloc, size, (size_t size), (size))
ALLOCATES(calloc, nr *size, (size_t nr, size_t size), (nr, size))

/* Returns an ordinary block of @size bytes with the content of @p, a block of the pool. */
static void *leave_pool(const void *p, size_t size)
{
	size_t old = *(const size_t *)((const uint8_t *)p - 16);
	void *q = READY() ? next.malloc(size) : pool_alloc(size);

	if (q)
		memcpy(q, p, old < size ? old : size);
	return q;
}

ALLOC_JUMP void *resize_known(void *p, size_t size, bool take)
{
	if (unlikely(in_pool(p) || !READY()))
		return p ? leave_pool(p, size) : pool_alloc(size);
	ALLOC_RESIZE(p, size, take, next.realloc(p, size));
}

HOOK_API void *realloc(void *p, size_t size)
{
	bool take = wanted(size);

	if (unlikely(take || live_may_have(p)))
		return resize_known(p, size, take);
	return next.realloc(p, size);
}

HOOK_API void *reallocarray(void *p, size_t nr, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize_known(p, bytes, wanted(bytes));
}

HOOK_API int posix_memalign(void **ret, size_t align, size_t size)
{
	struct event e;
	bool take;
	int err;

	if (!READY() || !next.posix_memalign)
		return ENOMEM;
	take = wanted(size);
	if (take) {
		e.hook = SHSTK_HOOK_HERE;
		take = alloc_begin(&e, size);
	}
	err = next.posix_memalign(ret, align, size);
	if (take && !err && *ret)
		alloc_end(&e, *ret, size);
	return err;
}

ALLOCATES(aligned_alloc, size, (size_t align, size_t size), (align, size))
ALLOCATES(memalign, size, (size_t align, size_t size), (align, size))
ALLOCATES(valloc, size, (size_t size), (size))
ALLOCATES(pvalloc, size, (size_t size), (size))
