/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * entries.h - finds the functions among the entries (DIEs) of a unit.
 *
 * libdw can do that, too, but it reads the attributes of an entry anew for each question about it,
 * and those of each entry that is passed over. A unit of C++ with 11,000 entries below its scopes
 * took 12.3 million instructions by libdw and takes 3.4 million here.
 */
#ifndef SHSTK_SYMBOL_ENTRIES_H
#define SHSTK_SYMBOL_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"

#define SHSTK_ENTRIES_DEPTH 64 /* levels of the tree that are looked into */

struct shstk_account;

/**
 * struct shstk_unit - where the entries of a unit are, and how they are written
 * @header: begin of the unit, which references are relative to.
 * @entries: the entries, from the root up to the end of the unit.
 * @abbrevs: the unit's table of abbreviations, and what follows it in the section.
 * @version: version of DWARF.
 * @address_size: bytes of an address.
 * @offset_size: bytes of an offset in a section, 4 or 8.
 */
struct shstk_unit {
	const uint8_t *header;
	struct shstk_bytes entries;
	struct shstk_bytes abbrevs;
	uint8_t version;
	uint8_t address_size;
	uint8_t offset_size;
};

/*
 * Returns whether an entry with this tag can contain functions with code. Functions of local classes
 * and lambdas are inside functions; with @deep these can, too.
 */
bool shstk_is_scope(unsigned int tag, bool deep);

/*
 * Is given the distance of a function's entry from the root, in bytes. Returns false if the search is
 * to end.
 */
typedef bool shstk_take_function(void *arg, size_t distance);

/*
 * Hands each function of a unit that has code to @take, outer ones before those inside them. Memory
 * and time are drawn from @account. A tree that is broken, or for which memory or time runs out, is
 * ignored from there on.
 */
void shstk_functions_each(const struct shstk_unit *unit, bool deep, struct shstk_account *account,
			  shstk_take_function *take, void *arg);

#endif /* SHSTK_SYMBOL_ENTRIES_H */
