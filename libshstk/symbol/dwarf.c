// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dwarf.c - functions, inlined calls and lines, by libdw.
 *
 * libdw's own search (dwarf_addrdie, dwarf_getscopes) needs .debug_aranges,
 * which clang does not write, and walks a unit's tree for each address. So two
 * indexes are built here: address ranges of units, once per file, and address
 * ranges of functions, once per unit that has samples. From the function on,
 * the tree is followed down through the blocks and inlined calls that cover
 * the address.
 *
 * The tree of a broken file can have loops and overlaps. Siblings must lie
 * behind each other, depth is limited, and each walk may pass over a bounded
 * number of bytes; beyond, the file counts as not having more to say.
 *
 * Of units whose description is in a .dwo or .dwp file the program has a skeleton: its
 * ranges and lines. The description is looked for when the first address needs it (split.c).
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "private.h"
#include "split.h"

#define DEPTH_MAX 64
#define WALK_MAX (1ull << 28) /* bytes of the tree per unit */
#define LOOKUP_MAX (1ull << 24) /* bytes of the tree per address */
#define RANGES_MAX (1u << 16) /* per entry */
#define INDEX_MAX (1u << 24) /* entries of one index */
#define RANGE_COST 16 /* bytes that reading one range counts as */
#define BACK_MAX 16
#define REFERENCES_MAX 8 /* from an inlined call to the declaration */
#define NAME_MAX_BYTES 4096

/* DWARF 6; elfutils 0.188 has no names for them. */
#define LANG_C_PLUS_PLUS_17 0x2b
#define LANG_C_PLUS_PLUS_20 0x2c

/* Code of a unit or of a function. */
struct code_range {
	uint64_t lo;
	uint64_t hi;
	uint64_t value; /* index of the unit, or offset of the function */
};

struct index {
	struct code_range *ranges;
	size_t nr;
	size_t max;
};

struct unit {
	Dwarf_Die die; /* the root, or that of the skeleton: it has the lines */
	struct shstk_split *split; /* the description, if @die is a skeleton and it was found */
	struct index funcs;
	bool skeleton;
	bool split_tried;
	bool listed; /* in .debug_aranges */
	bool loaded;
	bool deep; /* functions in functions are indexed, too */
};

struct shstk_dwarf {
	struct shstk_pool *pool;
	const struct shstk_symbols_opts *opts;
	Elf *elf;
	Dwarf *dbg;
	Dwarf *alt;
	Elf *alt_elf;
	int alt_fd;
	struct shstk_unpacked *unpacked;
	struct shstk_splits *splits; /* NULL: no skeleton needed one yet */
	const struct shstk_debugplace *place;
	const char *path;
	struct unit *units;
	size_t nr_units;
	size_t max_units;
	struct index index;
	uint64_t budget;
};

/* A name being put together. */
struct name_text {
	size_t len;
	char p[NAME_MAX_BYTES];
};

static bool index_add(struct index *index, uint64_t lo, uint64_t hi, uint64_t value)
{
	struct code_range *ranges;

	/* Code that the linker dropped lies at 0 or has no length. */
	if (!lo || lo >= hi)
		return true;
	if (index->nr >= INDEX_MAX)
		return false;
	ranges = shstk_grow(index->ranges, index->nr, &index->max, sizeof(*ranges));
	if (!ranges)
		return false;
	index->ranges = ranges;
	index->ranges[index->nr++] = (struct code_range){ lo, hi, value };
	return true;
}

static int by_lo(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	/* Of two that start together the search meets the smaller one first. */
	return x->hi > y->hi ? -1 : x->hi < y->hi;
}

static void index_sort(struct index *index)
{
	if (index->nr)
		qsort(index->ranges, index->nr, sizeof(*index->ranges), by_lo);
}

static const struct code_range *index_find(const struct index *index, uint64_t addr)
{
	size_t lo = 0, hi = index->nr, mid;
	int back;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (index->ranges[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (back = 0; lo-- && back < BACK_MAX; back++)
		if (addr < index->ranges[lo].hi)
			return index->ranges + lo;
	return NULL;
}

static bool spend(struct shstk_dwarf *dwarf, uint64_t bytes)
{
	if (bytes >= dwarf->budget) {
		dwarf->budget = 0;
		return false;
	}
	dwarf->budget -= bytes;
	return true;
}

/* As dwarf_ranges(), of an entry of that unit; NULL: of its root. */
static ptrdiff_t next_range(const struct unit *unit, Dwarf_Die *die, ptrdiff_t off,
			    Dwarf_Addr *base, Dwarf_Addr *lo, Dwarf_Addr *hi)
{
	return unit && unit->split ? shstk_split_ranges(unit->split, die, off, base, lo, hi) :
				     dwarf_ranges(die, off, base, lo, hi);
}

static bool add_ranges(struct shstk_dwarf *dwarf, struct index *index, const struct unit *unit,
		       Dwarf_Die *die, uint64_t value)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	unsigned int n;

	for (n = 0; n < RANGES_MAX; n++) {
		off = next_range(unit, die, off, &base, &lo, &hi);
		if (off <= 0)
			break;
		if (!spend(dwarf, RANGE_COST) || !index_add(index, lo, hi, value))
			return false;
	}
	return true;
}

static bool add_unit(struct shstk_dwarf *dwarf, Dwarf_Die *die, bool skeleton)
{
	struct unit *units;

	units = shstk_grow(dwarf->units, dwarf->nr_units, &dwarf->max_units, sizeof(*units));
	if (!units)
		return false;
	dwarf->units = units;
	dwarf->units[dwarf->nr_units++] = (struct unit){
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

/* The unit whose description begins at @offset. They are sorted by it. */
static struct unit *unit_at(const struct shstk_dwarf *dwarf, Dwarf_Off offset)
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

/* Takes the ranges of .debug_aranges, of the units that are there. */
static bool add_table(struct shstk_dwarf *dwarf)
{
	Dwarf_Aranges *table;
	Dwarf_Addr start;
	Dwarf_Word size;
	struct unit *unit;
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
		    !index_add(&dwarf->index, start, start + size, unit - dwarf->units))
			return false;
	}
	return true;
}

/*
 * What .debug_aranges says needs no look into the description of a unit, which is ten times
 * dearer. Not all compilers write it: the other units are asked themselves.
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
	index_sort(&dwarf->index);
}

/* Step to the next sibling; false at the end and where the tree is broken. */
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

/* Whether functions with code can be inside. Those of local classes and lambdas
 * are inside functions; these are passed over until one is missed.
 */
static bool is_scope(int tag, bool deep)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return deep;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return true;
	default:
		return false;
	}
}

static bool index_functions(struct shstk_dwarf *dwarf, struct unit *unit, Dwarf_Die *parent,
			    int depth)
{
	Dwarf_Die die;
	int tag;

	if (depth > DEPTH_MAX || !first_child(dwarf, parent, &die))
		return true;
	do {
		tag = dwarf_tag(&die);
		if (tag == DW_TAG_subprogram &&
		    !add_ranges(dwarf, &unit->funcs, unit, &die, dwarf_dieoffset(&die)))
			return false;
		if (is_scope(tag, unit->deep) && !index_functions(dwarf, unit, &die, depth + 1))
			return false;
	} while (next_sibling(dwarf, &die));
	return true;
}

/* The root of the unit's description. */
static Dwarf_Die *root_of(struct unit *unit)
{
	return unit->split ? &unit->split->die : &unit->die;
}

/* Find the description of which @unit is the skeleton. False: there is none. */
static bool open_split(struct shstk_dwarf *dwarf, struct unit *unit)
{
	if (unit->split_tried)
		return unit->split;
	unit->split_tried = true;
	if (!dwarf->splits)
		dwarf->splits = shstk_splits_create(dwarf->elf, dwarf->place, dwarf->path);
	if (dwarf->splits)
		unit->split = shstk_split_open(dwarf->splits, &unit->die);
	return unit->split;
}

static void load_unit(struct shstk_dwarf *dwarf, struct unit *unit, bool deep)
{
	unit->loaded = true;
	unit->deep = deep;
	unit->funcs.nr = 0;
	dwarf->budget = WALK_MAX;
	index_functions(dwarf, unit, root_of(unit), 0);
	index_sort(&unit->funcs);
}

static struct unit *find_unit(struct shstk_dwarf *dwarf, uint64_t addr)
{
	const struct code_range *range = index_find(&dwarf->index, addr);

	return range ? dwarf->units + range->value : NULL;
}

static const struct code_range *find_function(struct shstk_dwarf *dwarf, struct unit *unit,
					      uint64_t addr)
{
	const struct code_range *range;

	if (unit->skeleton && !open_split(dwarf, unit))
		return NULL;
	if (!unit->loaded)
		load_unit(dwarf, unit, false);
	range = index_find(&unit->funcs, addr);
	if (!range && !unit->deep) {
		load_unit(dwarf, unit, true);
		range = index_find(&unit->funcs, addr);
	}
	return range;
}

static bool covers(struct shstk_dwarf *dwarf, const struct unit *unit, Dwarf_Die *die,
		   uint64_t addr)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	unsigned int n;

	for (n = 0; n < RANGES_MAX && spend(dwarf, RANGE_COST); n++) {
		off = next_range(unit, die, off, &base, &lo, &hi);
		if (off <= 0)
			return false;
		if (addr >= lo && addr < hi)
			return true;
	}
	return false;
}

/* Of the children of @die the one that covers @addr and is or may hold an
 * inlined call.
 */
static bool covering_child(struct shstk_dwarf *dwarf, const struct unit *unit, Dwarf_Die *die,
			   uint64_t addr, Dwarf_Die *ret)
{
	int tag;

	if (!first_child(dwarf, die, ret))
		return false;
	do {
		tag = dwarf_tag(ret);
		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    covers(dwarf, unit, ret, addr))
			return true;
	} while (next_sibling(dwarf, ret));
	return false;
}

/* Fill @calls with the inlined calls at @addr, outermost first. */
static unsigned int inlined_calls(struct shstk_dwarf *dwarf, const struct unit *unit,
				  Dwarf_Die *func, uint64_t addr, Dwarf_Die *calls,
				  unsigned int max)
{
	Dwarf_Die die = *func, child;
	unsigned int n = 0;
	int depth;

	dwarf->budget = LOOKUP_MAX;
	for (depth = 0; depth < 2 * SHSTK_FRAMES_MAX && n < max; depth++) {
		if (!covering_child(dwarf, unit, &die, addr, &child))
			break;
		if (dwarf_tag(&child) == DW_TAG_inlined_subroutine)
			calls[n++] = child;
		die = child;
	}
	return n;
}

static const char *string_attr(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attr));
}

static unsigned int number_attr(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr_integrate(die, name, &attr), &value) || value > UINT32_MAX)
		return 0;
	return value;
}

static const char *linkage_name(Dwarf_Die *die)
{
	const char *name = string_attr(die, DW_AT_linkage_name);

	return name ? name : string_attr(die, DW_AT_MIPS_linkage_name);
}

/* "foo" and "foo.constprop.0", "foo.cold" are the same function. */
static bool is_clone(const char *sym, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(sym, name, len) && (!sym[len] || sym[len] == '.');
}

/*
 * A mangled name says most. A function that has none is shown as the symbol
 * table exports it ("read", not "__GI___libc_read").
 */
static const char *best_name(Dwarf_Die *die, const struct shstk_sym *sym)
{
	const char *linkage = linkage_name(die);
	const char *name = string_attr(die, DW_AT_name);

	if (linkage && shstk_is_mangled(linkage))
		return linkage;
	if (sym && (!name || !is_clone(sym->name, name)))
		return sym->name;
	return name ? name : linkage;
}

/* Append "name::". */
static bool add_scope(struct name_text *text, const char *name)
{
	size_t len = strlen(name);

	if (len + 2 > sizeof(text->p) - text->len)
		return false;
	memcpy(text->p + text->len, name, len);
	memcpy(text->p + text->len + len, "::", 2);
	text->len += len + 2;
	return true;
}

/*
 * The namespaces and classes around the function at @offset: of the children of
 * @scope the last one that does not lie behind it holds it, and so on down.
 * Appends "outer::inner::" to @text; false: it was not found.
 */
static bool find_scope(struct shstk_dwarf *dwarf, Dwarf_Die *scope, Dwarf_Off offset,
		       struct name_text *text, int depth)
{
	Dwarf_Die die, next;
	const char *name;

	if (depth > DEPTH_MAX || !first_child(dwarf, scope, &next))
		return false;
	do {
		die = next;
	} while (next_sibling(dwarf, &next) && dwarf_dieoffset(&next) <= offset);
	if (dwarf_dieoffset(&die) == offset)
		return true;
	if (!is_scope(dwarf_tag(&die), false))
		return false;
	name = dwarf_diename(&die);
	return add_scope(text, name ? name : "(anonymous namespace)") &&
	       find_scope(dwarf, &die, offset, text, depth + 1);
}

/* Where a function was declared: @die itself, or what it refers to. */
static bool find_declaration(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Die to;

	*ret = *die;
	for (int hops = 0; hops < REFERENCES_MAX; hops++) {
		if (!dwarf_attr(ret, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(ret, DW_AT_specification, &attr))
			return true;
		if (!dwarf_formref_die(&attr, &to))
			return false;
		*ret = to;
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
 * A static C++ function that was inlined everywhere has neither a symbol nor, with
 * GCC, a mangled name: it is called by its scopes, "app::dot". NULL: it has none.
 */
static const char *scoped_name(struct shstk_dwarf *dwarf, struct unit *unit, Dwarf_Die *die,
			       const char *name)
{
	Dwarf_Die declaration, root;
	size_t len = strlen(name);
	struct name_text text;

	text.len = 0;
	if (!is_cplusplus(dwarf_srclang(root_of(unit))) || !find_declaration(die, &declaration) ||
	    !dwarf_diecu(&declaration, &root, NULL, NULL))
		return NULL;
	dwarf->budget = LOOKUP_MAX;
	if (!find_scope(dwarf, &root, dwarf_dieoffset(&declaration), &text, 0) || !text.len ||
	    len > sizeof(text.p) - text.len)
		return NULL;
	memcpy(text.p + text.len, name, len);
	text.len += len;
	return dwarf->opts->full_names ? shstk_pool_text(dwarf->pool, text.p, text.len) :
					 shstk_shorten(dwarf->pool, text.p, text.len);
}

static bool name_frame(struct shstk_dwarf *dwarf, struct unit *unit, Dwarf_Die *die,
		       const struct shstk_sym *sym, struct shstk_symframe *frame)
{
	const char *name = best_name(die, sym);

	frame->function = NULL;
	if (!name)
		name = "[inlined]";
	else if (!sym && !shstk_is_mangled(name))
		frame->function = scoped_name(dwarf, unit, die, name);
	if (!frame->function)
		frame->function = shstk_demangle(dwarf->pool, name, dwarf->opts->full_names);
	frame->linkage = shstk_pool_text(dwarf->pool, name, strlen(name));
	frame->start_line = number_attr(die, DW_AT_decl_line);
	return frame->function && frame->linkage;
}

/*
 * A file's name as debuggers show it: DWARF 5 may leave it relative to the directory of the
 * compilation, and so does libdw.
 */
static const char *file_text(struct shstk_dwarf *dwarf, struct unit *unit, const char *file)
{
	const char *dir = *file == '/' ? NULL : string_attr(&unit->die, DW_AT_comp_dir);
	char path[PATH_MAX];
	int len;

	if (!dir || *dir != '/')
		return shstk_pool_text(dwarf->pool, file, strlen(file));
	len = snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (len < 0 || len >= (int)sizeof(path))
		return shstk_pool_text(dwarf->pool, file, strlen(file));
	return shstk_pool_text(dwarf->pool, path, len);
}

static void line_of_address(struct shstk_dwarf *dwarf, struct unit *unit, uint64_t addr,
			    struct shstk_symframe *frame)
{
	Dwarf_Line *line;
	const char *file;
	int nr;

	if (dwarf->opts->no_lines)
		return;
	line = dwarf_getsrc_die(&unit->die, addr);
	file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (!file)
		return;
	frame->file = file_text(dwarf, unit, file);
	if (!dwarf_lineno(line, &nr) && nr > 0)
		frame->line = nr;
}

static void line_of_call(struct shstk_dwarf *dwarf, struct unit *unit, Dwarf_Die *call,
			 struct shstk_symframe *frame)
{
	unsigned int index = number_attr(call, DW_AT_call_file);
	Dwarf_Files *files;
	const char *file;
	size_t nr;

	if (dwarf->opts->no_lines || dwarf_getsrcfiles(&unit->die, &files, &nr) || index >= nr)
		return;
	file = dwarf_filesrc(files, index, NULL, NULL);
	if (!file)
		return;
	frame->file = file_text(dwarf, unit, file);
	frame->line = number_attr(call, DW_AT_call_line);
}

unsigned int shstk_dwarf_find(struct shstk_dwarf *dwarf, uint64_t addr, const struct shstk_sym *sym,
			      struct shstk_resolved *ret)
{
	struct unit *unit = find_unit(dwarf, addr);
	struct shstk_symframe *frames = ret->frames;
	Dwarf_Die func, calls[SHSTK_FRAMES_MAX - 1];
	const struct code_range *range;
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

/* NULL if it has no debug information, or its size is not fit to be unpacked. */
static Dwarf *begin(struct shstk_dwarf *dwarf, Elf *elf)
{
	if (!shstk_elf_bounded(elf))
		return NULL;
	shstk_elf_unpack(elf, !dwarf->opts->no_lines, &dwarf->unpacked);
	return dwarf_begin_elf(elf, DWARF_C_READ, NULL);
}

/* Debug packages share descriptions between files in a third one, named by its
 * build id and an absolute path. Without it most names are missing.
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
	if (!dwarf->alt_elf || dwelf_elf_gnu_build_id(dwarf->alt_elf, &found) != size ||
	    memcmp(found, id, size))
		return false;
	dwarf->alt = begin(dwarf, dwarf->alt_elf);
	if (dwarf->alt)
		dwarf_setalt(dwarf->dbg, dwarf->alt);
	return dwarf->alt;
}

struct shstk_dwarf *shstk_dwarf_create(struct shstk_pool *pool, Elf *elf,
				       const struct shstk_debugplace *place, const char *path,
				       const struct shstk_symbols_opts *opts)
{
	struct shstk_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf)
		return NULL;
	dwarf->pool = pool;
	dwarf->opts = opts;
	dwarf->elf = elf;
	dwarf->place = place;
	dwarf->path = path;
	dwarf->alt_fd = -1;
	dwarf->dbg = begin(dwarf, elf);
	if (!dwarf->dbg || !open_alt(dwarf, place)) {
		shstk_dwarf_destroy(dwarf);
		return NULL;
	}
	index_units(dwarf);
	return dwarf;
}

size_t shstk_dwarf_missing(const struct shstk_dwarf *dwarf, const char **first)
{
	return dwarf->splits ? shstk_splits_missing(dwarf->splits, first) : 0;
}

void shstk_dwarf_destroy(struct shstk_dwarf *dwarf)
{
	size_t i;

	if (!dwarf)
		return;
	for (i = 0; i < dwarf->nr_units; i++) {
		free(dwarf->units[i].funcs.ranges);
		shstk_split_close(dwarf->units[i].split);
	}
	free(dwarf->units);
	shstk_splits_destroy(dwarf->splits);
	free(dwarf->index.ranges);
	dwarf_end(dwarf->dbg);
	dwarf_end(dwarf->alt);
	elf_end(dwarf->alt_elf);
	shstk_unpacked_free(dwarf->unpacked);
	if (dwarf->alt_fd >= 0)
		close(dwarf->alt_fd);
	free(dwarf);
}
