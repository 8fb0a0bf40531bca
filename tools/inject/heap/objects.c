// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * objects.c - the objects of Python (--heap-python).
 *
 * Python has an allocator of its own for blocks up to 512 bytes, which takes larger ones from malloc(). It
 * lets itself be called by way of functions that a program sets (PyMem_SetAllocator(3)), as tracemalloc
 * does. They are set before main(), when there is no block yet.
 *
 * What such a function calls belongs to it: Python's allocator calls mmap() for its own blocks, and
 * malloc() for large ones. None of that is recorded beside the object.
 */
#include <stdlib.h>
#include <string.h>

#include "../common/python.h"
#include "heap.h"
#include "python.h"

#ifdef PYTHON_IS_READ
enum { MEM = 1, OBJ, DOMAINS }; /* PyMemAllocatorDomain; raw memory is that of malloc() */

/* PyMemAllocatorEx */
struct allocator {
	void *ctx;
	void *(*malloc)(void *ctx, size_t size);
	void *(*calloc)(void *ctx, size_t nr, size_t size);
	void *(*realloc)(void *ctx, void *p, size_t size);
	void (*free)(void *ctx, void *p);
};

static struct allocator next[DOMAINS];

/* ---- What is called inside is not recorded ---- */

/* What a thread was about before it called Python's allocator. */
struct outside {
	uint64_t left;
	bool busy;
};

static inline struct outside go_inside(void)
{
	struct outside o = { local.left, local.busy };

	local.left = HEAP_FAR_AWAY;
	local.busy = true;
	return o;
}

static inline void go_outside(const struct outside *o)
{
	local.left = o->left;
	local.busy = o->busy;
}

static inline void *pass_malloc(const struct allocator *a, size_t size)
{
	const struct outside o = go_inside();
	void *p = a->malloc(a->ctx, size);

	go_outside(&o);
	return p;
}

static inline void *pass_calloc(const struct allocator *a, size_t nr, size_t size)
{
	const struct outside o = go_inside();
	void *p = a->calloc(a->ctx, nr, size);

	go_outside(&o);
	return p;
}

static inline void *pass_realloc(const struct allocator *a, void *p, size_t size)
{
	const struct outside o = go_inside();
	void *q = a->realloc(a->ctx, p, size);

	go_outside(&o);
	return q;
}

static inline void pass_free(const struct allocator *a, void *p)
{
	const struct outside o = go_inside();

	a->free(a->ctx, p);
	go_outside(&o);
}

/* ---- The functions that Python calls ---- */

/* Tells the recorder that Python's objects are recorded, of this process and of children that it forks. */
static inline void note_recorded(void)
{
	if (is_on())
		heap.image->objects = heap.objects = true;
}

ALLOC_JUMP void *malloc_wanted(const struct allocator *a, size_t size)
{
	ALLOC_RECORD(size, pass_malloc(a, size));
}

static void *object_malloc(void *a, size_t size)
{
	/* Python calls this function, also if no object is a sample. */
	if (unlikely(!heap.objects))
		note_recorded();
	if (wanted(size))
		return malloc_wanted(a, size);
	return pass_malloc(a, size);
}

ALLOC_JUMP void *calloc_wanted(const struct allocator *a, size_t nr, size_t size)
{
	ALLOC_RECORD(nr * size, pass_calloc(a, nr, size));
}

static void *object_calloc(void *a, size_t nr, size_t size)
{
	if (wanted(nr * size))
		return calloc_wanted(a, nr, size);
	return pass_calloc(a, nr, size);
}

ALLOC_JUMP void *realloc_known(const struct allocator *a, void *p, size_t size, bool take)
{
	ALLOC_RESIZE(p, size, take, pass_realloc(a, p, size));
}

static void *object_realloc(void *a, void *p, size_t size)
{
	bool take = wanted(size);

	if (take || live_may_have(p))
		return realloc_known(a, p, size, take);
	return pass_realloc(a, p, size);
}

static void object_free(void *a, void *p)
{
	struct block b;
	bool had = live_may_have(p) && live_take(p, &b);

	if (had)
		trace_expect(b.trace);
	pass_free(a, p);
	if (had)
		alloc_forget(p, &b);
}

/* ---- Those that Python calls only if it ignores its variables (-E, -I) ---- */

/*
 * Tells the recorder that objects are missing: Python does not take all from malloc(), as its variable
 * says. If it did, it would have replaced these functions.
 */
static void note_missing(void)
{
	if (is_on())
		heap.image->objects = heap.objects = false;
}

static void *missed_malloc(void *a, size_t size)
{
	const struct allocator *own = a;

	if (unlikely(heap.objects))
		note_missing();
	return own->malloc(own->ctx, size);
}

static void *missed_calloc(void *a, size_t nr, size_t size)
{
	const struct allocator *own = a;

	return own->calloc(own->ctx, nr, size);
}

static void *missed_realloc(void *a, void *p, size_t size)
{
	const struct allocator *own = a;

	return own->realloc(own->ctx, p, size);
}

static void missed_free(void *a, void *p)
{
	const struct allocator *own = a;

	own->free(own->ctx, p);
}

/* ---- Setting them ---- */

typedef void get_fn(int domain, struct allocator *ret);
typedef void set_fn(int domain, const struct allocator *to);

static const struct allocator recorded = {
	.malloc = object_malloc,
	.calloc = object_calloc,
	.realloc = object_realloc,
	.free = object_free,
};
static const struct allocator missed = {
	.malloc = missed_malloc,
	.calloc = missed_calloc,
	.realloc = missed_realloc,
	.free = missed_free,
};

static void set(get_fn *get, set_fn *set_to, const struct allocator *to)
{
	struct allocator own = *to;

	for (int domain = MEM; domain < DOMAINS; domain++) {
		get(domain, &next[domain]);
		own.ctx = &next[domain];
		set_to(domain, &own);
	}
}

/* Returns whether the user has Python take all from malloc(), which is recorded anyway. */
static bool takes_all_from_malloc(void)
{
	const char *text = getenv("PYTHONMALLOC");

	return text && !strncmp(text, "malloc", strlen("malloc"));
}

void objects_begin(void)
{
	bool no_own;
	get_fn *get;
	set_fn *set_to;

	if (!python_known || !is_on())
		return;
	get = (get_fn *)python_address_of("PyMem_GetAllocator");
	set_to = (set_fn *)python_address_of("PyMem_SetAllocator");
	no_own = takes_all_from_malloc();
	if (no_own)
		note_recorded();
	if (get && set_to && (heap.with_python || no_own))
		set(get, set_to, heap.with_python ? &recorded : &missed);
}
#endif
