/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vet.h - debug information is looked at before libdw is.
 *
 * libdw takes what it needs, and has no bound: it keeps a record for each unit, and each
 * abbreviation that it passed over for each unit, and goes through all attributes of all entries
 * that it passes over in one call. So units and abbreviations are counted first, and what libdw
 * is going to keep is taken from the file's account. What no compiler writes, and what takes long
 * for each byte, is refused.
 */
#ifndef SHSTK_SYMBOL_VET_H
#define SHSTK_SYMBOL_VET_H

#include <stdbool.h>
#include <stdint.h>

struct Elf;
struct shstk_account;
struct shstk_vet;

/* @elf: its sections are unpacked. NULL: libdw must not have it. */
struct shstk_vet *shstk_vet_create(struct Elf *elf, struct shstk_account *account);
void shstk_vet_destroy(struct shstk_vet *vet);

/* Before entries of the unit whose first entry is at @offset are read. False: leave it alone. */
bool shstk_vet_unit(struct shstk_vet *vet, uint64_t offset);

/* Before and after dwarf_getaranges(). False: leave it alone. */
bool shstk_vet_aranges_begin(struct shstk_vet *vet);
void shstk_vet_aranges_end(struct shstk_vet *vet);

#endif /* SHSTK_SYMBOL_VET_H */
