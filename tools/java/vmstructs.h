/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vmstructs.h - read the data structures of HotSpot, the Java virtual machine, from another
 * process.
 *
 * For debuggers, libjvm.so exports tables of its own data structures: the names and offsets of
 * their members (gHotSpotVMStructs) and the sizes of types (gHotSpotVMTypes). With these tables,
 * the release of HotSpot does not matter.
 */
#ifndef TOOLS_JAVA_VMSTRUCTS_H
#define TOOLS_JAVA_VMSTRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_account;

#define VM_TEXT 32 /* bytes of a name that are read and compared, with the final 0 */

/* The members that are used. vmstructs.c has their names in the tables. */
enum vm_member {
	VM_HEAPS,
	VM_ONLY_HEAP, /* before Java 9 */
	VM_ARRAY_LENGTH,
	VM_ARRAY_DATA,
	VM_HEAP_MEMORY,
	VM_HEAP_MAP,
	VM_HEAP_SHIFT,
	VM_SPACE_LOW,
	VM_SPACE_HIGH,
	VM_BLOB_NAME,
	VM_BLOB_SIZE,
	VM_BLOB_BEGIN, /* address of the code, or */
	VM_BLOB_OFFSET, /* its offset from the blob: before Java 9 and since 23 */
	VM_BLOB_FRAME,
	VM_BLOB_READY,
	VM_NR_NEEDED,
	/* The members below are only needed for the names of methods. */
	VM_COMPILED_METHOD = VM_NR_NEEDED,
	VM_METHOD_CONST,
	VM_CONST_POOL,
	VM_CONST_NAME,
	VM_POOL_HOLDER,
	VM_CLASS_NAME,
	VM_SYMBOL_LENGTH,
	VM_SYMBOL_TEXT,
	VM_NR_NAMES,
	/* And these for what the interpreter runs, and for lines. */
	VM_VERSION = VM_NR_NAMES,
	VM_INTERPRETER,
	VM_QUEUE_START,
	VM_QUEUE_SIZE,
	VM_CONST_SIZE,
	VM_CONST_FLAGS,
	VM_CONST_CODE_SIZE,
	VM_POOL_CACHE,
	VM_POOL_LENGTH,
	VM_POOL_SOURCE,
	VM_CLASS_POOL,
	VM_NR_METHODS,
	/*
	 * And these for what was inlined: descriptions of calls, a table of places, and addresses of
	 * methods. Offsets are from the CodeBlob in Java 10 to 22.
	 */
	VM_SCOPES = VM_NR_METHODS, /* address of the descriptions */
	VM_PLACES_END, /* offset */
	VM_METADATA, /* offset of the addresses */
	/* Since Java 23, the first two are in a memory of their own, and offsets are from its start. */
	VM_FIXED, /* address of that memory */
	VM_FIXED_SIZE,
	VM_SCOPES_AT, /* offset of the descriptions, which is the end of the table of places */
	/* Since Java 25, the addresses of methods are in another one, behind the relocations. */
	VM_VARIABLE, /* address of that memory */
	VM_VARIABLE_SIZE,
	VM_RELOCATION_SIZE,
	VM_PLACES, /* offset of the table of places, in all releases */
	/* And these for options. */
	VM_FLAGS, /* address of the table of options */
	VM_NR_FLAGS, /* and how many it has */
	VM_FLAG_NAME,
	VM_FLAG_VALUE, /* address of the value */
	VM_FLAG_ORIGIN, /* among other things, who has set it */
	VM_NR
};

/**
 * struct vm_memory - access to the memory of the process
 * @read: reads all of a piece of memory or nothing. Returns 0 or a negative errno.
 * @arg: first argument of @read.
 */
struct vm_memory {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
};

/**
 * struct vm_place - where a member lies
 * @at: offset in its structure; address if it is static.
 * @known: the tables have the member.
 * @is_short: it is an integer of 16 bits.
 */
struct vm_place {
	uint64_t at;
	bool known;
	bool is_short;
};

/**
 * struct vmstructs - the tables of a process
 * @memory: access to the process.
 * @places: the members, by enum vm_member.
 * @block_size: sizeof(HeapBlock); the CodeBlob follows after it.
 * @pool_size: sizeof(ConstantPool), after which its entries follow; 0: not known.
 * @const_size: sizeof(ConstMethod), after which the bytecode follows; 0: not known.
 * @flag_size: sizeof(JVMFlag), an option; 0: not known.
 * @version: the release of Java, such as 17; 0: not known.
 */
struct vmstructs {
	struct vm_memory memory;
	struct vm_place places[VM_NR];
	uint64_t block_size;
	uint64_t pool_size;
	uint64_t const_size;
	uint64_t flag_size;
	int version;
};

/* Addresses of the variables that point to the tables; 0: not found. */
struct vm_tables {
	uint64_t structs;
	uint64_t types;
};

/**
 * vm_tables_find() - find the addresses of the tables' variables in a process
 * @fd: the open file libjvm.so.
 * @start: address of a mapping of the file that is code.
 * @offset: offset of @start in the file.
 * @account: the account from which reading the file's symbols draws memory.
 * @ret: receives the addresses.
 *
 * Return: true if the file has both tables.
 */
bool vm_tables_find(int fd, uint64_t start, uint64_t offset, struct shstk_account *account,
		    struct vm_tables *ret);

/**
 * vmstructs_read() - read the tables
 * @memory: access to the process; copied.
 * @tables: addresses from vm_tables_find().
 * @ret: receives what the tables say.
 *
 * The tables lie in the memory of the process and may hold anything, so reading is bounded.
 *
 * Return: 0; -ENODATA if a member is missing that frames need; or the error of @memory.
 */
int vmstructs_read(const struct vm_memory *memory, const struct vm_tables *tables,
		   struct vmstructs *ret);

/* Reads memory. Returns 0 or a negative errno. */
int vm_read(const struct vmstructs *vm, uint64_t addr, void *buf, size_t size);
/* Reads a member of the structure at @object. Returns 0 or a negative errno. */
int vm_read_member(const struct vmstructs *vm, uint64_t object, enum vm_member member, void *buf,
		   size_t size);

/*
 * Returns whether an option that is a bool was given when HotSpot began, and is true. One that was set
 * later, or by HotSpot itself, is not.
 */
bool vm_was_given(const struct vmstructs *vm, const char *option);

/* Reads the first bytes of a text that ends with a 0 byte. Returns false if it cannot be read. */
bool vm_read_text(const struct vmstructs *vm, uint64_t addr, char text[VM_TEXT]);

#endif
