// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jvm.c - libjvm.so, as far as a recorder looks: its name, the table of its data structures,
 * and one heap of code that these describe. Where members lie is as in no release of Java.
 */
#include <string.h>

#include "jvm.h"

#define SHIFT 6 /* bytes of a segment, as a power of two */
#define SEGMENTS 1024
#define BLOCK_HEAD 16
#define EXPORT __attribute__((visibility("default")))

/* An entry of the table. */
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

struct blob {
	int size;
	int16_t ready;
	int code_offset;
	uint64_t unused[5];
	const char *name;
	int frame;
};

static struct heap heap, *list[1] = { &heap };
static struct array heaps = { 1, 1, list }, *all = &heaps;
static uint8_t segments[SEGMENTS];
static size_t used;

#define MEMBER(type, field, of, member, kind)                                     \
	{                                                                         \
		type, field, kind, 0, __builtin_offsetof(struct of, member), NULL \
	}

static const struct entry entries[] = {
	{ "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", 1, 0, &all },
	MEMBER("GrowableArrayBase", "_len", array, len, "int"),
	MEMBER("GrowableArray<int>", "_data", array, data, "int*"),
	MEMBER("Klass", "_name", blob, name, "Symbol*"),
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

EXPORT const struct entry *gHotSpotVMStructs = entries;

void jvm_open(uint8_t *code, size_t size)
{
	memset(segments, 0xff, sizeof(segments));
	heap.memory = (struct space){ 0, code, code + size };
	heap.segmap = (struct space){ 0, segments, segments + (size >> SHIFT) };
	heap.shift = SHIFT;
}

/* How far in front of each segment its block begins: by hops, as a byte counts to 253 only. */
static void mark(size_t first, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		segments[first + i] = i > 5 ? 5 : i;
}

uint8_t *jvm_add(const char *name, size_t room)
{
	size_t size = BLOCK_HEAD + sizeof(struct blob) + room, nr = (size >> SHIFT) + 1;
	struct blob blob = {
		.size = sizeof(blob) + room,
		.code_offset = sizeof(blob),
		.name = name,
		.ready = -1,
	};
	uint8_t *at = heap.memory.low + (used << SHIFT) + BLOCK_HEAD;

	if (used + nr > SEGMENTS || at + size > heap.memory.high)
		return NULL;
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
