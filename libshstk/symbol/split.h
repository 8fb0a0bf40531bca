/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * split.h - units whose debug information is not in the program but in .dwo files, or in a .dwp
 * file that holds many of them (gcc's and clang's -gsplit-dwarf).
 */
#ifndef SHSTK_SYMBOL_SPLIT_H
#define SHSTK_SYMBOL_SPLIT_H

#include <elfutils/libdw.h>
#include <stdint.h>

#include "budget.h"
#include "debugfile.h"
#include "elf_file.h"

struct shstk_splits;

/**
 * struct shstk_split - the description of one unit, of which the program has only a skeleton
 * @dbg: libdw's view of the unit's own sections.
 * @vet: state of the checks of these sections (vet.h).
 * @die: the unit's root entry in @dbg. Lines and file names are in the skeleton.
 * @base: address to which the unit's ranges are relative, unless they say otherwise.
 * @rnglists: the unit's range lists of DWARF 5, or NULL.
 * @rnglists_size: bytes in @rnglists.
 * @info: the unit's entries (.debug_info.dwo).
 * @info_size: bytes in @info.
 * @elf: the unit's sections, as an ELF file that exists in memory only.
 * @image: headers of @elf, and the bytes of sections that were copied.
 */
struct shstk_split {
	Dwarf *dbg;
	struct shstk_vet *vet;
	Dwarf_Die die;
	Dwarf_Addr base;
	const uint8_t *rnglists;
	size_t rnglists_size;
	const uint8_t *info;
	size_t info_size;
	Elf *elf;
	uint8_t *image;
};

/*
 * Makes the finder of descriptions for the skeletons in @elf, which is the program at @path (NULL:
 * it has no path) or its debug file. Memory and time are drawn from @account. All that is passed
 * stays the caller's, and must stay. Returns NULL when memory runs out.
 */
struct shstk_splits *shstk_splits_create(Elf *elf, const struct shstk_debugplace *place,
					 const char *path, struct shstk_account *account);
void shstk_splits_destroy(struct shstk_splits *splits);
/*
 * Finds and reads the description of the unit whose skeleton has the root @skeleton. Returns NULL
 * if there is none that belongs to it. shstk_split_close() must be called before
 * shstk_splits_destroy().
 */
struct shstk_split *shstk_split_open(struct shstk_splits *splits, Dwarf_Die *skeleton);
void shstk_split_close(struct shstk_split *split);
/* Does what dwarf_ranges() does, for an entry in @split. */
ptrdiff_t shstk_split_ranges(const struct shstk_split *split, Dwarf_Die *die, ptrdiff_t off,
			     Dwarf_Addr *base, Dwarf_Addr *lo, Dwarf_Addr *hi);
/* Returns how many descriptions were not found; @ret receives the path of the first of them. */
size_t shstk_splits_missing(const struct shstk_splits *splits, const char **ret);

/**
 * struct shstk_dwp_part - where one unit's bytes of one section lie
 * @offset: offset of the first byte in the section.
 * @size: bytes; 0: the unit has none.
 */
struct shstk_dwp_part {
	uint32_t offset;
	uint32_t size;
};

/* Sections that are read here and of which a .dwp file's index gives each unit's part. */
enum shstk_dwp_kind {
	SHSTK_DWP_INFO,
	SHSTK_DWP_ABBREV,
	SHSTK_DWP_STR_OFFSETS,
	SHSTK_DWP_RNGLISTS,
	SHSTK_DWP_KINDS,
};

/* Looks up unit @id in the bytes of a .debug_cu_index section. Returns false if it is not there. */
bool shstk_dwp_find(const void *index, size_t size, uint64_t id,
		    struct shstk_dwp_part ret[SHSTK_DWP_KINDS]);

#endif /* SHSTK_SYMBOL_SPLIT_H */
