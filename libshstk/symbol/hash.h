/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* hash.h - how hash tables are made here: uthash, with a faster hash and without exit(). */
#ifndef SHSTK_SYMBOL_HASH_H
#define SHSTK_SYMBOL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Returns the hash of a key, in place of uthash's own function. That one takes three instructions a
 * byte, and was a tenth of the time of adding samples and naming them; this one takes one
 * instruction a byte. The hash begins with an address of this program, which differs from run to
 * run, so that nobody can choose names that collide.
 */
static inline unsigned int shstk_hash(const void *key, size_t size)
{
	static const char seed;
	const uint64_t factor = 0x9e3779b97f4a7c15;
	uint64_t hash = (uintptr_t)&seed ^ size, word;
	const uint8_t *p = key;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = (hash ^ word) * factor;
		hash ^= hash >> 32;
	}
	for (word = 0; size; size--)
		word = word << 8 | *p++;
	hash = (hash ^ word) * factor;
	return hash >> 32;
}

/*
 * uthash calls exit() when memory runs out unless told otherwise. With this macro it leaves the
 * element out, and sets the element's hh.tbl to NULL.
 */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, size, value) ((value) = shstk_hash(key, size))
#include <uthash.h>

/*
 * Number of elements in a chain that makes a table grow. It is less than uthash's own 10, because
 * each element is a cache line that has to be fetched.
 */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 6U

#endif
