/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vmstructs.h - the data structures of HotSpot, the Java virtual machine, from outside.
 *
 * libjvm.so exports tables of its own data structures, for debuggers: the names of their
 * members and where these lie (gHotSpotVMStructs), and their sizes (gHotSpotVMTypes). So it
 * does not matter which release it is.
 */
#ifndef TOOLS_JAVA_VMSTRUCTS_H
#define TOOLS_JAVA_VMSTRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VM_TEXT 32 /* bytes of a name that is compared, with the 0 */

/* Members, as the tables name them: vmstructs.c. */
enum vm_member {
	VM_HEAPS,
	VM_ONLY_HEAP, /* before 9 */
	VM_ARRAY_LENGTH,
	VM_ARRAY_DATA,
	VM_HEAP_MEMORY,
	VM_HEAP_MAP,
	VM_HEAP_SHIFT,
	VM_SPACE_LOW,
	VM_SPACE_HIGH,
	VM_BLOB_NAME,
	VM_BLOB_SIZE,
	VM_BLOB_BEGIN, /* an address, */
	VM_BLOB_OFFSET, /* or, before 9 and since 23, from the blob's own */
	VM_BLOB_FRAME,
	VM_BLOB_READY,
	VM_NR_NEEDED,
	/* What names of methods need. */
	VM_COMPILED_METHOD = VM_NR_NEEDED,
	VM_METHOD_CONST,
	VM_CONST_POOL,
	VM_CONST_NAME,
	VM_POOL_HOLDER,
	VM_CLASS_NAME,
	VM_SYMBOL_LENGTH,
	VM_SYMBOL_TEXT,
	VM_NR
};

/**
 * struct vm_memory - the process
 * @read: reads its memory, all of it or nothing. Returns 0 or a negative errno.
 * @arg: for @read.
 */
struct vm_memory {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
};

/**
 * struct vm_place - where a member lies
 * @at: from its structure's start; by address if it is static.
 * @known: it is there.
 * @is_short: it is an integer of 16 bits.
 */
struct vm_place {
	uint64_t at;
	bool known;
	bool is_short;
};

/**
 * struct vmstructs - what is known of a process
 * @memory: the process.
 * @places: by enum vm_member.
 * @block_size: sizeof(HeapBlock), behind which a CodeBlob lies.
 * @pool_size: sizeof(ConstantPool), behind which its entries lie; 0: not known.
 */
struct vmstructs {
	struct vm_memory memory;
	struct vm_place places[VM_NR];
	uint64_t block_size;
	uint64_t pool_size;
};

/* Addresses of the tables' variables, 0: there is none. */
struct vm_tables {
	uint64_t structs;
	uint64_t types;
};

/**
 * vm_tables_find() - where a process has the tables' variables
 * @fd: the file libjvm.so.
 * @start: where a part of it is mapped that is code.
 * @offset: what offset of the file lies there.
 * @ret: receives the addresses.
 *
 * Return: there are tables.
 */
bool vm_tables_find(int fd, uint64_t start, uint64_t offset, struct vm_tables *ret);

/**
 * vmstructs_read() - read the tables
 * @memory: the process; copied.
 * @tables: see vm_tables_find().
 * @ret: receives what they say.
 *
 * They are what a process has in its memory, so anything: what is read is bounded.
 *
 * Return: 0; -ENODATA: not all is there that frames need; or what @memory says.
 */
int vmstructs_read(const struct vm_memory *memory, const struct vm_tables *tables,
		   struct vmstructs *ret);

/* Reads memory, or a member of the structure at @object. Returns 0 or a negative errno. */
int vm_read(const struct vmstructs *vm, uint64_t addr, void *buf, size_t size);
int vm_read_member(const struct vmstructs *vm, uint64_t object, enum vm_member member, void *buf,
		   size_t size);

/* Reads the first bytes of a text that ends with 0. False: it can't be read. */
bool vm_read_text(const struct vmstructs *vm, uint64_t addr, char text[VM_TEXT]);

#endif
