// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * codecache.c - read HotSpot's code cache from another process. See codecache.h.
 *
 * HotSpot puts code into a few heaps. A heap is divided into segments of equal size. A map with one
 * byte for each segment says how many segments before it its block begins. A block has a header,
 * then a CodeBlob, which says where its instructions are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/java/codecache.h"
#include "tools/java/method.h"

#define MAX_HEAPS 8 /* maximum; there are up to 3 */
#define BLOB_HEAD 512 /* bytes in which the used members of a CodeBlob must lie */
#define HOPS 256 /* bytes of the map of segments that are read at once */
#define MAX_HOPS 64 /* maximum number of such reads */
#define FREE 0xff
#define FRAME_MAX (1 << 20)
#define WORD 8

/* A heap: its addresses, the addresses of its map of segments, and log2 of the segments' size. */
struct code_heap {
	uint64_t low, high;
	uint64_t map, map_end;
	unsigned int shift;
};

struct codecache {
	struct vmstructs vm;
	struct code_heap heaps[MAX_HEAPS];
	unsigned int nr;
};

struct codecache *codecache_create(const struct vmstructs *vm)
{
	struct codecache *c = calloc(1, sizeof(*c));

	if (c)
		c->vm = *vm;
	return c;
}

void codecache_destroy(struct codecache *cache)
{
	free(cache);
}

/* ---- Heaps ---- */

static int read_range(const struct codecache *c, uint64_t space, uint64_t *low, uint64_t *high)
{
	int err = vm_read_member(&c->vm, space, VM_SPACE_LOW, low, WORD);

	return err ? err : vm_read_member(&c->vm, space, VM_SPACE_HIGH, high, WORD);
}

static int read_heap(const struct codecache *c, uint64_t addr, struct code_heap *h)
{
	uint32_t shift;
	int err = read_range(c, addr + c->vm.places[VM_HEAP_MEMORY].at, &h->low, &h->high);

	if (!err)
		err = read_range(c, addr + c->vm.places[VM_HEAP_MAP].at, &h->map, &h->map_end);
	if (!err)
		err = vm_read_member(&c->vm, addr, VM_HEAP_SHIFT, &shift, sizeof(shift));
	if (err)
		return err;
	h->shift = shift;
	return shift < 32 ? 0 : -ENODATA;
}

/* Reads the bounds of the heaps. This is repeated when an address is in none, since heaps grow. */
static int read_heaps(struct codecache *c)
{
	uint64_t list[MAX_HEAPS], array, data;
	uint32_t nr = 1;
	int err;

	c->nr = 0;
	if (c->vm.places[VM_HEAPS].known) {
		err = vm_read(&c->vm, c->vm.places[VM_HEAPS].at, &array, sizeof(array));
		if (!err)
			err = vm_read_member(&c->vm, array, VM_ARRAY_LENGTH, &nr, sizeof(nr));
		if (!err)
			err = vm_read_member(&c->vm, array, VM_ARRAY_DATA, &data, sizeof(data));
		if (nr > MAX_HEAPS)
			nr = MAX_HEAPS;
		if (!err)
			err = vm_read(&c->vm, data, list, nr * sizeof(*list));
	} else {
		err = vm_read(&c->vm, c->vm.places[VM_ONLY_HEAP].at, list, sizeof(*list));
	}
	for (uint32_t i = 0; i < nr && !err; i++) {
		err = read_heap(c, list[i], &c->heaps[i]);
		c->nr += !err;
	}
	return err;
}

static const struct code_heap *find_heap(const struct codecache *c, uint64_t pc)
{
	for (unsigned int i = 0; i < c->nr; i++)
		if (pc >= c->heaps[i].low && pc < c->heaps[i].high)
			return &c->heaps[i];
	return NULL;
}

/* ---- Blocks ---- */

/* Sets @ret to the address of the block that contains @pc. Returns 0 or a negative errno. */
static int find_block(const struct codecache *c, const struct code_heap *h, uint64_t pc,
		      uint64_t *ret)
{
	uint64_t segment = (pc - h->low) >> h->shift;
	uint8_t map[HOPS];

	for (int i = 0; i < MAX_HOPS && segment < h->map_end - h->map; i++) {
		size_t n = segment + 1 < HOPS ? segment + 1 : HOPS, at = n - 1;
		int err = vm_read(&c->vm, h->map + segment - at, map, n);

		if (err)
			return err;
		while (map[at] && map[at] != FREE && map[at] <= at)
			at -= map[at];
		if (map[at] == FREE)
			return -ENOENT;
		segment -= n - 1 - at;
		if (!map[at]) {
			*ret = h->low + (segment << h->shift);
			return 0;
		}
		/*
		 * The block begins before the part of the map that was read: follow the hop that
		 * leads there.
		 */
		if (map[at] > segment)
			return -ENOENT;
		segment -= map[at];
	}
	return -ENOENT;
}

/* Returns an integer member of a CodeBlob. */
static int64_t number(const struct codecache *c, const uint8_t *blob, enum vm_member f)
{
	const struct vm_place *p = &c->vm.places[f];
	int16_t narrow;
	int32_t wide;

	memcpy(&narrow, blob + p->at, sizeof(narrow));
	memcpy(&wide, blob + p->at, sizeof(wide));
	return p->is_short ? narrow : wide;
}

static uint64_t word(const struct codecache *c, const uint8_t *blob, enum vm_member f)
{
	uint64_t ret;

	memcpy(&ret, blob + c->vm.places[f].at, sizeof(ret));
	return ret;
}

/* Returns how many bytes of a CodeBlob hold all the members that are used; 0 if too many. */
static size_t head_size(const struct codecache *c)
{
	uint64_t ret = 0;

	for (int f = VM_BLOB_NAME; f < VM_NR_NEEDED; f++) {
		if (c->vm.places[f].known && c->vm.places[f].at > BLOB_HEAD - WORD)
			return 0;
		if (c->vm.places[f].known && c->vm.places[f].at + WORD > ret)
			ret = c->vm.places[f].at + WORD;
	}
	return ret;
}

/* Sets the members of @ret that the name of the CodeBlob at @addr tells. */
static void take_name(const struct codecache *c, uint64_t addr, struct codeblob *ret)
{
	char text[VM_TEXT];

	ret->frameless = ret->aligns = false;
	ret->method = 0;
	if (!vm_read_text(&c->vm, ret->name, text))
		return;
	/*
	 * These adapters are jumped to between a caller and the callee, and leave the stack alone.
	 */
	ret->frameless = !ret->frame &&
			 (!strcmp(text, "vtable chunks") || !strncmp(text, "I2C/C2I", 7));
	ret->aligns = !strcmp(text, "ExceptionBlob");
	if ((!strcmp(text, "nmethod") || !strcmp(text, "native nmethod")) &&
	    c->vm.places[VM_COMPILED_METHOD].known &&
	    vm_read_member(&c->vm, addr, VM_COMPILED_METHOD, &ret->method, WORD))
		ret->method = 0;
}

static int read_blob(const struct codecache *c, uint64_t addr, struct codeblob *ret)
{
	uint8_t blob[BLOB_HEAD];
	size_t size = head_size(c);
	int64_t frame, ready;
	int err = size ? vm_read(&c->vm, addr, blob, size) : -ENODATA;

	if (err)
		return err;
	ret->address = addr;
	frame = number(c, blob, VM_BLOB_FRAME);
	ready = number(c, blob, VM_BLOB_READY);
	ret->start = c->vm.places[VM_BLOB_BEGIN].known ? word(c, blob, VM_BLOB_BEGIN) :
							 addr + number(c, blob, VM_BLOB_OFFSET);
	ret->end = addr + number(c, blob, VM_BLOB_SIZE);
	if (ret->start < addr || ret->start >= ret->end || ret->end - addr > UINT32_MAX)
		return -ENOENT;
	ret->frame = frame >= 2 && frame < FRAME_MAX / WORD ? frame * WORD : 0;
	ret->ready = ready >= 0 && ready < (int64_t)(ret->end - ret->start) ? ret->start + ready :
									      ret->start;
	ret->name = word(c, blob, VM_BLOB_NAME);
	take_name(c, addr, ret);
	return 0;
}

int codecache_find(struct codecache *cache, uint64_t pc, struct codeblob *ret)
{
	const struct code_heap *heap = find_heap(cache, pc);
	uint64_t block;
	int err = 0;

	if (!heap) {
		err = read_heaps(cache);
		heap = find_heap(cache, pc);
	}
	if (!heap)
		return err ? err : -ENOENT;
	err = find_block(cache, heap, pc, &block);
	if (!err)
		err = read_blob(cache, block + cache->vm.block_size, ret);
	if (!err && (pc < ret->start || pc >= ret->end))
		err = -ENOENT;
	return err;
}

bool codecache_has(const struct codecache *cache, uint64_t pc)
{
	return find_heap(cache, pc);
}

/* ---- Names ---- */

bool codecache_name(const struct codecache *cache, const struct codeblob *blob, char *buf,
		    size_t size)
{
	char text[VM_TEXT];

	if (blob->method)
		return java_method_name(&cache->vm, blob->method, buf, size);
	if (!vm_read_text(&cache->vm, blob->name, text) || !*text)
		return false;
	snprintf(buf, size, "[%s]", text);
	for (; *buf; buf++)
		if ((unsigned char)*buf < ' ')
			*buf = '?';
	return true;
}
