/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table_index.h - which functions a section describes, by address.
 *
 * That is a table in the file where there is one: the linker's .eh_frame_hdr, or an
 * .sframe that is sorted. Otherwise the section is read once, and an index made of it.
 */
#ifndef SHSTK_TABLE_INDEX_H
#define SHSTK_TABLE_INDEX_H

#include "table.h"

/* Use the linker's search table @h. False: it has not the usual form. */
bool index_use_hdr(struct table *t, const struct section *h);

/* Make an index of .eh_frame or .debug_frame. 0; -ENOENT: there is no function; -ENOMEM. */
int index_build(struct table *t);

/* Use an .sframe, which t->sf has, as it is if it is sorted. 0, or -ENOMEM. */
int index_sframe(struct table *t);

void index_free(struct table *t);

/* The last function that starts at or below @vaddr; nfde if there is none. */
size_t index_search(const struct table *t, uint64_t vaddr);

/* Start address of function @i. */
uint64_t index_start(const struct table *t, size_t i);

/* The offset of its entry in the section; of .sframe, its number there. */
uint64_t index_offset(const struct table *t, size_t i);

#endif
