// SPDX-License-Identifier: GPL-2.0-or-later
/* cold.c - the part of a function that the compiler put elsewhere. See cold.h. */
#include <gelf.h>
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/language/php/cold.h"

#define MAX_CODE (1u << 20) /* bytes of a function */
#define MAX_TABLE (1u << 24) /* bytes of .eh_frame_hdr */
#define TABLE_HEAD 12 /* bytes of .eh_frame_hdr before its table */
#define ENTRY 8 /* bytes of an entry */
#define JUMP_BYTES 6
#define FEW 8 /* jumps that may lead elsewhere by chance: any bytes are taken for one */

/* The table in .eh_frame_hdr: where the code of each entry begins, in order. */
struct table {
	const uint8_t *entries;
	size_t nr;
	uint64_t base;
};

/* A file's bytes at an address, or NULL. */
static const uint8_t *bytes_at(Elf *elf, uint64_t addr, uint64_t size)
{
	size_t nr = 0;

	if (elf_getphdrnum(elf, &nr))
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		Elf_Data *data;
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || addr < p.p_vaddr ||
		    addr - p.p_vaddr > p.p_filesz || size > p.p_filesz - (addr - p.p_vaddr))
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)(p.p_offset + (addr - p.p_vaddr)), size,
					    ELF_T_BYTE);
		return data && data->d_size == size ? data->d_buf : NULL;
	}
	return NULL;
}

/* Finds the table, in the only form that linkers make: offsets of four bytes from its section. */
static bool find_table(Elf *elf, struct table *ret)
{
	static const uint8_t head[] = { 1, 0x1b, 3, 0x3b };
	const uint8_t *bytes;
	size_t nr = 0;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_GNU_EH_FRAME)
			continue;
		if (p.p_memsz < TABLE_HEAD || p.p_memsz > MAX_TABLE)
			return false;
		bytes = bytes_at(elf, p.p_vaddr, p.p_memsz);
		if (!bytes || memcmp(bytes, head, sizeof(head)))
			return false;
		*ret = (struct table){ bytes + TABLE_HEAD, get32(bytes + 8), p.p_vaddr };
		return ret->nr <= (p.p_memsz - TABLE_HEAD) / ENTRY;
	}
	return false;
}

static uint64_t begin_of(const struct table *t, size_t i)
{
	return get_relative(t->entries + i * ENTRY, t->base);
}

/* Returns the index of the entry of the code at @addr, or t->nr. */
static size_t find_entry(const struct table *t, uint64_t addr)
{
	size_t lo = 0, hi = t->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (begin_of(t, mid) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : t->nr;
}

/* Returns whether there is a conditional jump at @code. */
static bool is_jump(const uint8_t *code)
{
	return code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
}

/**
 * struct leaving - a walk over the jumps that lead out of a function
 * @code: its bytes.
 * @start: its address.
 * @size: its size.
 * @at: offset at which the walk goes on.
 */
struct leaving {
	const uint8_t *code;
	uint64_t start;
	uint64_t size;
	uint64_t at;
};

/* Finds the next jump. Returns false if there is none. @to: receives where it leads. */
static bool next_jump(struct leaving *l, uint64_t *to)
{
	while (l->at + JUMP_BYTES <= l->size) {
		const uint8_t *code = l->code + l->at++;

		*to = get_relative(code + 2, l->start + l->at - 1 + JUMP_BYTES);
		if (is_jump(code) && *to - l->start >= l->size)
			return true;
	}
	return false;
}

/* Returns the only entry to which most jumps can lead; t->nr: there is none. */
static size_t find_candidate(const struct table *t, struct leaving l)
{
	size_t ret = t->nr, votes = 0;
	uint64_t to;

	while (next_jump(&l, &to)) {
		size_t entry = find_entry(t, to);

		if (!votes)
			ret = entry;
		votes += !votes || entry == ret ? 1 : -1;
	}
	return ret;
}

static size_t count_jumps(const struct table *t, struct leaving l, size_t entry)
{
	size_t ret = 0;
	uint64_t to;

	while (next_jump(&l, &to))
		ret += find_entry(t, to) == entry;
	return ret;
}

bool php_cold_part(Elf *elf, uint64_t start, uint64_t size, uint64_t *cold_start,
		   uint64_t *cold_end)
{
	struct leaving l = { .start = start, .size = size };
	struct table t;
	size_t entry;

	if (!size || size > MAX_CODE || !find_table(elf, &t))
		return false;
	l.code = bytes_at(elf, start, size);
	if (!l.code)
		return false;
	entry = find_candidate(&t, l);
	if (entry + 1 >= t.nr || count_jumps(&t, l, entry) <= FEW)
		return false;
	*cold_start = begin_of(&t, entry);
	*cold_end = begin_of(&t, entry + 1);
	return true;
}
