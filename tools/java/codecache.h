/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codecache.h - what HotSpot, the Java virtual machine, records about the code that it makes: where
 * each piece lies, the size of its frame, and its name. It is read from another process.
 */
#ifndef TOOLS_JAVA_CODECACHE_H
#define TOOLS_JAVA_CODECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/java/vmstructs.h"

/**
 * struct codeblob - a piece of code: a method, an adapter, the interpreter
 * @address: address of its description.
 * @start: address of its first instruction.
 * @end: first address after its code.
 * @ready: address of the first instruction with a complete frame.
 * @frame: distance from the stack pointer to the CFA, in bytes; 0: it differs.
 * @frameless: it has no frame at all.
 * @aligns: it aligns the stack pointer before it makes calls.
 * @method: address of the Method, or 0 if the code is no method.
 * @name: address of the name of the CodeBlob.
 */
struct codeblob {
	uint64_t address;
	uint64_t start;
	uint64_t end;
	uint64_t ready;
	uint32_t frame;
	bool frameless;
	bool aligns;
	uint64_t method;
	uint64_t name;
};

struct codecache;

/**
 * codecache_create() - begin with no heaps known
 * @vm: the tables; copied.
 *
 * Return: the cache, for codecache_destroy(); NULL if out of memory.
 */
struct codecache *codecache_create(const struct vmstructs *vm);
void codecache_destroy(struct codecache *cache);

/**
 * codecache_find() - find the piece of code that contains an address
 * @cache: the cache.
 * @pc: the address.
 * @ret: receives what HotSpot has recorded now. This may change at any time.
 *
 * Return: 0; -ENOENT if there is none; or the error of reading the process's memory.
 */
int codecache_find(struct codecache *cache, uint64_t pc, struct codeblob *ret);

/* Returns true if the address is in one of the heaps as they were last read. */
bool codecache_has(const struct codecache *cache, uint64_t pc);

/**
 * codecache_name() - get the name of a piece of code
 * @cache: the cache.
 * @blob: the piece of code.
 * @buf: receives the name: "java.lang.String.hashCode", or HotSpot's own name, in brackets, if it
 *	is no method.
 * @size: bytes of @buf.
 *
 * Return: true if the name could be read.
 */
bool codecache_name(const struct codecache *cache, const struct codeblob *blob, char *buf,
		    size_t size);

#endif
