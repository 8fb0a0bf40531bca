/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codecache.h - what HotSpot, the Java virtual machine, has written down of the code that it
 * made: where each piece lies, how large its frame is, and its name. Read from outside.
 */
#ifndef TOOLS_JAVA_CODECACHE_H
#define TOOLS_JAVA_CODECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/java/vmstructs.h"

/**
 * struct codeblob - a piece of code: a method, an adapter, the interpreter
 * @start: its first instruction.
 * @end: behind its last one.
 * @ready: behind the instruction that completes the frame.
 * @frame: bytes from the stack pointer to behind the return address. 0: its frames differ.
 * @bare: it has no frame at all.
 * @aligns: it aligns the stack pointer before it calls.
 * @method: what the process has of its method, by address; 0: it is none, and
 * @name: the address of its name.
 */
struct codeblob {
	uint64_t start;
	uint64_t end;
	uint64_t ready;
	uint32_t frame;
	bool bare;
	bool aligns;
	uint64_t method;
	uint64_t name;
};

struct codecache;

/**
 * codecache_create() - begin with no heaps known
 * @vm: where members lie; copied.
 *
 * Return: the cache, for codecache_destroy(); NULL when memory runs out.
 */
struct codecache *codecache_create(const struct vmstructs *vm);
void codecache_destroy(struct codecache *cache);

/**
 * codecache_find() - the piece of code that an address is in
 * @cache: the tables.
 * @pc: the address.
 * @ret: receives what is written there now. It may change at any time.
 *
 * Return: 0; -ENOENT: none; or what the process's memory says.
 */
int codecache_find(struct codecache *cache, uint64_t pc, struct codeblob *ret);

/* Is the address in one of the heaps, as they were read last? */
bool codecache_has(const struct codecache *cache, uint64_t pc);

/**
 * codecache_name() - the name of a piece of code
 * @cache: the tables.
 * @blob: the piece.
 * @buf: receives the name: "java.lang.String.hashCode", or HotSpot's own of what is no method,
 *	in brackets.
 * @size: room there.
 *
 * Return: it could be read.
 */
bool codecache_name(const struct codecache *cache, const struct codeblob *blob, char *buf,
		    size_t size);

#endif
