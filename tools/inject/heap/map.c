// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * map.c - mmap() and its like: recorded where that is wanted (--heap-mmap), else summed up,
 * so that it can be said how much is not seen: allocators of interpreters take their memory so.
 *
 * The library in this object calls these too: it gets the system call and no
 * more. What the program maps shows the function that did as its innermost one,
 * as memory of an allocator would otherwise look like a block of its caller.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "heap.h"

static void *result(long ret)
{
	if (ret < 0 && ret >= -4095) {
		errno = -ret;
		return MAP_FAILED;
	}
	return (void *)ret;
}

static bool mappings_seen(void)
{
	return is_on() && !local.busy &&
	       !atomic_load_explicit(&heap.header->stop, memory_order_relaxed);
}

static uint64_t whole_pages(uint64_t size)
{
	return (size + 4095) & ~4095ull;
}

/* Reservations without access are no memory. */
static void record_map(const void *leaf, long at, uint64_t size, struct shstk_hook hook)
{
	struct event e = { .hook = hook };
	uint32_t trace;

	local.busy = true;
	trace_begin(&e, leaf);
	trace = trace_end(&e, leaf);
	if (trace)
		range_put(at, whole_pages(size), trace, ticks_now() >> 6);
	else
		note_lost();
	local.busy = false;
}

/* Returns whether something that counts was there. */
static bool forget_map(uint64_t at, uint64_t size)
{
	bool had;

	local.busy = true;
	had = range_has(at, whole_pages(size), false);
	range_cut(at, whole_pages(size));
	local.busy = false;
	return had;
}

static void sum_up(long at, uint64_t size)
{
	local.busy = true;
	range_put(at, whole_pages(size), 0, 0);
	local.busy = false;
}

/* Addresses that are kept for later. */
static void reserve(long at, uint64_t size)
{
	local.busy = true;
	range_reserve(at, whole_pages(size));
	local.busy = false;
}

/*
 * Is it memory that no malloc() tells of? What an allocator maps for its blocks, which are
 * recorded, is not; nor is what a file is mapped to.
 */
static bool is_apart(int prot, int flags, uintptr_t caller)
{
	return prot & PROT_WRITE && flags & MAP_ANONYMOUS && !alloc_is(caller);
}

HOOK_API void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	long ret = sys6(SYS_mmap, (long)at, size, prot, flags, fd, offset);

	if ((ret >= 0 || ret < -4095) && mappings_seen()) {
		if (!heap.header->with_mmap &&
		    is_apart(prot, flags, (uintptr_t)__builtin_return_address(0)))
			sum_up(ret, size);
		else if (heap.header->with_mmap && prot & PROT_WRITE)
			record_map((void *)mmap, ret, size, SHSTK_HOOK_HERE);
		else if (prot == PROT_NONE && flags & MAP_ANONYMOUS &&
			 !alloc_is((uintptr_t)__builtin_return_address(0)))
			reserve(ret, size);
		else if (flags & MAP_FIXED)
			forget_map(ret, size);
	}
	return result(ret);
}

HOOK_API void *mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

/* What was reserved is used: as if it were mapped now, by who called at @hook. */
static void use_reserved(uint64_t at, uint64_t size, struct shstk_hook hook)
{
	struct event e = { .hook = hook };
	uint32_t trace = 0;

	local.busy = true;
	if (range_has(at, size, true)) {
		if (heap.header->with_mmap) {
			trace_begin(&e, (void *)mprotect);
			trace = trace_end(&e, (void *)mprotect);
		}
		if (trace || !heap.header->with_mmap)
			range_turn(at, size, false, trace, ticks_now() >> 6);
		else
			note_lost();
	}
	local.busy = false;
}

static void give_reserved(uint64_t at, uint64_t size)
{
	local.busy = true;
	range_turn(at, size, true, 0, 0);
	local.busy = false;
}

HOOK_API int mprotect(void *at, size_t size, int prot)
{
	long ret = sys3(SYS_mprotect, (long)at, size, prot);

	if (ret) {
		errno = -ret;
		return -1;
	}
	if (prot & PROT_WRITE && mappings_seen())
		use_reserved((uintptr_t)at, whole_pages(size), SHSTK_HOOK_HERE);
	else if (prot == PROT_NONE && mappings_seen())
		give_reserved((uintptr_t)at, whole_pages(size));
	return 0;
}

HOOK_API int munmap(void *at, size_t size)
{
	long ret;

	/* Before it is free for others; not what the kernel refuses. */
	if (!((uintptr_t)at & 4095) && mappings_seen())
		forget_map((uintptr_t)at, size);
	ret = sys2(SYS_munmap, at, size);
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}

HOOK_API void *mremap(void *at, size_t old, size_t size, int flags, ...)
{
	void *to = NULL;
	long ret;

	if (flags & MREMAP_FIXED) {
		va_list ap;

		va_start(ap, flags);
		to = va_arg(ap, void *);
		va_end(ap);
	}
	ret = sys6(SYS_mremap, (long)at, old, size, flags, (long)to, 0);
	if ((ret >= 0 || ret < -4095) && mappings_seen()) {
		bool had = !(flags & MREMAP_DONTUNMAP) && forget_map((uintptr_t)at, old);

		if (heap.header->with_mmap)
			record_map((void *)mremap, ret, size, SHSTK_HOOK_HERE);
		else if (had)
			sum_up(ret, size);
	}
	return result(ret);
}
