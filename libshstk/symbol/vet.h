/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vet.h - checks of debug information before libdw reads it.
 *
 * libdw has no bound on what it takes: it keeps a record for each unit, and for each unit the
 * abbreviations that it passed over, and it goes through all attributes of all entries that it
 * passes over in one call. So units and abbreviations are counted first, and the memory that libdw
 * will keep is taken from the file's account. Input that no compiler writes, and input that takes
 * long for each byte, is refused.
 */
#ifndef SHSTK_SYMBOL_VET_H
#define SHSTK_SYMBOL_VET_H

#include <stdbool.h>
#include <stdint.h>

struct Elf;
struct shstk_account;
struct shstk_unit;
struct shstk_vet;

/*
 * Checks the debug information of @elf, whose sections are unpacked. Returns NULL if libdw must not
 * read it.
 */
struct shstk_vet *shstk_vet_create(struct Elf *elf, struct shstk_account *account);
void shstk_vet_destroy(struct shstk_vet *vet);

/*
 * Checks the unit whose first entry is at @offset; to be called before the unit's entries are read.
 * Returns where they are, or NULL if they must not be read.
 */
const struct shstk_unit *shstk_vet_unit(struct shstk_vet *vet, uint64_t offset);

/*
 * Take the memory that dwarf_getaranges() needs, and give back what it does not keep. They are to be
 * called before and after it; shstk_vet_aranges_begin() returns false if it must not be called.
 */
bool shstk_vet_aranges_begin(struct shstk_vet *vet);
void shstk_vet_aranges_end(struct shstk_vet *vet);

#endif /* SHSTK_SYMBOL_VET_H */
