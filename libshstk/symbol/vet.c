// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vet.c - checks debug information before libdw reads it, as vet.h describes. The amounts of memory
 * that libdw (elfutils 0.188) keeps were read from its sources, and are rounded up.
 */
#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "budget.h"
#include "bytes.h"
#include "elf_file.h"
#include "entries.h"
#include "hash.h"
#include "vet.h"

#define UNIT_COST 512 /* bytes per unit that libdw and this file keep */
#define ABBREV_COST 80 /* bytes per unit for an abbreviation passed over */
#define ARANGES_COST 12 /* memory per byte of .debug_aranges while it is read */
#define ARANGES_KEPT 4 /* part of it that libdw keeps afterwards */

/* Most bytes of a unit: libdw may pass over all its entries in one call. */
#define UNIT_MAX (1ull << 28)
#define CHECK_BYTES (1u << 20) /* of abbreviations between two looks at the CPU time */
/* Most attributes of an abbreviation that take no bytes in an entry. Compilers write ten. */
#define EMPTY_MAX 24

/* A table of abbreviations that was checked as a whole. */
struct abbrevs {
	UT_hash_handle hh;
	uint64_t offset;
	uint64_t nr; /* of its abbreviations */
	bool good; /* it may be read */
};

struct vetted_unit {
	uint64_t first; /* offset of its first entry */
	uint64_t abbrevs; /* offset of its table of abbreviations */
	struct shstk_unit unit;
	bool paid;
};

struct shstk_vet {
	struct shstk_account *account;
	struct shstk_bytes abbrev;
	struct shstk_bytes aranges;
	struct abbrevs *tables;
	struct vetted_unit *units;
	size_t nr;
	size_t max;
	uint64_t passed; /* bytes of abbreviations since CPU time was looked at */
};

/* ---- Abbreviations ---- */

/* Counts @bytes that were passed over. Returns false if no time is left. */
static bool has_time(struct shstk_vet *vet, uint64_t bytes)
{
	vet->passed += bytes;
	if (vet->passed < CHECK_BYTES)
		return true;
	vet->passed = 0;
	return shstk_account_on(vet->account);
}

/*
 * Passes over the attributes of an abbreviation. Returns false if there are too many, or they have
 * no end.
 */
static bool pass_attributes(struct shstk_bytes *from)
{
	uint64_t name, form;
	unsigned int empty = 0;
	int64_t constant;

	do {
		if (!bytes_uleb(from, &name) || !bytes_uleb(from, &form))
			return false;
		if (form == DW_FORM_implicit_const && !bytes_sleb(from, &constant))
			return false;
		empty += form == DW_FORM_flag_present || form == DW_FORM_implicit_const;
	} while ((name || form) && empty <= EMPTY_MAX);
	return empty <= EMPTY_MAX;
}

/*
 * Passes over an abbreviation; @code receives its code, 0 at the end of the table. Returns false if
 * it is broken.
 */
static bool pass_abbrev(struct shstk_bytes *from, uint64_t *code)
{
	uint64_t tag;

	if (!bytes_uleb(from, code))
		return false;
	return !*code || (bytes_uleb(from, &tag) && bytes_skip(from, 1) && pass_attributes(from));
}

/*
 * Counts the abbreviations that are passed over to find the one with @code; with 0, all of them.
 * Returns false if the table is broken, or time runs out.
 */
static bool count_abbrevs(struct shstk_vet *vet, uint64_t offset, uint64_t code, uint64_t *ret)
{
	struct shstk_bytes from = vet->abbrev;
	const uint8_t *start;
	uint64_t have;

	*ret = 0;
	if (!from.p || !bytes_skip(&from, offset))
		return false;
	do {
		/* The last table of a section may lack its end. */
		if (from.p == from.end)
			return true;
		start = from.p;
		if (!pass_abbrev(&from, &have) || !has_time(vet, from.p - start))
			return false;
		++*ret;
	} while (have && have != code);
	return true;
}

/*
 * Returns the table at @offset, which is checked once; NULL if it must not be read. Only tables of
 * units whose entries are read are asked for: the others are most of a file.
 */
static const struct abbrevs *get_abbrevs(struct shstk_vet *vet, uint64_t offset)
{
	struct abbrevs *table;

	HASH_FIND(hh, vet->tables, &offset, sizeof(offset), table);
	if (table)
		return table->good ? table : NULL;
	if (!shstk_account_take(vet->account, sizeof(*table)))
		return NULL;
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	table->offset = offset;
	HASH_ADD(hh, vet->tables, offset, sizeof(table->offset), table);
	if (!table->hh.tbl) {
		free(table);
		return NULL;
	}
	table->good = shstk_account_begin(vet->account) &&
		      count_abbrevs(vet, offset, 0, &table->nr);
	shstk_account_end(vet->account);
	return table->good ? table : NULL;
}

/* ---- Units ---- */

/*
 * Reads the header of a unit, behind its length. @ret->abbrevs is left to the caller; @abbrevs
 * receives their offset. Returns false if it cannot be read.
 */
static bool read_header(struct shstk_bytes *from, bool types, struct shstk_unit *ret,
			uint64_t *abbrevs)
{
	uint64_t version, kind = types ? DW_UT_type : DW_UT_compile, size;

	if (!bytes_fixed(from, 2, &version) || version < 2 || version > 5)
		return false;
	if (version == 5 && (!bytes_fixed(from, 1, &kind) || !bytes_fixed(from, 1, &size)))
		return false;
	if (!bytes_fixed(from, ret->offset_size, abbrevs) ||
	    (version < 5 && !bytes_fixed(from, 1, &size)))
		return false;
	ret->version = version;
	ret->address_size = size;
	if (kind == DW_UT_skeleton || kind == DW_UT_split_compile)
		return bytes_skip(from, 8);
	if (kind == DW_UT_type || kind == DW_UT_split_type)
		return bytes_skip(from, 8 + ret->offset_size);
	return true;
}

static bool add_unit(struct shstk_vet *vet, const struct vetted_unit *new)
{
	struct vetted_unit *units =
		shstk_account_grow(vet->account, vet->units, vet->nr, &vet->max, sizeof(*units));

	if (!units)
		return false;
	vet->units = units;
	units[vet->nr++] = *new;
	return true;
}

/* Returns the table of abbreviations at @offset, which was counted, and what follows it. */
static struct shstk_bytes abbrevs_at(const struct shstk_vet *vet, uint64_t offset)
{
	return (struct shstk_bytes){ vet->abbrev.p + offset, vet->abbrev.end };
}

/*
 * Checks a unit at @header in a section that begins at @start; its bytes without the length are
 * @from. Returns false if the file must not be read. A unit that cannot be understood is no reason to
 * refuse those before it: libdw stops there, too.
 */
static bool vet_unit(struct shstk_vet *vet, const uint8_t *start, const uint8_t *header,
		     struct shstk_bytes from, bool wide, bool types)
{
	struct vetted_unit unit = {
		.unit = { .header = header, .offset_size = wide ? 8 : 4 },
	};
	uint64_t code, passed;

	if ((uint64_t)(from.end - from.p) > UNIT_MAX ||
	    !shstk_account_take(vet->account, UNIT_COST))
		return false;
	if (!read_header(&from, types, &unit.unit, &unit.abbrevs))
		return true;
	unit.first = from.p - start;
	unit.unit.entries = from;
	if (!bytes_uleb(&from, &code))
		return true;
	/* libdw reads the first entry of every unit. */
	if (!count_abbrevs(vet, unit.abbrevs, code, &passed) ||
	    !shstk_account_take(vet->account, passed * ABBREV_COST))
		return false;
	unit.unit.abbrevs = abbrevs_at(vet, unit.abbrevs);
	return types || add_unit(vet, &unit);
}

static bool vet_units(struct shstk_vet *vet, struct shstk_bytes from, bool types)
{
	const uint8_t *start = from.p, *header = start;
	struct shstk_bytes unit;
	bool wide;

	for (uint64_t n = 1; from.p < from.end && bytes_unit(&from, &wide, &unit); n++) {
		if (!vet_unit(vet, start, header, unit, wide, types))
			return false;
		if (!(n % 1024) && !shstk_account_on(vet->account))
			return false;
		header = from.p;
	}
	return true;
}

/* Returns the bytes of a section, or of the one that a .dwo file has instead. */
static struct shstk_bytes section(Elf *elf, const char *name, const char *split)
{
	struct shstk_bytes ret = shstk_elf_bytes(elf, name);

	return ret.p ? ret : shstk_elf_bytes(elf, split);
}

struct shstk_vet *shstk_vet_create(Elf *elf, struct shstk_account *account)
{
	struct shstk_vet *vet = calloc(1, sizeof(*vet));
	bool ok;

	if (!vet)
		return NULL;
	vet->account = account;
	vet->abbrev = section(elf, ".debug_abbrev", ".debug_abbrev.dwo");
	vet->aranges = shstk_elf_bytes(elf, ".debug_aranges");
	ok = shstk_account_begin(account) &&
	     vet_units(vet, section(elf, ".debug_info", ".debug_info.dwo"), false) &&
	     vet_units(vet, section(elf, ".debug_types", ".debug_types.dwo"), true);
	shstk_account_end(account);
	if (ok)
		return vet;
	shstk_vet_destroy(vet);
	return NULL;
}

void shstk_vet_destroy(struct shstk_vet *vet)
{
	struct abbrevs *table, *next;

	if (!vet)
		return;
	HASH_ITER(hh, vet->tables, table, next)
	{
		HASH_DEL(vet->tables, table);
		free(table);
	}
	free(vet->units);
	free(vet);
}

static struct vetted_unit *find_unit(const struct shstk_vet *vet, uint64_t first)
{
	size_t lo = 0, hi = vet->nr, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (vet->units[mid].first < first)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < vet->nr && vet->units[lo].first == first ? vet->units + lo : NULL;
}

const struct shstk_unit *shstk_vet_unit(struct shstk_vet *vet, uint64_t offset)
{
	struct vetted_unit *unit = find_unit(vet, offset);
	const struct abbrevs *table;

	if (!unit)
		return NULL;
	if (!unit->paid) {
		table = get_abbrevs(vet, unit->abbrevs);
		unit->paid = table && shstk_account_take(vet->account, table->nr * ABBREV_COST);
	}
	return unit->paid ? &unit->unit : NULL;
}

bool shstk_vet_aranges_begin(struct shstk_vet *vet)
{
	return shstk_account_take(vet->account, (vet->aranges.end - vet->aranges.p) * ARANGES_COST);
}

void shstk_vet_aranges_end(struct shstk_vet *vet)
{
	shstk_account_give(vet->account,
			   (vet->aranges.end - vet->aranges.p) * (ARANGES_COST - ARANGES_KEPT));
}
