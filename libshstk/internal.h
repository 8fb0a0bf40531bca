/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* internal.h - small helpers for all parts of the library. */
#ifndef SHSTK_INTERNAL_H
#define SHSTK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shstk.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ALIGN_UP(x, a) (((x) + (a)-1) & ~((uint64_t)(a)-1))

#define min(a, b)                       \
	({                              \
		__typeof__(a) _a = (a); \
		__typeof__(b) _b = (b); \
		_a < _b ? _a : _b;      \
	})
#define max(a, b)                       \
	({                              \
		__typeof__(a) _a = (a); \
		__typeof__(b) _b = (b); \
		_a > _b ? _a : _b;      \
	})

#define load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

/*
 * Keeps sanitizers from checking a function that reads the stack memory of other frames. A compiler
 * may still turn a loop in it into a call of a library function, which sanitizers check.
 */
#define no_sanitize __attribute__((no_sanitize("address", "thread", "undefined")))

/* Keeps a function from being inlined, so that its variables take stack only while it runs. */
#define noinline_for_stack __attribute__((noinline))

/* The type of a word of the stack, which may hold a value of any type. */
typedef uint64_t stack_word __attribute__((may_alias));

/* An address range: its first byte, and the first byte behind it. */
struct range {
	uint64_t lo;
	uint64_t hi;
};

static inline bool range_has(const struct range *r, uint64_t addr)
{
	return addr - r->lo < r->hi - r->lo;
}

/*
 * Copies the caller's options to @to, as far as its version of the struct goes. Returns false if
 * they are not valid, or do not allow @source (SHSTK_USE_*).
 */
static inline bool get_opts(struct shstk_opts *to, const struct shstk_opts *opts, uint32_t source)
{
	memset(to, 0, sizeof(*to));
	if (!opts)
		return true;
	if (opts->size < offsetof(struct shstk_opts, marks))
		return false;
	memcpy(to, opts, min((size_t)opts->size, sizeof(*to)));
	return !to->flags && (!to->sources || to->sources & source);
}

/* Copies @info to the caller's struct @to, as far as the caller's version of the struct goes. */
static inline void put_info(struct shstk_info *to, struct shstk_info info)
{
	info.size = to->size;
	if (likely(info.size == sizeof(info)))
		*to = info;
	else
		memcpy(to, &info, min(sizeof(info), (size_t)info.size));
}

#endif
