// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dwarf.c - functions, inlined calls and lines, by libdw.
 *
 * libdw's own search (dwarf_addrdie, dwarf_getscopes) needs .debug_aranges, which clang does not
 * write, and walks a unit's tree for each address. So two indexes are built here: address ranges of
 * units, once per file, and address ranges of functions, once per unit that has samples. From the
 * function on, the tree is followed down through the blocks and inlined calls that cover the
 * address.
 *
 * The tree of a broken file can have loops and overlaps. So siblings must lie behind each other,
 * depth is limited, and each walk may pass over a bounded number of bytes; where the bound is
 * reached, the rest of the tree is ignored. What is found on the way is kept, so that no part of
 * the tree is walked for each address: the blocks and inlined calls of an entry, and the name of
 * each. Memory and time are drawn from the file's account (budget.h), and libdw gets only input
 * that was checked before (vet.h). Lines are read by lines.c, not by libdw.
 *
 * Of units whose description is in a .dwo or .dwp file the program has a skeleton with their ranges
 * and lines. The description is looked for when the first address needs it (split.c).
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_id.h"
#include "budget.h"
#include "debugfile.h"
#include "debuginfod.h"
#include "demangle.h"
#include "dwarf.h"
#include "elf_file.h"
#include "entries.h"
#include "hash.h"
#include "haskell.h"
#include "lines.h"
#include "object_names.h"
#include "pool.h"
#include "ranges.h"
#include "shorten.h"
#include "split.h"
#include "symbol.h"
#include "symtab.h"
#include "unpack_debug.h"
#include "vet.h"

#define WALK_MAX (1ull << 28) /* bytes of the tree that one walk may pass over */
#define RANGES_MAX (1u << 16) /* address ranges of one entry */
#define RANGE_COST 16 /* bytes that count for reading one range */
#define RANGES_STEPS 16 /* calls of dwarf_ranges() between two checks of the CPU time */
#define STEPS (1u << 20) /* bytes of the tree between two checks of the CPU time */
#define REFERENCES_MAX 8 /* steps from an inlined call to the declaration */
#define NAME_MAX_BYTES 4096

/* Language codes of DWARF 6; elfutils 0.188 has no names for them. */
#define LANG_C_PLUS_PLUS_17 0x2b
#define LANG_C_PLUS_PLUS_20 0x2c

struct dwarf_unit {
	Dwarf_Die die; /* the root, or the root of the skeleton, which has the lines */
	struct shstk_split *split; /* the description, if @die is a skeleton and it was found */
	struct shstk_ranges funcs; /* functions, by the offset of their entry */
	bool skeleton;
	bool split_tried;
	bool listed; /* in .debug_aranges */
	bool loaded;
	bool deep; /* functions in functions are indexed, too */
};

/*
 * The blocks and inlined calls directly inside an entry. The value of a range is the address of the
 * block's entry in memory.
 */
struct entry_blocks {
	UT_hash_handle hh;
	const void *entry;
	struct shstk_ranges ranges;
};

struct named_key {
	const void *entry;
	const struct shstk_sym *sym;
};

/* The name of an entry, for the symbol that covers its address. */
struct named_entry {
	UT_hash_handle hh;
	struct named_key key;
	const char *function;
	const char *linkage;
	unsigned int start_line;
};

/**
 * struct shstk_dwarf - the debug information of a file
 * @of: the reader that this one was made from (shstk_dwarf_again()), or NULL.
 * @pool: memory of names and of the tables' elements.
 * @opts: options of the store.
 * @elf: the file with the debug information.
 * @account: memory and time that the file may take.
 * @vet: checks of @dbg.
 * @alt_vet: checks of @alt.
 * @lines: line tables.
 * @blocks: blocks of entries that were looked into, by entry.
 * @named: names of entries, by entry and symbol.
 * @dbg: libdw's view of @elf.
 * @alt: libdw's view of @alt_elf, or NULL.
 * @alt_elf: the third file that debug packages share descriptions in, or NULL.
 * @alt_fd: descriptor of @alt_elf, or -1.
 * @unpacked: sections of @elf and @alt_elf that were inflated.
 * @splits: finder of .dwo and .dwp files; NULL until a skeleton needs it.
 * @place: where debug files are looked for.
 * @path: path of the program, or NULL.
 * @units: all units, sorted by offset.
 * @nr_units: number of units.
 * @max_units: number of units that @units has room for.
 * @index: ranges of units; the value is the index in @units. A reader with @of uses the index of that.
 * @budget: bytes of the tree that the current walk may still pass over.
 * @steps: bytes of the tree since the last check of the CPU time.
 * @ranges: number of calls of dwarf_ranges().
 */
struct shstk_dwarf {
	const struct shstk_dwarf *of;
	struct shstk_pool *pool;
	const struct shstk_symbols_opts *opts;
	Elf *elf;
	struct shstk_account *account;
	struct shstk_vet *vet;
	struct shstk_vet *alt_vet;
	struct shstk_lines *lines;
	struct entry_blocks *blocks;
	struct named_entry *named;
	Dwarf *dbg;
	Dwarf *alt;
	Elf *alt_elf;
	int alt_fd;
	struct shstk_unpacked *unpacked;
	struct shstk_splits *splits;
	const struct shstk_debugplace *place;
	const char *path;
	struct dwarf_unit *units;
	size_t nr_units;
	size_t max_units;
	struct shstk_ranges index;
	uint64_t budget;
	uint64_t steps;
	unsigned int ranges;
};

/* A name being put together. */
struct name_text {
	size_t len;
	char p[NAME_MAX_BYTES];
};

/* Counts the CPU time. Where none is left, the walk ends. */
static bool has_time(struct shstk_dwarf *dwarf)
{
	dwarf->steps = 0;
	if (!shstk_account_on(dwarf->account))
		dwarf->budget = 0;
	return dwarf->budget;
}

static bool spend(struct shstk_dwarf *dwarf, uint64_t bytes)
{
	if (bytes >= dwarf->budget) {
		dwarf->budget = 0;
		return false;
	}
	dwarf->budget -= bytes;
	dwarf->steps += bytes;
	return dwarf->steps < STEPS || has_time(dwarf);
}

/*
 * Does what dwarf_ranges() does, for an entry @die of @unit. @unit is NULL for the root of a unit
 * in the program itself.
 */
static ptrdiff_t next_range(const struct dwarf_unit *unit, Dwarf_Die *die, ptrdiff_t off,
			    Dwarf_Addr *base, Dwarf_Addr *lo, Dwarf_Addr *hi)
{
	return unit && unit->split ? shstk_split_ranges(unit->split, die, off, base, lo, hi) :
				     dwarf_ranges(die, off, base, lo, hi);
}

static bool add_ranges(struct shstk_dwarf *dwarf, struct shstk_ranges *index,
		       const struct dwarf_unit *unit, Dwarf_Die *die, uint64_t value)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	unsigned int n;

	for (n = 0; n < RANGES_MAX; n++) {
		/* libdw may pass over the whole section before it finds a range, or that there is none. */
		if (!(++dwarf->ranges % RANGES_STEPS) && !has_time(dwarf))
			return false;
		off = next_range(unit, die, off, &base, &lo, &hi);
		if (off <= 0)
			break;
		if (!spend(dwarf, RANGE_COST) ||
		    !shstk_ranges_add(index, dwarf->account, lo, hi, value))
			return false;
	}
	return true;
}

static bool add_unit(struct shstk_dwarf *dwarf, Dwarf_Die *die, bool skeleton)
{
	struct dwarf_unit *units;

	units = shstk_account_grow(dwarf->account, dwarf->units, dwarf->nr_units, &dwarf->max_units,
				   sizeof(*units));
	if (!units)
		return false;
	dwarf->units = units;
	dwarf->units[dwarf->nr_units++] = (struct dwarf_unit){
		.die = *die,
		.skeleton = skeleton,
	};
	return true;
}

static void list_units(struct shstk_dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	while (!dwarf_get_units(dwarf->dbg, cu, &cu, NULL, &type, &die, NULL)) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (!spend(dwarf, RANGE_COST) || !add_unit(dwarf, &die, type == DW_UT_skeleton))
			return;
	}
}

/*
 * Returns the unit whose description begins at @offset, or NULL. Units are sorted by that offset.
 */
static struct dwarf_unit *unit_at(const struct shstk_dwarf *dwarf, Dwarf_Off offset)
{
	size_t lo = 0, hi = dwarf->nr_units, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (dwarf_dieoffset(&dwarf->units[mid].die) < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < dwarf->nr_units && dwarf_dieoffset(&dwarf->units[lo].die) == offset ?
		       dwarf->units + lo :
		       NULL;
}

/*
 * Adds the ranges of .debug_aranges, for those units that are listed. Returns false when memory or
 * time runs out.
 */
static bool take_table(struct shstk_dwarf *dwarf)
{
	Dwarf_Aranges *table;
	Dwarf_Addr start;
	Dwarf_Word size;
	struct dwarf_unit *unit;
	Dwarf_Off offset;
	size_t nr;

	if (dwarf_getaranges(dwarf->dbg, &table, &nr))
		return true;
	for (size_t i = 0; i < nr; i++) {
		if (dwarf_getarangeinfo(dwarf_onearange(table, i), &start, &size, &offset))
			continue;
		unit = unit_at(dwarf, offset);
		if (!unit || size > UINT64_MAX - start)
			continue;
		unit->listed = true;
		if (!spend(dwarf, RANGE_COST) ||
		    !shstk_ranges_add(&dwarf->index, dwarf->account, start, start + size,
				      unit - dwarf->units))
			return false;
	}
	return true;
}

static bool add_table(struct shstk_dwarf *dwarf)
{
	bool ok;

	if (!shstk_vet_aranges_begin(dwarf->vet))
		return true;
	ok = take_table(dwarf);
	shstk_vet_aranges_end(dwarf->vet);
	return ok;
}

/*
 * Fills the index of units. Taking the ranges of .debug_aranges is ten times cheaper than looking
 * into the description of a unit. Not all compilers write that section: units that are not in it
 * are asked for their own ranges.
 */
static void index_units(struct shstk_dwarf *dwarf)
{
	bool ok;

	dwarf->budget = WALK_MAX;
	list_units(dwarf);
	ok = add_table(dwarf);
	for (size_t i = 0; ok && i < dwarf->nr_units; i++)
		if (!dwarf->units[i].listed)
			ok = add_ranges(dwarf, &dwarf->index, NULL, &dwarf->units[i].die, i);
	shstk_ranges_sort(&dwarf->index);
}

/* Steps to the next sibling; returns false at the end and where the tree is broken. */
static bool next_sibling(struct shstk_dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Off from = dwarf_dieoffset(die), to;
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next))
		return false;
	to = dwarf_dieoffset(&next);
	if (to <= from || !spend(dwarf, to - from))
		return false;
	*die = next;
	return true;
}

static bool first_child(struct shstk_dwarf *dwarf, Dwarf_Die *die, Dwarf_Die *child)
{
	return spend(dwarf, 1) && !dwarf_child(die, child);
}

/* Returns the root of the unit's description. */
static Dwarf_Die *root_of(struct dwarf_unit *unit)
{
	return unit->split ? &unit->split->die : &unit->die;
}

/* Finds the description that belongs to the skeleton @unit. Returns false if there is none. */
static bool open_split(struct shstk_dwarf *dwarf, struct dwarf_unit *unit)
{
	if (unit->split_tried)
		return unit->split;
	unit->split_tried = true;
	if (!dwarf->splits)
		dwarf->splits =
			shstk_splits_create(dwarf->elf, dwarf->place, dwarf->path, dwarf->account);
	if (dwarf->splits)
		unit->split = shstk_split_open(dwarf->splits, &unit->die);
	return unit->split;
}

/* A unit whose functions are being indexed. */
struct indexed {
	struct shstk_dwarf *dwarf;
	struct dwarf_unit *unit;
};

/* Adds the ranges of the function whose entry is @distance bytes behind the root. */
static bool index_function(void *arg, size_t distance)
{
	const struct indexed *in = arg;
	const Dwarf_Die *root = root_of(in->unit);
	Dwarf_Die die = { .addr = (char *)root->addr + distance, .cu = root->cu };

	return add_ranges(in->dwarf, &in->unit->funcs, in->unit, &die, dwarf_dieoffset(&die));
}

static void load_unit(struct shstk_dwarf *dwarf, struct dwarf_unit *unit, bool deep)
{
	struct indexed in = { dwarf, unit };
	const struct shstk_unit *bytes;

	unit->loaded = true;
	unit->deep = deep;
	unit->funcs.nr = 0;
	bytes = shstk_vet_unit(unit->split ? unit->split->vet : dwarf->vet,
			       dwarf_dieoffset(root_of(unit)));
	if (!bytes)
		return;
	dwarf->budget = WALK_MAX;
	shstk_functions_each(bytes, deep, dwarf->account, index_function, &in);
	shstk_ranges_sort(&unit->funcs);
}

static struct dwarf_unit *find_unit(struct shstk_dwarf *dwarf, uint64_t addr)
{
	const struct shstk_ranges *index = dwarf->of ? &dwarf->of->index : &dwarf->index;
	const struct shstk_range *range = shstk_ranges_find(index, addr);

	/* When memory runs out, a reader has fewer units than the one that made the index. */
	return range && range->value < dwarf->nr_units ? dwarf->units + range->value : NULL;
}

static const struct shstk_range *find_function(struct shstk_dwarf *dwarf, struct dwarf_unit *unit,
					       uint64_t addr)
{
	const struct shstk_range *range;

	if (unit->skeleton && !open_split(dwarf, unit))
		return NULL;
	if (!unit->loaded)
		load_unit(dwarf, unit, false);
	range = shstk_ranges_find(&unit->funcs, addr);
	if (!range && !unit->deep) {
		load_unit(dwarf, unit, true);
		range = shstk_ranges_find(&unit->funcs, addr);
	}
	return range;
}

static bool is_block(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

static void add_blocks(struct shstk_dwarf *dwarf, const struct dwarf_unit *unit, Dwarf_Die *die,
		       struct shstk_ranges *ranges)
{
	Dwarf_Die child;

	dwarf->budget = WALK_MAX;
	if (!first_child(dwarf, die, &child))
		return;
	do {
		if (is_block(dwarf_tag(&child)) &&
		    !add_ranges(dwarf, ranges, unit, &child, (uintptr_t)child.addr))
			return;
	} while (next_sibling(dwarf, &child));
}

static struct entry_blocks *blocks_of(struct shstk_dwarf *dwarf, const struct dwarf_unit *unit,
				      Dwarf_Die *die)
{
	struct entry_blocks *blocks;

	HASH_FIND_PTR(dwarf->blocks, &die->addr, blocks);
	if (blocks)
		return blocks;
	blocks = shstk_pool_alloc(dwarf->pool, sizeof(*blocks));
	if (!blocks)
		return NULL;
	blocks->entry = die->addr;
	HASH_ADD_PTR(dwarf->blocks, entry, blocks);
	if (!blocks->hh.tbl)
		return NULL;
	add_blocks(dwarf, unit, die, &blocks->ranges);
	shstk_ranges_sort(&blocks->ranges);
	return blocks;
}

/* Finds the child of @die that covers @addr and is, or may contain, an inlined call. */
static bool covering_child(struct shstk_dwarf *dwarf, const struct dwarf_unit *unit, Dwarf_Die *die,
			   uint64_t addr, Dwarf_Die *ret)
{
	const struct entry_blocks *blocks = blocks_of(dwarf, unit, die);
	const struct shstk_range *range;

	range = blocks ? shstk_ranges_find(&blocks->ranges, addr) : NULL;
	if (!range)
		return false;
	*ret = (Dwarf_Die){ .addr = (void *)(uintptr_t)range->value, .cu = die->cu };
	return true;
}

/* Fills @calls with the inlined calls at @addr, outermost first. Returns their number. */
static unsigned int inlined_calls(struct shstk_dwarf *dwarf, const struct dwarf_unit *unit,
				  Dwarf_Die *func, uint64_t addr, Dwarf_Die *calls,
				  unsigned int max)
{
	Dwarf_Die die = *func, child;
	unsigned int n = 0;
	int depth;

	for (depth = 0; depth < 2 * SHSTK_FRAMES_MAX && n < max; depth++) {
		if (!covering_child(dwarf, unit, &die, addr, &child))
			break;
		if (dwarf_tag(&child) == DW_TAG_inlined_subroutine)
			calls[n++] = child;
		die = child;
	}
	return n;
}

/*
 * Returns the checks for the section that @die lies in. NULL: it is in a .dwo file, of which no
 * other units are read.
 */
static struct shstk_vet *vet_of(const struct shstk_dwarf *dwarf, const Dwarf_Die *die)
{
	const Dwarf *dbg = dwarf_cu_getdwarf(die->cu);

	return dbg == dwarf->dbg ? dwarf->vet : dbg == dwarf->alt ? dwarf->alt_vet : NULL;
}

/*
 * Replaces @die by the entry that it refers to for attributes that it lacks. Returns false if there
 * is none, or its unit must not be read.
 */
static bool follow(struct shstk_dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die to, root;
	struct shstk_vet *vet;

	if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
	    !dwarf_attr(die, DW_AT_specification, &attr))
		return false;
	if (!dwarf_formref_die(&attr, &to))
		return false;
	if (to.cu != die->cu) {
		vet = vet_of(dwarf, &to);
		if (!vet || !dwarf_diecu(&to, &root, NULL, NULL) ||
		    !shstk_vet_unit(vet, dwarf_dieoffset(&root)))
			return false;
	}
	*die = to;
	return true;
}

/* Does what dwarf_attr_integrate() does, but follows only references that may be read. */
static Dwarf_Attribute *find_attr(struct shstk_dwarf *dwarf, const Dwarf_Die *die,
				  unsigned int name, Dwarf_Attribute *ret)
{
	Dwarf_Die at = *die;

	for (int hops = 0; hops < REFERENCES_MAX; hops++) {
		if (dwarf_attr(&at, name, ret))
			return ret;
		if (!follow(dwarf, &at))
			return NULL;
	}
	return NULL;
}

/*
 * Returns an attribute's string; NULL if there is none, or it is longer than names that are shown.
 */
static const char *string_attr(struct shstk_dwarf *dwarf, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	const char *text = dwarf_formstring(find_attr(dwarf, die, name, &attr));

	return text && memchr(text, '\0', SHSTK_TEXT_MAX) ? text : NULL;
}

static unsigned int number_attr(struct shstk_dwarf *dwarf, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(find_attr(dwarf, die, name, &attr), &value) || value > UINT32_MAX)
		return 0;
	return value;
}

static const char *linkage_name(struct shstk_dwarf *dwarf, Dwarf_Die *die)
{
	const char *name = string_attr(dwarf, die, DW_AT_linkage_name);

	return name ? name : string_attr(dwarf, die, DW_AT_MIPS_linkage_name);
}

/*
 * Returns whether a symbol and a name are the same function, as "foo.constprop.0" or "foo.cold" and
 * "foo" are.
 */
static bool is_clone(const char *sym, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(sym, name, len) && (!sym[len] || sym[len] == '.');
}

/*
 * Returns the name that says most: the mangled one. A function without a mangled name is shown as
 * the symbol table exports it ("read", not "__GI___libc_read").
 */
static const char *best_name(struct shstk_dwarf *dwarf, Dwarf_Die *die, const struct shstk_sym *sym)
{
	const char *linkage = linkage_name(dwarf, die);
	const char *name = string_attr(dwarf, die, DW_AT_name);

	if (linkage && shstk_is_mangled(linkage))
		return linkage;
	if (sym && (!name || !is_clone(sym->name, name)))
		return sym->name;
	return name ? name : linkage;
}

/* Appends "name::". */
static bool add_scope(struct name_text *text, const char *name)
{
	size_t len = strnlen(name, sizeof(text->p));

	if (len + 2 > sizeof(text->p) - text->len)
		return false;
	memcpy(text->p + text->len, name, len);
	memcpy(text->p + text->len + len, "::", 2);
	text->len += len + 2;
	return true;
}

/*
 * Appends the namespaces and classes around the function at @offset to @text, "outer::inner::". Of
 * the children of @scope, the last one that does not begin behind @offset contains it, and so on
 * down the tree. Returns false if the function was not found.
 */
static bool find_scope(struct shstk_dwarf *dwarf, Dwarf_Die *scope, Dwarf_Off offset,
		       struct name_text *text, int depth)
{
	Dwarf_Die die, next;
	const char *name;

	if (depth > SHSTK_ENTRIES_DEPTH || !first_child(dwarf, scope, &next))
		return false;
	do {
		die = next;
	} while (next_sibling(dwarf, &next) && dwarf_dieoffset(&next) <= offset);
	if (dwarf_dieoffset(&die) == offset)
		return true;
	if (!shstk_is_scope(dwarf_tag(&die), false))
		return false;
	name = dwarf_diename(&die);
	return add_scope(text, name ? name : "(anonymous namespace)") &&
	       find_scope(dwarf, &die, offset, text, depth + 1);
}

/* Sets @ret to the entry in which a function was declared: @die itself, or what it refers to. */
static bool find_declaration(struct shstk_dwarf *dwarf, Dwarf_Die *die, Dwarf_Die *ret)
{
	*ret = *die;
	for (int hops = 0; hops < REFERENCES_MAX; hops++) {
		if (!dwarf_hasattr(ret, DW_AT_abstract_origin) &&
		    !dwarf_hasattr(ret, DW_AT_specification))
			return true;
		if (!follow(dwarf, ret))
			return false;
	}
	return false;
}

static bool is_cplusplus(int language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case LANG_C_PLUS_PLUS_17:
	case LANG_C_PLUS_PLUS_20:
		return true;
	default:
		return false;
	}
}

/*
 * Returns the name of a C++ function with its scopes, "app::dot". A static function that was
 * inlined everywhere has neither a symbol nor, with GCC, a mangled name. Returns NULL if there is
 * no such name.
 */
static const char *scoped_name(struct shstk_dwarf *dwarf, struct dwarf_unit *unit, Dwarf_Die *die,
			       const char *name)
{
	Dwarf_Die declaration, root;
	size_t len = strlen(name);
	struct name_text text;

	text.len = 0;
	if (!is_cplusplus(dwarf_srclang(root_of(unit))) ||
	    !find_declaration(dwarf, die, &declaration) ||
	    !dwarf_diecu(&declaration, &root, NULL, NULL))
		return NULL;
	dwarf->budget = WALK_MAX;
	if (!find_scope(dwarf, &root, dwarf_dieoffset(&declaration), &text, 0) || !text.len ||
	    len > sizeof(text.p) - text.len)
		return NULL;
	memcpy(text.p + text.len, name, len);
	text.len += len;
	return dwarf->opts->full_names ? shstk_pool_text(dwarf->pool, text.p, text.len) :
					 shstk_shorten(dwarf->pool, text.p, text.len);
}

static bool fill_named(struct shstk_dwarf *dwarf, struct dwarf_unit *unit, Dwarf_Die *die,
		       struct named_entry *ret)
{
	const struct shstk_sym *sym = ret->key.sym;
	const char *name = best_name(dwarf, die, sym);

	if (!name)
		name = "[inlined]";
	else if (!sym && !shstk_is_mangled(name))
		ret->function = scoped_name(dwarf, unit, die, name);
	if (!ret->function && dwarf_srclang(root_of(unit)) == DW_LANG_Haskell)
		ret->function = shstk_haskell_name(dwarf->pool, name);
	if (!ret->function)
		ret->function = shstk_demangle(dwarf->pool, name, dwarf->opts->full_names);
	ret->linkage = shstk_pool_text(dwarf->pool, name, strnlen(name, SHSTK_TEXT_MAX));
	ret->start_line = number_attr(dwarf, die, DW_AT_decl_line);
	return ret->function && ret->linkage;
}

static struct named_entry *named_of(struct shstk_dwarf *dwarf, struct dwarf_unit *unit,
				    Dwarf_Die *die, const struct shstk_sym *sym)
{
	struct named_key key = { die->addr, sym };
	struct named_entry *named;

	HASH_FIND(hh, dwarf->named, &key, sizeof(key), named);
	if (named)
		return named;
	named = shstk_pool_alloc(dwarf->pool, sizeof(*named));
	if (!named)
		return NULL;
	named->key = key;
	if (!fill_named(dwarf, unit, die, named))
		return NULL;
	HASH_ADD(hh, dwarf->named, key, sizeof(named->key), named);
	return named->hh.tbl ? named : NULL;
}

static bool name_frame(struct shstk_dwarf *dwarf, struct dwarf_unit *unit, Dwarf_Die *die,
		       const struct shstk_sym *sym, struct shstk_symframe *frame)
{
	const struct named_entry *named = named_of(dwarf, unit, die, sym);

	if (!named)
		return false;
	frame->function = named->function;
	frame->linkage = named->linkage;
	frame->start_line = named->start_line;
	return true;
}

/*
 * Returns a file's name as debuggers show it: behind the folder of the compilation, if it is
 * relative to that folder.
 */
static const char *file_text(struct shstk_dwarf *dwarf, struct dwarf_unit *unit,
			     const struct shstk_line *line)
{
	const char *dir = *line->file == '/' ? "" : line->dir, *top = NULL;
	char path[PATH_MAX];
	int len;

	if (*line->file != '/' && *dir != '/')
		top = string_attr(dwarf, &unit->die, DW_AT_comp_dir);
	len = snprintf(path, sizeof(path), "%s%s%s%s%s", top ? top : "", top && *top ? "/" : "",
		       dir, *dir ? "/" : "", line->file);
	if (len < 0 || len >= (int)sizeof(path))
		return shstk_pool_text(dwarf->pool, line->file, strlen(line->file));
	return shstk_pool_text(dwarf->pool, path, len);
}

/*
 * Finds the offset of a unit's line table. Returns false if it has none, or lines are not asked
 * for.
 */
static bool find_lines(struct shstk_dwarf *dwarf, struct dwarf_unit *unit, Dwarf_Word *ret)
{
	Dwarf_Attribute attr;

	return !dwarf->opts->no_lines &&
	       !dwarf_formudata(dwarf_attr(&unit->die, DW_AT_stmt_list, &attr), ret);
}

static void line_of_address(struct shstk_dwarf *dwarf, struct dwarf_unit *unit, uint64_t addr,
			    struct shstk_symframe *frame)
{
	struct shstk_line line;
	Dwarf_Word table;

	if (!find_lines(dwarf, unit, &table) || !shstk_lines_find(dwarf->lines, table, addr, &line))
		return;
	frame->file = file_text(dwarf, unit, &line);
	frame->line = line.line;
}

static void line_of_call(struct shstk_dwarf *dwarf, struct dwarf_unit *unit, Dwarf_Die *call,
			 struct shstk_symframe *frame)
{
	struct shstk_line line;
	Dwarf_Word table;

	if (!find_lines(dwarf, unit, &table) ||
	    !shstk_lines_file(dwarf->lines, table, number_attr(dwarf, call, DW_AT_call_file),
			      &line))
		return;
	frame->file = file_text(dwarf, unit, &line);
	frame->line = number_attr(dwarf, call, DW_AT_call_line);
}

static unsigned int find(struct shstk_dwarf *dwarf, uint64_t addr, const struct shstk_sym *sym,
			 struct shstk_resolved *ret)
{
	struct dwarf_unit *unit = find_unit(dwarf, addr);
	struct shstk_symframe *frames = ret->frames;
	Dwarf_Die func, calls[SHSTK_FRAMES_MAX - 1];
	const struct shstk_range *range;
	unsigned int nr = 0, i;

	if (!unit)
		return 0;
	line_of_address(dwarf, unit, addr, frames);
	range = find_function(dwarf, unit, addr);
	if (!range ||
	    !dwarf_offdie(unit->split ? unit->split->dbg : dwarf->dbg, range->value, &func))
		return 0;
	if (!dwarf->opts->no_inline)
		nr = inlined_calls(dwarf, unit, &func, addr, calls, SHSTK_FRAMES_MAX - 1);
	memset(frames + 1, 0, nr * sizeof(*frames));
	for (i = 0; i < nr; i++) {
		frames[i].inlined = true;
		if (!name_frame(dwarf, unit, &calls[nr - 1 - i], NULL, &frames[i]))
			return 0;
		line_of_call(dwarf, unit, &calls[nr - 1 - i], &frames[i + 1]);
	}
	if (sym && sym->addr != range->lo)
		sym = NULL;
	ret->start = range->lo;
	return name_frame(dwarf, unit, &func, sym, &frames[nr]) ? nr + 1 : 0;
}

unsigned int shstk_dwarf_find(struct shstk_dwarf *dwarf, uint64_t addr, const struct shstk_sym *sym,
			      struct shstk_resolved *ret)
{
	unsigned int nr = 0;

	if (shstk_account_begin(dwarf->account))
		nr = find(dwarf, addr, sym, ret);
	shstk_account_end(dwarf->account);
	return nr;
}

/* Opens what is unpacked of @elf for libdw, and its checks in @vet. Returns NULL if it can't. */
static Dwarf *open_checked(const struct shstk_dwarf *dwarf, Elf *elf, struct shstk_vet **vet)
{
	Dwarf *dbg = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

	*vet = dbg ? shstk_vet_create(elf, dwarf->account) : NULL;
	if (*vet)
		return dbg;
	dwarf_end(dbg);
	return NULL;
}

/*
 * Opens the debug information of @elf, and its checks in @vet. Returns NULL if it has none, or it
 * must not be read.
 */
static Dwarf *begin(struct shstk_dwarf *dwarf, Elf *elf, int fd, struct shstk_vet **vet)
{
	bool lines = !dwarf->opts->no_lines;

	if (!shstk_elf_afford(elf, shstk_elf_copied(fd), lines, dwarf->account))
		return NULL;
	shstk_elf_unpack(elf, lines, &dwarf->unpacked);
	return open_checked(dwarf, elf, vet);
}

/*
 * Opens the third file in which debug packages share descriptions between files. It is named by its
 * build id and an absolute path. Returns false if it is needed and not found: without it most names
 * are missing.
 */
static bool open_alt(struct shstk_dwarf *dwarf, const struct shstk_debugplace *place)
{
	const char *name;
	const void *id, *found;
	ssize_t size;

	size = dwelf_dwarf_gnu_debugaltlink(dwarf->dbg, &name, &id);
	if (size <= 0)
		return true;
	dwarf->alt_fd = shstk_debugfile_by_id(place, id, size);
	if (dwarf->alt_fd < 0 && *name == '/')
		dwarf->alt_fd = shstk_debugfile_named(place, name);
	if (dwarf->alt_fd < 0 && !dwarf->opts->no_servers)
		dwarf->alt_fd = shstk_debuginfod_open(id, size);
	if (dwarf->alt_fd < 0)
		return false;
	dwarf->alt_elf = shstk_elf_begin(dwarf->alt_fd);
	if (!dwarf->alt_elf || shstk_build_id(dwarf->alt_elf, &found) != (size_t)size ||
	    memcmp(found, id, size))
		return false;
	dwarf->alt = begin(dwarf, dwarf->alt_elf, dwarf->alt_fd, &dwarf->alt_vet);
	if (dwarf->alt)
		dwarf_setalt(dwarf->dbg, dwarf->alt);
	return dwarf->alt;
}

struct shstk_dwarf *shstk_dwarf_create(struct shstk_pool *pool, Elf *elf, int fd,
				       const struct shstk_debugplace *place, const char *path,
				       const struct shstk_symbols_opts *opts,
				       struct shstk_account *account)
{
	struct shstk_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf)
		return NULL;
	dwarf->pool = pool;
	dwarf->opts = opts;
	dwarf->elf = elf;
	dwarf->place = place;
	dwarf->path = path;
	dwarf->account = account;
	dwarf->alt_fd = -1;
	dwarf->dbg = begin(dwarf, elf, fd, &dwarf->vet);
	if (dwarf->dbg)
		dwarf->lines = shstk_lines_create(elf, account);
	if (!dwarf->lines || !open_alt(dwarf, place)) {
		shstk_dwarf_destroy(dwarf);
		return NULL;
	}
	index_units(dwarf);
	return dwarf;
}

/* Opens what @of has opened once more, for libdw and for the checks. */
static bool begin_again(struct shstk_dwarf *dwarf)
{
	const struct shstk_dwarf *of = dwarf->of;

	dwarf->dbg = open_checked(dwarf, of->elf, &dwarf->vet);
	if (!dwarf->dbg || !of->alt)
		return dwarf->dbg;
	dwarf->alt = open_checked(dwarf, of->alt_elf, &dwarf->alt_vet);
	if (dwarf->alt)
		dwarf_setalt(dwarf->dbg, dwarf->alt);
	return dwarf->alt;
}

struct shstk_dwarf *shstk_dwarf_again(const struct shstk_dwarf *of, struct shstk_pool *pool,
				      struct shstk_account *account)
{
	struct shstk_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf)
		return NULL;
	dwarf->of = of;
	dwarf->pool = pool;
	dwarf->opts = of->opts;
	dwarf->elf = of->elf;
	dwarf->place = of->place;
	dwarf->path = of->path;
	dwarf->account = account;
	dwarf->alt_fd = -1;
	if (begin_again(dwarf))
		dwarf->lines = shstk_lines_create(of->elf, account);
	if (!dwarf->lines) {
		shstk_dwarf_destroy(dwarf);
		return NULL;
	}
	dwarf->budget = WALK_MAX;
	list_units(dwarf);
	return dwarf;
}

bool shstk_dwarf_unit(const struct shstk_dwarf *dwarf, uint64_t addr, size_t *ret)
{
	const struct shstk_range *range = shstk_ranges_find(&dwarf->index, addr);

	if (!range || dwarf->units[range->value].skeleton)
		return false;
	*ret = range->value;
	return true;
}

size_t shstk_dwarf_missing(const struct shstk_dwarf *dwarf, const char **first)
{
	return dwarf->splits ? shstk_splits_missing(dwarf->splits, first) : 0;
}

void shstk_dwarf_destroy(struct shstk_dwarf *dwarf)
{
	struct entry_blocks *blocks;
	size_t i;

	if (!dwarf)
		return;
	for (i = 0; i < dwarf->nr_units; i++) {
		shstk_ranges_deinit(&dwarf->units[i].funcs, dwarf->account);
		shstk_split_close(dwarf->units[i].split);
	}
	free(dwarf->units);
	shstk_splits_destroy(dwarf->splits);
	shstk_ranges_deinit(&dwarf->index, dwarf->account);
	for (blocks = dwarf->blocks; blocks; blocks = blocks->hh.next)
		shstk_ranges_deinit(&blocks->ranges, dwarf->account);
	HASH_CLEAR(hh, dwarf->blocks);
	HASH_CLEAR(hh, dwarf->named);
	shstk_lines_destroy(dwarf->lines);
	shstk_vet_destroy(dwarf->vet);
	shstk_vet_destroy(dwarf->alt_vet);
	dwarf_end(dwarf->dbg);
	dwarf_end(dwarf->alt);
	elf_end(dwarf->alt_elf);
	shstk_unpacked_free(dwarf->unpacked);
	if (dwarf->alt_fd >= 0)
		close(dwarf->alt_fd);
	free(dwarf);
}
