// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jvm.c - a stand-in for libjvm.so, as far as a recorder looks at it: its name, the tables of its
 * data structures, and one heap of code that these describe. The members lie at other offsets than
 * in any release of Java.
 */
#include <string.h>

#include "jvm.h"

#define SHIFT 6 /* log2 of the bytes of a segment */
#define SEGMENTS 1024
#define METHODS 16
#define BLOCK_HEAD 24 /* bytes */
#define EXPORT __attribute__((visibility("default")))

/* An entry of the table of members. */
struct entry {
	const char *type, *field, *kind;
	int is_static;
	uint64_t offset;
	void *address;
};

struct space {
	uint64_t unused;
	uint8_t *low, *high;
};

struct heap {
	uint64_t unused[3];
	struct space segmap, memory;
	int shift;
};

struct array {
	int len, max;
	struct heap **data;
};

struct symbol {
	uint32_t unused;
	uint16_t length;
	char text[26];
};

struct class {
	uint64_t unused[7];
	struct symbol *name;
};

/* A constant pool; its entries follow after it. */
struct pool {
	uint64_t unused[2];
	struct class *holder;
	uint64_t more;
};

struct constant {
	uint64_t unused;
	uint16_t name;
	struct pool *pool;
};

struct method {
	uint64_t unused[4];
	struct constant *constant;
};

struct blob {
	int size;
	int16_t ready;
	int code_offset;
	uint64_t unused[5];
	const char *name;
	int frame;
	struct method *method;
};

static struct heap heap, *list[1] = { &heap };
static struct array heaps = { 1, 1, list }, *all = &heaps;
static uint8_t segments[SEGMENTS];
static struct symbol symbols[METHODS], class_name = { 0, 10, "tests/Made" };
static struct class class = { { 0 }, &class_name };
static struct {
	struct pool pool;
	struct symbol *entries[METHODS];
} constants = { { { 0 }, &class, 0 }, { NULL } };
static struct constant const_methods[METHODS];
static struct method methods[METHODS];
static size_t nr_methods;
static size_t used;

#define MEMBER(type, field, of, member, kind)                                     \
	{                                                                         \
		type, field, kind, 0, __builtin_offsetof(struct of, member), NULL \
	}

static const struct entry entries[] = {
	{ "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", 1, 0, &all },
	MEMBER("GrowableArrayBase", "_len", array, len, "int"),
	MEMBER("GrowableArray<int>", "_data", array, data, "int*"),
	MEMBER("Klass", "_name", class, name, "Symbol*"),
	MEMBER("Symbol", "_length", symbol, length, "u2"),
	MEMBER("Symbol", "_body[0]", symbol, text, "u1"),
	MEMBER("ConstantPool", "_pool_holder", pool, holder, "InstanceKlass*"),
	MEMBER("ConstMethod", "_constants", constant, pool, "ConstantPool*"),
	MEMBER("ConstMethod", "_name_index", constant, name, "u2"),
	MEMBER("Method", "_constMethod", method, constant, "ConstMethod*"),
	MEMBER("nmethod", "_method", blob, method, "Method*"),
	MEMBER("CodeHeap", "_memory", heap, memory, "VirtualSpace"),
	MEMBER("CodeHeap", "_segmap", heap, segmap, "VirtualSpace"),
	MEMBER("CodeHeap", "_log2_segment_size", heap, shift, "int"),
	MEMBER("VirtualSpace", "_low", space, low, "char*"),
	MEMBER("VirtualSpace", "_high", space, high, "char*"),
	MEMBER("CodeBlob", "_name", blob, name, "const char*"),
	MEMBER("CodeBlob", "_size", blob, size, "int"),
	MEMBER("CodeBlob", "_code_offset", blob, code_offset, "int"),
	MEMBER("CodeBlob", "_frame_size", blob, frame, "int"),
	MEMBER("CodeBlob", "_frame_complete_offset", blob, ready, "int16_t"),
	{ NULL, NULL, NULL, 0, 0, NULL },
};

/* An entry of the table of types. */
struct type {
	const char *name, *above;
	int is[4];
	uint64_t size;
};

static const struct type types[] = {
	{ "Metadata", NULL, { 0 }, 8 },
	{ "HeapBlock", NULL, { 0 }, BLOCK_HEAD },
	{ "ConstantPool", "Metadata", { 0 }, sizeof(struct pool) },
	{ NULL, NULL, { 0 }, 0 },
};

EXPORT const struct entry *gHotSpotVMStructs = entries;
EXPORT const struct type *gHotSpotVMTypes = types;

void jvm_open(uint8_t *code, size_t size)
{
	memset(segments, 0xff, sizeof(segments));
	heap.memory = (struct space){ 0, code, code + size };
	heap.segmap = (struct space){ 0, segments, segments + (size >> SHIFT) };
	heap.shift = SHIFT;
}

/*
 * Writes how far before each segment its block begins. Real heaps need several hops, because a byte
 * only counts to 253; here a hop is at most 5 segments.
 */
static void mark(size_t first, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		segments[first + i] = i > 5 ? 5 : i;
}

static struct method *make_method(const char *name)
{
	size_t i = nr_methods++;

	symbols[i].length = strlen(name);
	memcpy(symbols[i].text, name, strlen(name));
	constants.entries[i] = &symbols[i];
	const_methods[i].name = i;
	const_methods[i].pool = &constants.pool;
	methods[i].constant = &const_methods[i];
	return &methods[i];
}

uint8_t *jvm_add(const char *name, const char *method, size_t room)
{
	size_t size = BLOCK_HEAD + sizeof(struct blob) + room, nr = (size >> SHIFT) + 1;
	struct blob blob = {
		.size = sizeof(blob) + room,
		.code_offset = sizeof(blob),
		.name = name,
		.ready = -1,
	};
	uint8_t *at = heap.memory.low + (used << SHIFT) + BLOCK_HEAD;

	if (used + nr > SEGMENTS || at + size > heap.memory.high || nr_methods == METHODS)
		return NULL;
	if (method)
		blob.method = make_method(method);
	memcpy(at, &blob, sizeof(blob));
	mark(used, nr);
	used += nr;
	return at + sizeof(blob);
}

void jvm_describe(uint8_t *code, int words, size_t ready)
{
	struct blob blob;

	memcpy(&blob, code - sizeof(blob), sizeof(blob));
	blob.frame = words;
	blob.ready = ready;
	memcpy(code - sizeof(blob), &blob, sizeof(blob));
}
