// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * codecache_fuzz.c - any bytes as the memory of a Java virtual machine: reading ends, the blob that is
 * found for an address contains that address, and methods have names that end.
 *
 * An input is mapped at BASE. If its first byte is odd, the tables are at its start, too. For the
 * others there is a good table at TABLE, in which the input's first bytes say where members lie, so
 * that a search gets to the heaps and blocks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/java/codecache.h"
#include "tools/java/inlined.h"
#include "tools/java/method.h"

#define BASE 0x100000
#define TABLE 0x1000
#define MAX_READS 200000 /* most reads of one look-up, or of reading the tables */

#define MEMBERS(X)                                       \
	X("CodeCache", "_heaps", 1)                      \
	X("GrowableArrayBase", "_len", 0)                \
	X("GrowableArray<int>", "_data", 0)              \
	X("CodeHeap", "_memory", 0)                      \
	X("CodeHeap", "_segmap", 0)                      \
	X("CodeHeap", "_log2_segment_size", 0)           \
	X("VirtualSpace", "_low", 0)                     \
	X("VirtualSpace", "_high", 0)                    \
	X("CodeBlob", "_name", 0)                        \
	X("CodeBlob", "_size", 0)                        \
	X("CodeBlob", "_code_begin", 0)                  \
	X("CodeBlob", "_frame_size", 0)                  \
	X("CodeBlob", "_frame_complete_offset", 0)       \
	X("nmethod", "_method", 0)                       \
	X("Method", "_constMethod", 0)                   \
	X("ConstMethod", "_constants", 0)                \
	X("ConstMethod", "_name_index", 0)               \
	X("ConstantPool", "_pool_holder", 0)             \
	X("Klass", "_name", 0)                           \
	X("Symbol", "_length", 0)                        \
	X("Symbol", "_body[0]", 0)                       \
	X("Abstract_VM_Version", "_vm_major_version", 1) \
	X("ConstMethod", "_constMethod_size", 0)         \
	X("ConstMethod", "_flags", 0)                    \
	X("ConstMethod", "_code_size", 0)                \
	X("ConstantPool", "_cache", 0)                   \
	X("ConstantPool", "_length", 0)                  \
	X("InstanceKlass", "_constants", 0)              \
	X("CompiledMethod", "_scopes_data_begin", 0)     \
	X("nmethod", "_scopes_pcs_offset", 0)            \
	X("nmethod", "_dependencies_offset", 0)          \
	X("nmethod", "_metadata_offset", 0)              \
	X("nmethod", "_immutable_data", 0)               \
	X("nmethod", "_immutable_data_size", 0)          \
	X("nmethod", "_scopes_data_offset", 0)           \
	X("CodeBlob", "_mutable_data", 0)                \
	X("CodeBlob", "_mutable_data_size", 0)           \
	X("CodeBlob", "_relocation_size", 0)             \
	X("JVMFlag", "flags", 1)                         \
	X("JVMFlag", "numFlags", 1)                      \
	X("JVMFlag", "_name", 0)                         \
	X("JVMFlag", "_addr", 0)                         \
	X("JVMFlag", "_flags", 0)

struct text {
	char type[32], field[32];
	uint64_t is_static;
};

#define TEXT(type, field, is_static) { type, field, is_static },
static const struct text texts[] = { MEMBERS(TEXT) };

#define NR (sizeof(texts) / sizeof(*texts))

static struct {
	uint64_t table;
	uint64_t entries[NR + 1][6];
	uint64_t types;
	uint64_t type[4][5]; /* types ConstantPool, HeapBlock and ConstMethod */
	struct text texts[NR];
	char kind[32], pool[32], block[32], constant[32], method[32];
} good;

struct input {
	const uint8_t *bytes;
	size_t size;
	unsigned int reads;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_table(const struct input *in)
{
	uint64_t names = TABLE + offsetof(__typeof__(good), texts);

	good.table = TABLE + offsetof(__typeof__(good), entries);
	good.types = TABLE + offsetof(__typeof__(good), type);
	good.type[0][0] = TABLE + offsetof(__typeof__(good), pool);
	good.type[0][4] = 64;
	good.type[1][0] = TABLE + offsetof(__typeof__(good), block);
	good.type[1][4] = 16;
	good.type[2][0] = TABLE + offsetof(__typeof__(good), constant);
	good.type[2][4] = 48;
	strcpy(good.pool, "ConstantPool");
	strcpy(good.block, "HeapBlock");
	strcpy(good.constant, "ConstMethod");
	strcpy(good.method, "nmethod");
	memcpy(good.texts, texts, sizeof(texts));
	strcpy(good.kind, "u2");
	for (size_t i = 0; i < NR; i++) {
		uint64_t *e = good.entries[i], at = names + i * sizeof(struct text);

		e[0] = at;
		e[1] = at + sizeof(texts->type);
		e[2] = i % 2 ? at : TABLE + offsetof(__typeof__(good), kind);
		e[3] = texts[i].is_static;
		e[4] = in->bytes[1 + i];
		e[5] = BASE + in->bytes[1 + i];
	}
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	struct input *in = arg;

	if (++in->reads > MAX_READS)
		abort();
	if (addr >= TABLE && addr - TABLE < sizeof(good) && size <= sizeof(good) - (addr - TABLE))
		memcpy(buf, (const char *)&good + (addr - TABLE), size);
	else if (addr >= BASE && addr - BASE < in->size && size <= in->size - (addr - BASE))
		memcpy(buf, in->bytes + (addr - BASE), size);
	else
		return -EFAULT;
	return 0;
}

static void look(const struct vmstructs *vm, struct codecache *cache, uint64_t pc)
{
	struct java_scope scopes[INLINED_MAX];
	struct codeblob blob;
	char name[48];

	if (codecache_find(cache, pc, &blob))
		return;
	if (pc < blob.start || pc >= blob.end || blob.ready < blob.start ||
	    blob.ready >= blob.end || blob.frame % 8)
		abort();
	if (codecache_name(cache, &blob, name, sizeof(name)) && strlen(name) >= sizeof(name))
		abort();
	if (java_inlined(vm, &blob, pc, scopes) > INLINED_MAX ||
	    java_inlined_between(vm, &blob, pc, scopes) > INLINED_MAX)
		abort();
}

/* Reads a method, and looks for lines. */
static void look_for_method(const struct vmstructs *vm, uint64_t address)
{
	struct java_method method;

	if (java_method_read(vm, address, &method))
		return;
	if (strnlen(method.name, sizeof(method.name)) == sizeof(method.name) ||
	    strnlen(method.file, sizeof(method.file)) == sizeof(method.file))
		abort();
	for (uint32_t at = 0; at < 4; at++)
		java_method_line(&method, at);
	java_method_deinit(&method);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size, 0 };
	const struct vm_memory memory = { read_memory, &in };
	struct vm_tables tables = {
		.structs = TABLE,
		.types = TABLE + offsetof(__typeof__(good), types),
	};
	struct codecache *cache;
	struct vmstructs vm;

	if (size < NR + 1)
		return 0;
	make_table(&in);
	if (data[0] & 1)
		tables = (struct vm_tables){ BASE, BASE + 8 };
	if (vmstructs_read(&memory, &tables, &vm))
		return 0;
	/* The tables of compiled methods lie as in Java 10 to 22, or as in Java 25. */
	if (data[0] & 2)
		vm.places[VM_FIXED].known = false;
	vm.flag_size = 24;
	vm_was_given(&vm, "DebugNonSafepoints");
	cache = codecache_create(&vm);
	for (uint64_t pc = BASE; cache && pc < BASE + size; pc += 64) {
		in.reads = 0;
		look(&vm, cache, pc);
	}
	/* The version is one that is known, whatever the input has in its place. */
	vm.version = JAVA_FIRST + data[0] % (JAVA_LAST - JAVA_FIRST + 1);
	for (uint64_t at = BASE; at < BASE + size; at += 8) {
		in.reads = 0;
		look_for_method(&vm, at);
	}
	codecache_destroy(cache);
	return 0;
}
