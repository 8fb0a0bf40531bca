// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * modmap_jit.c - unwind information of code that is made at run time; see modmap_jit.h.
 *
 * A JIT gives the .eh_frame of its code to the C++ runtime by __register_frame(), and may give it
 * to this library in the same way. What the runtime has is not looked up, because it has no
 * interface that a signal handler may call: libgcc's, up to version 12, takes a lock and sorts in
 * memory from malloc().
 *
 * Sections are copied, because a JIT frees its own section right after it has deregistered it,
 * while a capture may still be reading.
 */
#include <errno.h>

#include "native.h"
#include "modmap_jit.h"
#include "rulecache.h"
#include "modmap.h"

#define REGISTERED 16384

/* The largest section that is accepted; no JIT registers more at once. */
#define SECTION_MAX (256u << 20)

struct modmap_jit modmap_jit;

static struct slot {
	struct range range;
	const void *key; /* address of the registered section */
	struct module *m;
} slots[REGISTERED];

struct module *modmap_jit_search(uint64_t pc)
{
	unsigned int i, n = load_acquire(&modmap_jit.n);

	for (i = 0; i < n; i++) {
		struct module *m;

		if (pc - load_relaxed(&slots[i].range.lo) >=
		    load_relaxed(&slots[i].range.hi) - load_relaxed(&slots[i].range.lo))
			continue;
		m = load_acquire(&slots[i].m);
		if (m && range_has(&m->range, pc) && module_rule(m, pc, true) != RULE_NONE)
			return m;
	}
	return NULL;
}

/*
 * Returns the number of bytes up to the entry of length 0 that ends the section, or 0 if there is
 * no such entry.
 */
static size_t section_size(const uint8_t *p)
{
	size_t size = 0;
	uint64_t len;

	while (size < SECTION_MAX) {
		uint32_t len32;

		memcpy(&len32, p + size, sizeof(len32));
		if (!len32)
			return size;
		size += sizeof(len32);
		len = len32;
		if (len32 == UINT32_MAX) {
			memcpy(&len, p + size, sizeof(len));
			size += sizeof(len);
		}
		if (len >= SECTION_MAX)
			return 0;
		size += len;
	}
	return 0;
}

static bool insert(struct module *m, const void *key)
{
	unsigned int i, n;

	for (i = 0; i < REGISTERED; i++) {
		struct module *none = NULL;

		if (load_relaxed(&slots[i].m) ||
		    !__atomic_compare_exchange_n(&slots[i].m, &none, m, false, __ATOMIC_RELEASE,
						 __ATOMIC_RELAXED))
			continue;
		store_relaxed(&slots[i].key, key);
		store_relaxed(&slots[i].range.lo, m->range.lo);
		store_relaxed(&slots[i].range.hi, m->range.hi);
		n = load_relaxed(&modmap_jit.n);
		while (n <= i && !__atomic_compare_exchange_n(&modmap_jit.n, &n, i + 1, true,
							      __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		return true;
	}
	return false;
}

SHSTK_API int shstk_register_frame(const void *eh_frame)
{
	struct module *m;
	int saved = errno;
	size_t size;
	int err;

	size = eh_frame ? section_size(eh_frame) : 0;
	if (!size)
		return -EINVAL;
	err = module_from_frames(&m, &NATIVE_MACHINE, eh_frame, size);
	if (!err && !insert(m, eh_frame)) {
		module_free(m);
		err = -ENOSPC;
	}
	/* Frames of this code that were guessed so far have a rule now. */
	if (!err)
		rulecache_flush();
	errno = saved;
	return err;
}

SHSTK_API int shstk_deregister_frame(const void *eh_frame)
{
	unsigned int i, n = load_acquire(&modmap_jit.n);

	for (i = 0; i < n; i++) {
		struct module *m = load_acquire(&slots[i].m);

		if (!m || load_relaxed(&slots[i].key) != eh_frame)
			continue;
		store_relaxed(&slots[i].key, NULL);
		if (!__atomic_compare_exchange_n(&slots[i].m, &m, NULL, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		rulecache_flush();
		modmap_retire(m);
		modmap_reclaim();
		return 0;
	}
	return -ENOENT;
}

void modmap_jit_stats(struct shstk_stats *stats)
{
	unsigned int i, n = load_acquire(&modmap_jit.n);

	for (i = 0; i < n; i++)
		module_count(load_acquire(&slots[i].m), stats);
}
