// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * map.c - hooks of mmap() and similar functions. Mappings are recorded if that is wanted
 * (--heap-mmap). Otherwise they are summed up, so that the profile can say how much it does not
 * show: allocators of interpreters take their memory that way.
 *
 * The library in this object calls these functions too: for it they make the system call and no
 * more. A mapping of the program has the function that made it as its innermost entry, because
 * memory of an allocator would otherwise look like a block of its caller.
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

/* Records a mapping with its stack. Reservations without access are not recorded as memory. */
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

/* Forgets what was mapped there. Returns whether something that counts was. */
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

/* Notes addresses that are reserved for later use. */
static void reserve(long at, uint64_t size)
{
	local.busy = true;
	range_reserve(at, whole_pages(size));
	local.busy = false;
}

/*
 * Returns whether a mapping is memory that no malloc() reports. Memory that an allocator maps for
 * its blocks is not, as the blocks are recorded, and neither is a mapping of a file.
 */
static bool is_apart(int prot, int flags, uintptr_t caller)
{
	return prot & PROT_WRITE && flags & MAP_ANONYMOUS && !alloc_is(caller);
}

HOOK_API void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	long ret = sys6(SYS_mmap, (long)at, size, prot, flags, fd, offset);

	if ((ret >= 0 || ret < -4095) && mappings_seen()) {
		if (!heap.with_mmap &&
		    is_apart(prot, flags, (uintptr_t)__builtin_return_address(0)))
			sum_up(ret, size);
		else if (heap.with_mmap && prot & PROT_WRITE)
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

/*
 * Counts reserved memory that is now used as if it were mapped now, by the caller that @hook
 * describes.
 */
static void use_reserved(uint64_t at, uint64_t size, struct shstk_hook hook)
{
	struct event e = { .hook = hook };
	uint32_t trace = 0;

	local.busy = true;
	if (range_has(at, size, true)) {
		if (heap.with_mmap) {
			trace_begin(&e, (void *)mprotect);
			trace = trace_end(&e, (void *)mprotect);
		}
		if (trace || !heap.with_mmap)
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

	/*
	 * This is done before others can use the addresses, but not if the kernel will refuse the
	 * call.
	 */
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

		if (heap.with_mmap)
			record_map((void *)mremap, ret, size, SHSTK_HOOK_HERE);
		else if (had)
			sum_up(ret, size);
	}
	return result(ret);
}
