// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * split.c - descriptions of units in .dwo and .dwp files.
 *
 * libdw would open these files itself, by names that a foreign program chose: that can block for
 * ever, and libdw knows no .dwp files before 0.191. So they are found here, in the same way as
 * debug files. libdw gets an ELF file that exists in memory only, with the sections of one unit
 * under their ordinary names: the sections of the .dwo or .dwp file, and those parts of the
 * program's own sections that the unit refers to. In these parts the unit's numbers count from the
 * start, which is what libdw assumes of a unit that names no start.
 *
 * A unit belongs to a skeleton if it has the 64-bit identification that the skeleton names.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "budget.h"
#include "elf_file.h"
#include "split.h"
#include "unpack_debug.h"
#include "vet.h"

#define SPLIT_COST (32u << 10) /* about the bytes that libdw takes for a file */
#define UNITS_MAX (1u << 16) /* most units of one file that are looked at */

struct section_bytes {
	const uint8_t *p;
	size_t size;
};

/* The sections that a unit is composed of. */
enum part {
	INFO,
	ABBREV,
	STR,
	STR_OFFSETS,
	RNGLISTS,
	ADDR,
	RANGES,
	PARTS,
};

static const char *const part_names[PARTS] = {
	".debug_info",	   ".debug_abbrev", ".debug_str",    ".debug_str_offsets",
	".debug_rnglists", ".debug_addr",   ".debug_ranges",
};

/**
 * struct shstk_splits - the separate descriptions of one program's units
 * @elf: the program or its debug file.
 * @place: where the program's debug files are.
 * @path: path of the program, or NULL.
 * @account: account of the program.
 * @addr: .debug_addr of the program.
 * @ranges: .debug_ranges of the program.
 * @dwp_tried: a .dwp file was looked for.
 * @dwp_fd: descriptor of the .dwp file, or -1.
 * @dwp: the .dwp file; NULL if there is none.
 * @dwp_unpacked: unpacked sections of the .dwp file.
 * @index: .debug_cu_index of the .dwp file.
 * @parts: sections of the .dwp file.
 * @missing: number of units whose file was not found.
 * @first: path of the first file that was not found, or NULL.
 */
struct shstk_splits {
	Elf *elf;
	const struct shstk_debugplace *place;
	const char *path;
	struct shstk_account *account;
	struct section_bytes addr;
	struct section_bytes ranges;
	bool dwp_tried;
	int dwp_fd;
	Elf *dwp;
	struct shstk_unpacked *dwp_unpacked;
	struct section_bytes index;
	struct section_bytes parts[PARTS];
	size_t missing;
	char *first;
};

/* What a skeleton says about its unit. */
struct skeleton {
	uint64_t id;
	const char *name;
	const char *dir;
	uint64_t addr_base;
	uint64_t ranges_base;
	Dwarf_Addr base;
};

static struct section_bytes section(Elf *elf, const char *wanted)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;

	while ((scn = shstk_elf_next_named(elf, scn, wanted, &shdr))) {
		if (shdr.sh_type == SHT_NOBITS || shdr.sh_flags & SHF_COMPRESSED)
			continue;
		data = elf_getdata(scn, NULL);
		if (data && data->d_buf)
			return (struct section_bytes){ data->d_buf, data->d_size };
	}
	return (struct section_bytes){ 0 };
}

/* Finds the sections of a .dwo or .dwp file. */
static void split_sections(Elf *elf, struct section_bytes parts[PARTS])
{
	char name[32];

	memset(parts, 0, PARTS * sizeof(*parts));
	for (int i = INFO; i <= RNGLISTS; i++) {
		snprintf(name, sizeof(name), "%s.dwo", part_names[i]);
		parts[i] = section(elf, name);
	}
}

/* Returns the bytes of @from from @offset on, at most @size. */
static struct section_bytes part_of(struct section_bytes from, uint64_t offset, uint64_t size)
{
	if (!from.p || offset > from.size)
		return (struct section_bytes){ 0 };
	from.p += offset;
	from.size -= offset;
	if (from.size > size)
		from.size = size;
	return from;
}

struct shstk_splits *shstk_splits_create(Elf *elf, const struct shstk_debugplace *place,
					 const char *path, struct shstk_account *account)
{
	struct shstk_splits *splits = calloc(1, sizeof(*splits));

	if (!splits)
		return NULL;
	splits->elf = elf;
	splits->place = place;
	splits->path = path;
	splits->addr = section(elf, ".debug_addr");
	splits->ranges = section(elf, ".debug_ranges");
	splits->dwp_fd = -1;
	splits->account = account;
	return splits;
}

void shstk_splits_destroy(struct shstk_splits *splits)
{
	if (!splits)
		return;
	elf_end(splits->dwp);
	shstk_unpacked_free(splits->dwp_unpacked);
	if (splits->dwp_fd >= 0)
		close(splits->dwp_fd);
	free(splits->first);
	free(splits);
}

/* ---- The unit as an ELF file in memory ---- */

/*
 * Writes the headers of a file with these sections. The sections get their bytes when the file is
 * open. Returns the number of bytes written.
 */
static size_t write_headers(uint8_t *image)
{
	const size_t names_at = sizeof(Elf64_Ehdr) + (PARTS + 2) * sizeof(Elf64_Shdr);
	Elf64_Shdr shdr = { .sh_type = SHT_PROGBITS, .sh_size = 1, .sh_addralign = 1 };
	Elf64_Ehdr ehdr = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = PARTS + 2,
		.e_shstrndx = PARTS + 1,
	};
	size_t at = names_at + 1;

	memcpy(image, &ehdr, sizeof(ehdr));
	for (int i = 0; i < PARTS; i++) {
		shdr.sh_name = at - names_at;
		memcpy(image + sizeof(ehdr) + (i + 1) * sizeof(shdr), &shdr, sizeof(shdr));
		strcpy((char *)image + at, part_names[i]);
		at += strlen(part_names[i]) + 1;
	}
	shdr = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_addralign = 1 };
	shdr.sh_size = at - names_at;
	memcpy(image + sizeof(ehdr) + (PARTS + 1) * sizeof(shdr), &shdr, sizeof(shdr));
	return at;
}

/* The most bytes that write_headers() writes. */
#define HEADERS (sizeof(Elf64_Ehdr) + (PARTS + 2) * sizeof(Elf64_Shdr) + PARTS * 24)

/*
 * Gives a section its bytes, in libelf's own copy. Empty sections are hidden. Returns false on
 * failure.
 */
static bool fill_section(Elf *elf, enum part part, struct section_bytes with)
{
	Elf_Scn *scn = elf_getscn(elf, part + 1);
	GElf_Shdr shdr;

	if (!gelf_getshdr(scn, &shdr) || !shstk_elf_replace(scn, with.p, with.size))
		return false;
	if (!with.size)
		shdr.sh_type = SHT_NOBITS;
	shdr.sh_size = with.size;
	return gelf_update_shdr(scn, &shdr);
}

/* Finds the unit with that identification, among others and units that contain types. */
static bool find_unit(Dwarf *dbg, uint64_t id, Dwarf_Die *ret)
{
	Dwarf_CU *cu = NULL;
	uint64_t have;
	uint8_t type;

	for (unsigned int n = 0; n < UNITS_MAX; n++) {
		if (dwarf_get_units(dbg, cu, &cu, NULL, NULL, ret, NULL))
			return false;
		if (!dwarf_cu_info(cu, NULL, &type, NULL, NULL, &have, NULL, NULL) &&
		    type == DW_UT_split_compile && have == id)
			return true;
	}
	return false;
}

void shstk_split_close(struct shstk_split *split)
{
	if (!split)
		return;
	shstk_vet_destroy(split->vet);
	dwarf_end(split->dbg);
	elf_end(split->elf);
	free(split->image);
	free(split);
}

/* Copies the bytes of @parts to @to, and lets @parts refer to the copies. */
static void copy_parts(uint8_t *to, struct section_bytes parts[PARTS])
{
	for (int i = INFO; i <= RNGLISTS; i++) {
		if (!parts[i].size)
			continue;
		memcpy(to, parts[i].p, parts[i].size);
		parts[i].p = to;
		to += parts[i].size;
	}
}

static bool begin(struct shstk_split *split, const struct section_bytes parts[PARTS], uint64_t id,
		  struct shstk_account *account)
{
	split->elf = shstk_elf_memory((char *)split->image, HEADERS);
	if (!split->elf)
		return false;
	for (int i = 0; i < PARTS; i++)
		if (!fill_section(split->elf, i, parts[i]))
			return false;
	split->dbg = dwarf_begin_elf(split->elf, DWARF_C_READ, NULL);
	if (!split->dbg)
		return false;
	split->vet = shstk_vet_create(split->elf, account);
	return split->vet && find_unit(split->dbg, id, &split->die);
}

/*
 * Makes the description of one unit from its parts. @copied is the number of bytes in parts that go
 * away and must be copied; 0 if they stay. Returns NULL if the unit is not there or cannot be read.
 */
static struct shstk_split *compose(const struct shstk_splits *splits,
				   const struct skeleton *skeleton,
				   struct section_bytes parts[PARTS], size_t copied)
{
	struct shstk_split *split = NULL;

	if (shstk_account_take(splits->account, SPLIT_COST + copied))
		split = calloc(1, sizeof(*split));
	if (!split)
		return NULL;
	split->image = calloc(1, HEADERS + copied);
	if (!split->image) {
		free(split);
		return NULL;
	}
	write_headers(split->image);
	if (copied)
		copy_parts(split->image + HEADERS, parts);
	parts[ADDR] = part_of(splits->addr, skeleton->addr_base, UINT64_MAX);
	parts[RANGES] = part_of(splits->ranges, skeleton->ranges_base, UINT64_MAX);
	split->base = skeleton->base;
	split->rnglists = parts[RNGLISTS].p;
	split->rnglists_size = parts[RNGLISTS].size;
	split->info = parts[INFO].p;
	split->info_size = parts[INFO].size;
	if (begin(split, parts, skeleton->id, splits->account))
		return split;
	shstk_split_close(split);
	return NULL;
}

/* ---- Files ---- */

/* Opens a debug file and unpacks its sections. Returns its descriptor, or -1. */
static int open_file(const struct shstk_splits *splits, const char *path, Elf **elf,
		     struct shstk_unpacked **unpacked)
{
	int fd = shstk_debugfile_named(splits->place, path);

	if (fd < 0)
		return -1;
	*elf = shstk_elf_begin(fd);
	if (*elf && shstk_elf_afford(*elf, shstk_elf_copied(fd), false, splits->account)) {
		shstk_elf_unpack(*elf, false, unpacked);
		return fd;
	}
	elf_end(*elf);
	*elf = NULL;
	close(fd);
	return -1;
}

static struct shstk_split *open_dwo(struct shstk_splits *splits, const struct skeleton *skeleton,
				    const char *path)
{
	struct shstk_unpacked *unpacked = NULL;
	struct shstk_split *split = NULL;
	uint64_t before = splits->account->memory, unpacking;
	struct section_bytes parts[PARTS];
	size_t size = 0;
	Elf *elf = NULL;
	int fd = open_file(splits, path, &elf, &unpacked);

	unpacking = splits->account->memory - before;
	if (fd < 0) {
		shstk_account_give(splits->account, unpacking);
		return NULL;
	}
	split_sections(elf, parts);
	for (int i = INFO; i <= RNGLISTS; i++)
		size += parts[i].size;
	if (parts[INFO].size)
		split = compose(splits, skeleton, parts, size);
	elf_end(elf);
	shstk_unpacked_free(unpacked);
	shstk_account_give(splits->account, unpacking);
	close(fd);
	return split;
}

/*
 * Looks for the .dwp file beside the program, where dwp(1) and llvm-dwp write it, or in the debug
 * folders.
 */
static void find_dwp(struct shstk_splits *splits)
{
	const char *dirs = splits->place->dirs;
	char path[PATH_MAX];
	int len;

	splits->dwp_tried = true;
	if (!splits->path)
		return;
	if (snprintf(path, sizeof(path), "%s.dwp", splits->path) < (int)sizeof(path))
		splits->dwp_fd = open_file(splits, path, &splits->dwp, &splits->dwp_unpacked);
	for (; splits->dwp_fd < 0 && dirs && *dirs; dirs += len + (dirs[len] == ':')) {
		len = strcspn(dirs, ":");
		if (len && snprintf(path, sizeof(path), "%.*s%s.dwp", len, dirs, splits->path) <
				   (int)sizeof(path))
			splits->dwp_fd =
				open_file(splits, path, &splits->dwp, &splits->dwp_unpacked);
	}
	if (!splits->dwp)
		return;
	splits->index = section(splits->dwp, ".debug_cu_index");
	split_sections(splits->dwp, splits->parts);
}

static struct shstk_split *from_dwp(struct shstk_splits *splits, const struct skeleton *skeleton)
{
	static const enum part parts_of_kinds[SHSTK_DWP_KINDS] = {
		[SHSTK_DWP_INFO] = INFO,
		[SHSTK_DWP_ABBREV] = ABBREV,
		[SHSTK_DWP_STR_OFFSETS] = STR_OFFSETS,
		[SHSTK_DWP_RNGLISTS] = RNGLISTS,
	};
	struct shstk_dwp_part found[SHSTK_DWP_KINDS];
	struct section_bytes parts[PARTS] = { { 0 } };
	enum part part;

	if (!splits->dwp_tried)
		find_dwp(splits);
	if (!splits->index.p ||
	    !shstk_dwp_find(splits->index.p, splits->index.size, skeleton->id, found))
		return NULL;
	parts[STR] = splits->parts[STR];
	for (int i = 0; i < SHSTK_DWP_KINDS; i++) {
		part = parts_of_kinds[i];
		parts[part] = part_of(splits->parts[part], found[i].offset, found[i].size);
	}
	return compose(splits, skeleton, parts, 0);
}

/*
 * Returns the path at which the compiler put the .dwo file, in @path. Returns false if the skeleton
 * does not say.
 */
static bool original_path(const struct skeleton *skeleton, char path[PATH_MAX])
{
	const char *dir = *skeleton->name == '/' ? "" : skeleton->dir;
	const char *slash = *skeleton->name == '/' ? "" : "/";

	return dir && snprintf(path, PATH_MAX, "%s%s%s", dir, slash, skeleton->name) < PATH_MAX &&
	       *path == '/';
}

/*
 * Opens the .dwo file where the compiler put it, else beside the program, with which it may have
 * been moved.
 */
static struct shstk_split *from_dwo(struct shstk_splits *splits, const struct skeleton *skeleton)
{
	const char *slash = splits->path ? strrchr(splits->path, '/') : NULL;
	const char *base = strrchr(skeleton->name, '/'), *name = skeleton->name;
	int folder = slash ? slash - splits->path : 0;
	struct shstk_split *split = NULL;
	char path[PATH_MAX];

	if (original_path(skeleton, path))
		split = open_dwo(splits, skeleton, path);
	if (!split && slash && *name != '/' &&
	    snprintf(path, sizeof(path), "%.*s/%s", folder, splits->path, name) < (int)sizeof(path))
		split = open_dwo(splits, skeleton, path);
	if (!split && slash && base &&
	    snprintf(path, sizeof(path), "%.*s%s", folder, splits->path, base) < (int)sizeof(path))
		split = open_dwo(splits, skeleton, path);
	return split;
}

/* ---- Skeletons ---- */

static const char *text_of(Dwarf_Die *die, unsigned int name, unsigned int old)
{
	Dwarf_Attribute attr;
	const char *text = dwarf_formstring(dwarf_attr(die, name, &attr));

	return text || !old ? text : dwarf_formstring(dwarf_attr(die, old, &attr));
}

static uint64_t number_of(Dwarf_Die *die, unsigned int name, unsigned int old)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_formudata(dwarf_attr(die, name, &attr), &value) ||
	    (old && !dwarf_formudata(dwarf_attr(die, old, &attr), &value)))
		return value;
	return 0;
}

static bool read_skeleton(Dwarf_Die *die, struct skeleton *ret)
{
	uint8_t type;

	memset(ret, 0, sizeof(*ret));
	if (dwarf_cu_info(die->cu, NULL, &type, NULL, NULL, &ret->id, NULL, NULL) ||
	    type != DW_UT_skeleton)
		return false;
	ret->name = text_of(die, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	ret->dir = text_of(die, DW_AT_comp_dir, 0);
	ret->addr_base = number_of(die, DW_AT_addr_base, DW_AT_GNU_addr_base);
	ret->ranges_base = number_of(die, DW_AT_GNU_ranges_base, 0);
	if (dwarf_lowpc(die, &ret->base))
		ret->base = 0;
	return ret->name && *ret->name;
}

struct shstk_split *shstk_split_open(struct shstk_splits *splits, Dwarf_Die *die)
{
	struct skeleton skeleton;
	struct shstk_split *split;
	char path[PATH_MAX];

	if (!read_skeleton(die, &skeleton))
		return NULL;
	split = from_dwp(splits, &skeleton);
	if (!split)
		split = from_dwo(splits, &skeleton);
	if (split)
		return split;
	splits->missing++;
	if (!splits->first && original_path(&skeleton, path))
		splits->first = strdup(path);
	return NULL;
}

size_t shstk_splits_missing(const struct shstk_splits *splits, const char **ret)
{
	*ret = splits->first;
	return splits->missing;
}

/* ---- Ranges ---- */

static bool read_uleb(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	*ret = 0;
	for (unsigned int shift = 0; p < end && shift < 63; shift += 7) {
		*ret |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p++ & 0x80))
			return true;
	}
	return false;
}

/*
 * Returns where the range list with that number starts; 0 if there is none. The header must be in
 * 32-bit form.
 */
static ptrdiff_t list_of_number(const struct shstk_split *split, uint64_t number)
{
	const size_t header = 12;
	uint32_t length, lists, at;

	if (split->rnglists_size < header)
		return 0;
	memcpy(&length, split->rnglists, sizeof(length));
	memcpy(&lists, split->rnglists + 8, sizeof(lists));
	if (length == UINT32_MAX || number >= lists ||
	    number >= (split->rnglists_size - header) / sizeof(at))
		return 0;
	memcpy(&at, split->rnglists + header + number * sizeof(at), sizeof(at));
	return at < split->rnglists_size - header ? (ptrdiff_t)(header + at) : 0;
}

/*
 * Returns where the range list of an entry starts in its section; 0 if it has none or starts at 0.
 */
static ptrdiff_t list_start(const struct shstk_split *split, Dwarf_Die *die)
{
	const uint8_t *info = split->info;
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, DW_AT_ranges, &attr))
		return 0;
	if (attr.form != DW_FORM_rnglistx)
		return dwarf_formudata(&attr, &value) || value > PTRDIFF_MAX ? 0 : value;
	if (attr.valp < info || attr.valp >= info + split->info_size ||
	    !read_uleb(attr.valp, info + split->info_size, &value))
		return 0;
	return list_of_number(split, value);
}

/*
 * libdw takes the address to which ranges are relative from the unit itself, but only the skeleton
 * has it. A list at offset 0, which only DWARF 4 can have, must be found by libdw itself: all its
 * ranges are then relative to 0, and the address is added here.
 */
ptrdiff_t shstk_split_ranges(const struct shstk_split *split, Dwarf_Die *die, ptrdiff_t off,
			     Dwarf_Addr *base, Dwarf_Addr *lo, Dwarf_Addr *hi)
{
	ptrdiff_t start, next;

	if (off)
		return dwarf_ranges(die, off, base, lo, hi);
	start = dwarf_hasattr(die, DW_AT_high_pc) ? 0 : list_start(split, die);
	*base = split->base;
	if (start > 1)
		return dwarf_ranges(die, start, base, lo, hi);
	next = dwarf_ranges(die, 0, base, lo, hi);
	if (next > 1 && !*base) {
		*lo += split->base;
		*hi += split->base;
		*base = split->base;
	}
	return next;
}
