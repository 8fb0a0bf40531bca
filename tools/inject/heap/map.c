// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * map.c - mmap() and its like, where they are to be recorded (--heap-mmap).
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

static bool mappings_wanted(void)
{
	return is_on() && heap.header->with_mmap && !local.busy &&
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
		range_put(at, whole_pages(size), trace, heap_ticks() >> 6);
	else
		note_lost();
	local.busy = false;
}

static void forget_map(uint64_t at, uint64_t size)
{
	local.busy = true;
	range_cut(at, whole_pages(size));
	local.busy = false;
}

HOOK_API void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	long ret = sys6(SYS_mmap, (long)at, size, prot, flags, fd, offset);

	if ((ret >= 0 || ret < -4095) && mappings_wanted()) {
		if (prot & PROT_WRITE)
			record_map((void *)mmap, ret, size, SHSTK_HOOK_HERE);
		else if (flags & MAP_FIXED)
			forget_map(ret, size);
	}
	return result(ret);
}

HOOK_API void *mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

HOOK_API int munmap(void *at, size_t size)
{
	long ret;

	/* Before it is free for others; not what the kernel refuses. */
	if (!((uintptr_t)at & 4095) && mappings_wanted())
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
	if ((ret >= 0 || ret < -4095) && mappings_wanted()) {
		if (!(flags & MREMAP_DONTUNMAP))
			forget_map((uintptr_t)at, old);
		record_map((void *)mremap, ret, size, SHSTK_HOOK_HERE);
	}
	return result(ret);
}
