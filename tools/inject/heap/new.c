// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * new.c - operator new and delete of C++, by their mangled names.
 *
 * Those of libstdc++ and libc++ call malloc() and free(), whose hooks record; here they are only
 * passed on. Allocators with operators of their own (jemalloc, mimalloc, tcmalloc) do not call
 * malloc(): their operators are recorded here.
 *
 * A program may load its first C++ library late, and privately: then the operators are looked up
 * there. Or a plugin has them linked into it, and only its own code finds them: then the operators
 * here use malloc(), as nearly all others do.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "heap.h"

static void *find(const char *name)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1",
						 "libc++.so.1" };
	void *fn = dlsym(RTLD_NEXT, name);

	for (unsigned int i = 0; !fn && i < 3; i++) {
		void *handle = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		if (handle)
			fn = dlsym(handle, name);
	}
	return fn;
}

/*
 * Returns the operator that @caller was linked with: it reports by an exception that there is no
 * memory.
 */
static void *of_caller(const char *name, const void *caller)
{
	void *handle = NULL, *fn = NULL;
	Dl_info info;

	if (dladdr(caller, &info))
		handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (handle) {
		fn = dlsym(handle, name);
		dlclose(handle);
	}
	if (!fn)
		abort();
	return fn;
}

/*
 * Operators for the case that nothing but the caller's object has some. They are jumped to, so that
 * they return to the program. Two of them have frames; their symbols are such that they are removed
 * from stacks as those of all operators are, also if the object is stripped.
 */
HOOK_API void *new_by_malloc(size_t size) __asm__("_Znwm_by_malloc");
HOOK_API void *new_aligned_by_malloc(size_t size,
				     size_t align) __asm__("_ZnwmSt11align_val_t_by_malloc");

static void *new_nothrow_by_malloc(size_t size, const void *tag)
{
	(void)tag;
	return malloc(size ? size : 1);
}

HOOK_API void *new_by_malloc(size_t size)
{
	void *p = malloc(size ? size : 1);
	void *(*fn)(size_t);

	if (p)
		return p;
	fn = of_caller("_Znwm", __builtin_return_address(0));
	return fn(size);
}

static inline void *new_aligned_nothrow_by_malloc(size_t size, size_t align, const void *tag)
{
	size_t whole = (size + !size + align - 1) & ~(align - 1);

	(void)tag;
	return whole < size ? NULL : aligned_alloc(align, whole);
}

HOOK_API void *new_aligned_by_malloc(size_t size, size_t align)
{
	void *p = new_aligned_nothrow_by_malloc(size, align, NULL);
	void *(*fn)(size_t, size_t);

	if (p)
		return p;
	fn = of_caller("_ZnwmSt11align_val_t", __builtin_return_address(0));
	return fn(size, align);
}

/**
 * struct op - an operator
 * @fn: the next function of its name.
 * @own: it belongs to an allocator and does not use malloc().
 */
struct op {
	void *_Atomic fn;
	_Atomic bool own;
};

static __attribute__((noinline)) void *look_up(struct op *op, const char *name, void *other)
{
	void *fn = find(name);

	if (!fn)
		fn = other;
	atomic_store_explicit(&op->own, alloc_has(fn), memory_order_relaxed);
	atomic_store_explicit(&op->fn, fn, memory_order_release);
	return fn;
}

/* Returns the next operator of that name, or @other if there is none. */
static inline void *next_op(struct op *op, const char *name, void *other)
{
	void *fn = atomic_load_explicit(&op->fn, memory_order_acquire);

	return likely(fn) ? fn : look_up(op, name, other);
}

/*
 * @other: used if there is no next operator. @pars: parameters after the size. @args: their names.
 */
#define NEW(name, other, pars, args)                                                             \
	ALLOC_JUMP void *name##_wanted(size_t size UNPACK pars, void *(*fn)(size_t UNPACK pars)) \
	{                                                                                        \
		ALLOC_RECORD(size, fn(size UNPACK args));                                        \
	}                                                                                        \
	HOOK_API void *name(size_t size UNPACK pars);                                            \
	HOOK_API void *name(size_t size UNPACK pars)                                             \
	{                                                                                        \
		static struct op op;                                                             \
		void *(*fn)(size_t UNPACK pars) = next_op(&op, #name, (void *)other);            \
                                                                                                 \
		if (op.own && wanted(size))                                                      \
			return name##_wanted(size UNPACK args, fn);                              \
		return fn(size UNPACK args);                                                     \
	}

#define DELETE(name, pars, args)                                                   \
	HOOK_API void name(void *p UNPACK pars);                                   \
	HOOK_API void name(void *p UNPACK pars)                                    \
	{                                                                          \
		static struct op op;                                               \
		void (*fn)(void *UNPACK pars) = next_op(&op, #name, (void *)free); \
		struct block b;                                                    \
                                                                                   \
		if (op.own && live_may_have(p) && live_take(p, &b))                \
			alloc_forget(p, &b);                                       \
		fn(p UNPACK args);                                                 \
	}

#define UNPACK(...) __VA_OPT__(, ) __VA_ARGS__

NEW(_Znwm, new_by_malloc, (), ())
NEW(_Znam, new_by_malloc, (), ())
NEW(_ZnwmRKSt9nothrow_t, new_nothrow_by_malloc, (const void *tag), (tag))
NEW(_ZnamRKSt9nothrow_t, new_nothrow_by_malloc, (const void *tag), (tag))
NEW(_ZnwmSt11align_val_t, new_aligned_by_malloc, (size_t align), (align))
NEW(_ZnamSt11align_val_t, new_aligned_by_malloc, (size_t align), (align))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, new_aligned_nothrow_by_malloc,
    (size_t align, const void *tag), (align, tag))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, new_aligned_nothrow_by_malloc,
    (size_t align, const void *tag), (align, tag))

DELETE(_ZdlPv, (), ())
DELETE(_ZdaPv, (), ())
DELETE(_ZdlPvm, (size_t size), (size))
DELETE(_ZdaPvm, (size_t size), (size))
DELETE(_ZdlPvRKSt9nothrow_t, (const void *tag), (tag))
DELETE(_ZdaPvRKSt9nothrow_t, (const void *tag), (tag))
DELETE(_ZdlPvSt11align_val_t, (size_t align), (align))
DELETE(_ZdaPvSt11align_val_t, (size_t align), (align))
DELETE(_ZdlPvmSt11align_val_t, (size_t size, size_t align), (size, align))
DELETE(_ZdaPvmSt11align_val_t, (size_t size, size_t align), (size, align))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (size_t align, const void *tag), (align, tag))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (size_t align, const void *tag), (align, tag))
