/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * split.h - descriptions of units that are not in the program but in .dwo files, or
 * in a .dwp file that holds many of them (gcc's and clang's -gsplit-dwarf).
 */
#ifndef SHSTK_SYMBOL_SPLIT_H
#define SHSTK_SYMBOL_SPLIT_H

#include <elfutils/libdw.h>
#include <stdint.h>

#include "private.h"

struct shstk_splits;

/**
 * struct shstk_split - the description of one unit, that the program has a skeleton of
 * @dbg: libdw's view of the unit's own sections.
 * @vet: what was looked at of it before.
 * @die: the unit's root in it. Lines and file names are in the skeleton.
 * @base: address to which ranges of it are relative, unless they say otherwise.
 * @rnglists: its range lists of DWARF 5, or NULL.
 * @rnglists_size: bytes of them.
 * @info: its entries.
 * @info_size: bytes of them.
 * @elf: the sections, as an ELF file that exists in memory only.
 * @image: its headers, and the bytes of sections that were copied.
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
 * For the skeletons in @elf, that of the program at @path (NULL: it has none) or of its debug
 * file. NULL: out of memory. All that is passed stays the caller's, and must stay. Memory and
 * time are of @account.
 */
struct shstk_splits *shstk_splits_create(Elf *elf, const struct shstk_debugplace *place,
					 const char *path, struct shstk_account *account);
void shstk_splits_destroy(struct shstk_splits *splits);
/*
 * Find and read the description of which @skeleton is the root. NULL: there is none that
 * belongs to it. To be given back before @splits.
 */
struct shstk_split *shstk_split_open(struct shstk_splits *splits, Dwarf_Die *skeleton);
void shstk_split_close(struct shstk_split *split);
/* As dwarf_ranges(), of an entry in @split. */
ptrdiff_t shstk_split_ranges(const struct shstk_split *split, Dwarf_Die *die, ptrdiff_t off,
			     Dwarf_Addr *base, Dwarf_Addr *lo, Dwarf_Addr *hi);
/* How many were not found, and the path of the first of these in @ret. */
size_t shstk_splits_missing(const struct shstk_splits *splits, const char **ret);

/**
 * struct shstk_dwp_part - where one unit's bytes of one section lie
 * @offset: first byte in the section.
 * @size: bytes; 0: the unit has none.
 */
struct shstk_dwp_part {
	uint32_t offset;
	uint32_t size;
};

/* Sections that a .dwp file's index tells apart, and that are read here. */
enum shstk_dwp_kind {
	SHSTK_DWP_INFO,
	SHSTK_DWP_ABBREV,
	SHSTK_DWP_STR_OFFSETS,
	SHSTK_DWP_RNGLISTS,
	SHSTK_DWP_KINDS,
};

/* Look up unit @id in the bytes of a .debug_cu_index. False: it is not there. */
bool shstk_dwp_find(const void *index, size_t size, uint64_t id,
		    struct shstk_dwp_part ret[SHSTK_DWP_KINDS]);

#endif /* SHSTK_SYMBOL_SPLIT_H */
