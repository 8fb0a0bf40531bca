/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table_index.h - finds the functions that a section describes by their address.
 *
 * It uses a sorted table in the file if there is one: the linker's .eh_frame_hdr, or an
 * .sframe that is sorted. Otherwise it reads the section once and makes an index of it.
 */
#ifndef SHSTK_TABLE_INDEX_H
#define SHSTK_TABLE_INDEX_H

#include "table.h"

/* Uses the linker's search table @h. Returns false if the table does not have the usual form. */
bool index_use_hdr(struct table *t, const struct section *h);

/*
 * Makes an index of .eh_frame or .debug_frame. Returns 0, -ENOENT if the section has no function,
 * or -ENOMEM.
 */
int index_build(struct table *t);

/*
 * Uses the .sframe section in @t->sf as it is if it is sorted, and makes an index of it if not.
 * Returns 0, or -ENOMEM.
 */
int index_sframe(struct table *t);

void index_free(struct table *t);

/* Returns the last function that starts at or below @vaddr, or @t->nfde if there is none. */
size_t index_search(const struct table *t, uint64_t vaddr);

/* Returns the start address of function @i. */
uint64_t index_start(const struct table *t, size_t i);

/* Returns the offset of function @i's entry in the section; in .sframe, its number there. */
uint64_t index_offset(const struct table *t, size_t i);

#endif
