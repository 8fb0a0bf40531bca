// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * codecache.c - see codecache.h.
 *
 * HotSpot puts code into a few heaps. A heap is divided into segments of equal size; a map
 * with one byte for each says how far in front of a segment its block begins. A block has a
 * header, then a CodeBlob, which says where its instructions are.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "tools/elf/symbols.h"
#include "tools/unwind/codecache.h"

#define MAX_ENTRIES 32768 /* of the table; there are some 3500 */
#define CHUNK 64 /* of these, at once */
#define NAME_MAX_LENGTH 32 /* of what is looked for, with the 0 */
#define MAX_HEAPS 8 /* there are up to 3 */
#define BLOB_HEAD 512 /* bytes in which the members of a CodeBlob lie */
#define BLOCK_HEAD 16 /* sizeof(HeapBlock) where pointers have 64 bits */
#define HOPS 256 /* bytes of the map of segments at once, */
#define MAX_HOPS 64 /* so often */
#define FREE 0xff
#define FRAME_MAX (1 << 20)
#define WORD 8

/* An entry of gHotSpotVMStructs, as all releases have it. */
struct entry {
	uint64_t type;
	uint64_t field;
	uint64_t kind; /* the name of the field's type */
	uint32_t is_static;
	uint32_t pad;
	uint64_t offset;
	uint64_t address;
};

/* What is needed of it. */
enum field {
	HEAPS,
	ONLY_HEAP, /* before 9 */
	LENGTH,
	DATA,
	MEMORY,
	MAP,
	SHIFT,
	LOW,
	HIGH,
	NAME,
	SIZE,
	CODE_BEGIN, /* an address, */
	CODE_OFFSET, /* or, before 9 and since 23, from the blob's own */
	FRAME_SIZE,
	FRAME_READY,
	NR_FIELDS
};

static const struct {
	const char *type;
	const char *field;
} names[NR_FIELDS] = {
	[HEAPS] = { "CodeCache", "_heaps" },
	[ONLY_HEAP] = { "CodeCache", "_heap" },
	[LENGTH] = { "GrowableArrayBase", "_len" },
	[DATA] = { "GrowableArray<int>", "_data" },
	[MEMORY] = { "CodeHeap", "_memory" },
	[MAP] = { "CodeHeap", "_segmap" },
	[SHIFT] = { "CodeHeap", "_log2_segment_size" },
	[LOW] = { "VirtualSpace", "_low" },
	[HIGH] = { "VirtualSpace", "_high" },
	[NAME] = { "CodeBlob", "_name" },
	[SIZE] = { "CodeBlob", "_size" },
	[CODE_BEGIN] = { "CodeBlob", "_code_begin" },
	[CODE_OFFSET] = { "CodeBlob", "_code_offset" },
	[FRAME_SIZE] = { "CodeBlob", "_frame_size" },
	[FRAME_READY] = { "CodeBlob", "_frame_complete_offset" },
};

/* Where a member lies: from its structure's start, or by address if it is static. */
struct place {
	uint64_t at;
	bool known;
	bool is_short; /* an integer of 16 bits */
};

struct heap {
	uint64_t low, high;
	uint64_t map, map_end;
	unsigned int shift;
};

struct codecache {
	struct codecache_memory memory;
	struct place places[NR_FIELDS];
	struct heap heaps[MAX_HEAPS];
	unsigned int nr;
};

static int read_at(const struct codecache *c, uint64_t addr, void *buf, size_t size)
{
	return c->memory.read(c->memory.arg, addr, buf, size);
}

static int read_member(const struct codecache *c, uint64_t object, enum field f, void *buf,
		       size_t size)
{
	return read_at(c, object + c->places[f].at, buf, size);
}

/* Reads a name, as far as it may matter. Near the end of what is mapped less can be read. */
static bool read_name(const struct codecache *c, uint64_t addr, char name[NAME_MAX_LENGTH])
{
	for (size_t n = NAME_MAX_LENGTH - 1; addr && n; n /= 2) {
		memset(name, 0, NAME_MAX_LENGTH);
		if (!read_at(c, addr, name, n))
			return true;
	}
	return false;
}

/* ---- the table ---- */

static bool is_short_type(const char *type)
{
	return !strcmp(type, "u2") || !strcmp(type, "int16_t") || !strcmp(type, "uint16_t") ||
	       !strcmp(type, "short");
}

/* An entry of a type of which a field is needed. */
static void take_entry(struct codecache *c, const char *type, const struct entry *e)
{
	char field[NAME_MAX_LENGTH], kind[NAME_MAX_LENGTH];

	if (!read_name(c, e->field, field))
		return;
	for (int f = 0; f < NR_FIELDS; f++) {
		struct place *p = &c->places[f];

		if (strcmp(type, names[f].type) || strcmp(field, names[f].field))
			continue;
		p->known = true;
		p->at = e->is_static ? e->address : e->offset;
		p->is_short = read_name(c, e->kind, kind) && is_short_type(kind);
	}
}

static bool is_needed(const char *type)
{
	for (int f = 0; f < NR_FIELDS; f++)
		if (!strcmp(type, names[f].type))
			return true;
	return false;
}

/* Members of one type follow each other: its name is read once. */
struct type_seen {
	uint64_t addr;
	bool needed;
	char name[NAME_MAX_LENGTH];
};

/* Returns 1 at the table's end. */
static int take_entries(struct codecache *c, const struct entry *e, size_t nr, struct type_seen *t)
{
	for (size_t i = 0; i < nr; i++) {
		if (!e[i].type)
			return 1;
		if (e[i].type != t->addr) {
			t->addr = e[i].type;
			t->needed = read_name(c, t->addr, t->name) && is_needed(t->name);
		}
		if (t->needed)
			take_entry(c, t->name, &e[i]);
	}
	return 0;
}

/* The table ends with an entry of zeros, and need not be as long as a chunk. */
static int read_table(struct codecache *c, uint64_t table)
{
	struct entry chunk[CHUNK];
	struct type_seen type = { 0 };
	size_t nr = CHUNK;
	int ret = 0;

	for (size_t i = 0; i < MAX_ENTRIES && !ret; i += nr) {
		ret = read_at(c, table + i * sizeof(*chunk), chunk, nr * sizeof(*chunk));
		if (ret && nr > 1) {
			nr = 1;
			ret = read_at(c, table + i * sizeof(*chunk), chunk, sizeof(*chunk));
		}
		if (!ret)
			ret = take_entries(c, chunk, nr, &type);
	}
	return ret < 0 ? ret : 0;
}

static bool is_complete(const struct codecache *c)
{
	const struct place *p = c->places;

	for (int f = MEMORY; f < NR_FIELDS; f++)
		if (!p[f].known && f != CODE_BEGIN && f != CODE_OFFSET)
			return false;
	return (p[CODE_BEGIN].known || p[CODE_OFFSET].known) &&
	       (p[ONLY_HEAP].known || (p[HEAPS].known && p[LENGTH].known && p[DATA].known));
}

int codecache_create(const struct codecache_memory *memory, uint64_t table, struct codecache **ret)
{
	struct codecache *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->memory = *memory;
	err = read_at(c, table, &table, sizeof(table));
	if (!err)
		err = read_table(c, table);
	if (!err && !is_complete(c))
		err = -ENODATA;
	if (err) {
		codecache_destroy(c);
		return err;
	}
	*ret = c;
	return 0;
}

void codecache_destroy(struct codecache *cache)
{
	free(cache);
}

/* ---- heaps ---- */

static int read_range(const struct codecache *c, uint64_t space, uint64_t *low, uint64_t *high)
{
	int err = read_member(c, space, LOW, low, WORD);

	return err ? err : read_member(c, space, HIGH, high, WORD);
}

static int read_heap(const struct codecache *c, uint64_t addr, struct heap *h)
{
	uint32_t shift;
	int err = read_range(c, addr + c->places[MEMORY].at, &h->low, &h->high);

	if (!err)
		err = read_range(c, addr + c->places[MAP].at, &h->map, &h->map_end);
	if (!err)
		err = read_member(c, addr, SHIFT, &shift, sizeof(shift));
	if (err)
		return err;
	h->shift = shift;
	return shift < 32 ? 0 : -ENODATA;
}

/* They grow. */
static int read_heaps(struct codecache *c)
{
	uint64_t list[MAX_HEAPS], array, data;
	uint32_t nr = 1;
	int err;

	c->nr = 0;
	if (c->places[HEAPS].known) {
		err = read_at(c, c->places[HEAPS].at, &array, sizeof(array));
		if (!err)
			err = read_member(c, array, LENGTH, &nr, sizeof(nr));
		if (!err)
			err = read_member(c, array, DATA, &data, sizeof(data));
		if (nr > MAX_HEAPS)
			nr = MAX_HEAPS;
		if (!err)
			err = read_at(c, data, list, nr * sizeof(*list));
	} else {
		err = read_at(c, c->places[ONLY_HEAP].at, list, sizeof(*list));
	}
	for (uint32_t i = 0; i < nr && !err; i++) {
		err = read_heap(c, list[i], &c->heaps[i]);
		c->nr += !err;
	}
	return err;
}

static const struct heap *find_heap(const struct codecache *c, uint64_t pc)
{
	for (unsigned int i = 0; i < c->nr; i++)
		if (pc >= c->heaps[i].low && pc < c->heaps[i].high)
			return &c->heaps[i];
	return NULL;
}

/* ---- blocks ---- */

/* Where the block of @pc begins. */
static int find_block(const struct codecache *c, const struct heap *h, uint64_t pc, uint64_t *ret)
{
	uint64_t segment = (pc - h->low) >> h->shift;
	uint8_t map[HOPS];

	for (int i = 0; i < MAX_HOPS && segment < h->map_end - h->map; i++) {
		size_t n = segment + 1 < HOPS ? segment + 1 : HOPS, at = n - 1;
		int err = read_at(c, h->map + segment - at, map, n);

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
		/* It begins further in front than was read: the hop that leads there. */
		if (map[at] > segment)
			return -ENOENT;
		segment -= map[at];
	}
	return -ENOENT;
}

/* An integer of a CodeBlob. */
static int64_t number(const struct codecache *c, const uint8_t *blob, enum field f)
{
	const struct place *p = &c->places[f];
	int16_t narrow;
	int32_t wide;

	memcpy(&narrow, blob + p->at, sizeof(narrow));
	memcpy(&wide, blob + p->at, sizeof(wide));
	return p->is_short ? narrow : wide;
}

static uint64_t word(const struct codecache *c, const uint8_t *blob, enum field f)
{
	uint64_t ret;

	memcpy(&ret, blob + c->places[f].at, sizeof(ret));
	return ret;
}

/* Bytes of a CodeBlob that have all that is needed, 0: too many. */
static size_t head_size(const struct codecache *c)
{
	uint64_t ret = 0;

	for (int f = NAME; f < NR_FIELDS; f++) {
		if (c->places[f].known && c->places[f].at > BLOB_HEAD - WORD)
			return 0;
		if (c->places[f].known && c->places[f].at + WORD > ret)
			ret = c->places[f].at + WORD;
	}
	return ret;
}

/* Code that is jumped to between a caller and what it calls, and leaves the stack alone. */
static bool is_bare(const struct codecache *c, uint64_t name)
{
	char text[NAME_MAX_LENGTH];

	return read_name(c, name, text) &&
	       (!strcmp(text, "vtable chunks") || !strncmp(text, "I2C/C2I", 7));
}

static int read_blob(const struct codecache *c, uint64_t addr, struct codeblob *ret)
{
	uint8_t blob[BLOB_HEAD];
	size_t size = head_size(c);
	int64_t frame, ready;
	int err = size ? read_at(c, addr, blob, size) : -ENODATA;

	if (err)
		return err;
	frame = number(c, blob, FRAME_SIZE);
	ready = number(c, blob, FRAME_READY);
	ret->start = c->places[CODE_BEGIN].known ? word(c, blob, CODE_BEGIN) :
						   addr + number(c, blob, CODE_OFFSET);
	ret->end = addr + number(c, blob, SIZE);
	if (ret->start < addr || ret->start >= ret->end || ret->end - addr > UINT32_MAX)
		return -ENOENT;
	ret->frame = frame >= 2 && frame < FRAME_MAX / WORD ? frame * WORD : 0;
	ret->ready = ready >= 0 && ready < (int64_t)(ret->end - ret->start) ? ret->start + ready :
									      ret->start;
	ret->bare = !ret->frame && is_bare(c, word(c, blob, NAME));
	return 0;
}

int codecache_find(struct codecache *cache, uint64_t pc, struct codeblob *ret)
{
	const struct heap *heap = find_heap(cache, pc);
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
		err = read_blob(cache, block + BLOCK_HEAD, ret);
	if (!err && (pc < ret->start || pc >= ret->end))
		err = -ENOENT;
	return err;
}

/* ---- the file ---- */

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	uint64_t *value = arg;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF || strcmp(name, "gHotSpotVMStructs"))
		return 0;
	*value = sym->st_value;
	return 1;
}

/* What is to be added to the file's own addresses where that part of it is mapped. */
static bool find_bias(Elf *elf, uint64_t start, uint64_t offset, uint64_t *ret)
{
	size_t nr;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, &p); i++) {
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || offset + 4096 <= p.p_offset ||
		    offset >= p.p_offset + p.p_filesz)
			continue;
		*ret = start - (p.p_vaddr - p.p_offset + offset);
		return true;
	}
	return false;
}

uint64_t codecache_variable(int fd, uint64_t start, uint64_t offset)
{
	Elf *elf;
	uint64_t value = 0, bias, ret = 0;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return 0;
	if (find_bias(elf, start, offset, &bias) && symbols_walk(elf, take_symbol, &value) > 0)
		ret = value + bias;
	elf_end(elf);
	return ret;
}
