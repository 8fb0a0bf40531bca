// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dwp.c - the index of a .dwp file, which tells where the bytes of one unit lie in sections that
 * hold the bytes of all units.
 *
 *	header	version (2: DWARF 4, 5: DWARF 5), columns, rows, slots: 32 bits each
 *	slots	identifications of units, 64 bits each: a hash table
 *		the row of each, 32 bits, counted from 1; 0: nothing is in this slot
 *	columns	what section each column means, 32 bits each
 *	rows	offsets, 32 bits each, as many rows as there are units
 *		sizes, the same
 */
#include <string.h>

#include "../unaligned.h"
#include "split.h"

#define HEADER 16
#define COLUMNS_MAX 16

struct index {
	uint32_t version;
	uint32_t columns;
	uint32_t rows;
	uint32_t slots;
	const uint8_t *ids;
	const uint8_t *row_of_slot;
	const uint8_t *kinds;
	const uint8_t *offsets;
	const uint8_t *sizes;
};

/*
 * Finds the tables of an index. Returns false if they are larger than the section, or the header is
 * not one that is known.
 */
static bool open_index(const uint8_t *p, size_t size, struct index *ret)
{
	uint64_t need;

	if (size < HEADER)
		return false;
	ret->version = get32(p) & 0xffff; /* in DWARF 5 two bytes and two of padding */
	ret->columns = get32(p + 4);
	ret->rows = get32(p + 8);
	ret->slots = get32(p + 12);
	if ((ret->version != 2 && ret->version != 5) || ret->columns > COLUMNS_MAX || !ret->slots ||
	    ret->slots & (ret->slots - 1))
		return false;
	need = HEADER + 12ull * ret->slots + 4ull * ret->columns + 8ull * ret->columns * ret->rows;
	if (need > size)
		return false;
	ret->ids = p + HEADER;
	ret->row_of_slot = ret->ids + 8ull * ret->slots;
	ret->kinds = ret->row_of_slot + 4ull * ret->slots;
	ret->offsets = ret->kinds + 4ull * ret->columns;
	ret->sizes = ret->offsets + 4ull * ret->columns * ret->rows;
	return true;
}

/*
 * Returns the row of a unit, counted from 0; or -1. The step of the hash is odd, so all slots are
 * visited.
 */
static int64_t find_row(const struct index *index, uint64_t id)
{
	uint32_t mask = index->slots - 1, slot = id & mask, step = (id >> 32 & mask) | 1, row;

	for (uint32_t n = 0; n < index->slots; n++, slot = (slot + step) & mask) {
		row = get32(index->row_of_slot + 4ull * slot);
		if (!row)
			return -1;
		if (get64(index->ids + 8ull * slot) == id)
			return row <= index->rows ? (int64_t)row - 1 : -1;
	}
	return -1;
}

/* Returns what is in a column; SHSTK_DWP_KINDS: nothing that is read here. */
static enum shstk_dwp_kind kind_of(const struct index *index, uint32_t id)
{
	switch (id) {
	case 1:
		return SHSTK_DWP_INFO;
	case 3:
		return SHSTK_DWP_ABBREV;
	case 6:
		return SHSTK_DWP_STR_OFFSETS;
	case 8: /* in DWARF 4: macros */
		return index->version == 5 ? SHSTK_DWP_RNGLISTS : SHSTK_DWP_KINDS;
	default:
		return SHSTK_DWP_KINDS;
	}
}

bool shstk_dwp_find(const void *bytes, size_t size, uint64_t id,
		    struct shstk_dwp_part ret[SHSTK_DWP_KINDS])
{
	enum shstk_dwp_kind kind;
	struct index index;
	uint64_t at;
	int64_t row;

	memset(ret, 0, SHSTK_DWP_KINDS * sizeof(*ret));
	if (!open_index(bytes, size, &index))
		return false;
	row = find_row(&index, id);
	if (row < 0)
		return false;
	for (uint32_t i = 0; i < index.columns; i++) {
		kind = kind_of(&index, get32(index.kinds + 4ull * i));
		if (kind == SHSTK_DWP_KINDS)
			continue;
		at = 4ull * (row * index.columns + i);
		ret[kind].offset = get32(index.offsets + at);
		ret[kind].size = get32(index.sizes + at);
	}
	return ret[SHSTK_DWP_INFO].size && ret[SHSTK_DWP_ABBREV].size;
}
