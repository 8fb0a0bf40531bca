/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codecache.h - what HotSpot, the Java virtual machine, has written down of the code that it
 * made: where each piece lies and how large its frame is. Read from outside.
 *
 * libjvm.so exports tables of its own data structures, for debuggers: the names of their
 * members and where these lie (gHotSpotVMStructs). So it does not matter which release it is.
 */
#ifndef TOOLS_UNWIND_CODECACHE_H
#define TOOLS_UNWIND_CODECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct codecache_memory - the process
 * @read: reads its memory, all of it or nothing. Returns 0 or a negative errno.
 * @arg: for @read.
 */
struct codecache_memory {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
};

/**
 * struct codeblob - a piece of code: a method, an adapter, the interpreter
 * @start: its first instruction.
 * @end: behind its last one.
 * @ready: behind the instruction that completes the frame.
 * @frame: bytes from the stack pointer to behind the return address. 0: its frames differ.
 * @bare: it has no frame at all.
 */
struct codeblob {
	uint64_t start;
	uint64_t end;
	uint64_t ready;
	uint32_t frame;
	bool bare;
};

struct codecache;

/**
 * codecache_create() - find the tables
 * @memory: the process; copied, and asked from here on.
 * @table: address of its variable gHotSpotVMStructs.
 * @ret: receives what was found, for codecache_destroy().
 *
 * The tables are what a process has in its memory, so anything: what is read is bounded.
 *
 * Return: 0; -ENODATA: not all that is needed is there; -ENOMEM; or what @memory says.
 */
int codecache_create(const struct codecache_memory *memory, uint64_t table, struct codecache **ret);
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

/**
 * codecache_variable() - where a process has gHotSpotVMStructs
 * @fd: the file libjvm.so.
 * @start: where a part of it is mapped that is code.
 * @offset: what offset of the file lies there.
 *
 * Return: the address, or 0: the file has none.
 */
uint64_t codecache_variable(int fd, uint64_t start, uint64_t offset);

#endif
