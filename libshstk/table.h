/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table.h - the unwind rules of one section, compiled on demand.
 *
 * The functions of a section, sorted by address, are cut into chunks of CHUNK_FDES
 * functions. The first few lookups in a chunk read the section itself. A later lookup
 * compiles the chunk, also in a signal handler, into memory that was reserved before, and
 * publishes it by one compare-and-swap. So a program pays for the code that it runs, not
 * for the code that it maps.
 */
#ifndef SHSTK_TABLE_H
#define SHSTK_TABLE_H

#include "arena.h"
#include "rule.h"
#include "sframe.h"

#define CHUNK_FDES 64 /* functions of a chunk */
#define TABLE_ASKED 8 /* lookups in a chunk before it is compiled */

struct table_chunk;

/*
 * The start of a function, relative to the image, and the offset of its FDE in the section or,
 * for .sframe, the number of the function in the section.
 */
struct index_entry {
	uint32_t start;
	uint32_t offset;
};

/**
 * struct table - the rules of one section
 * @sec: the section, if it is .eh_frame or .debug_frame.
 * @sf: the section, if it is .sframe; otherwise sf.s.size is 0.
 * @img: image that the section belongs to.
 * @hdr: the sorted search table of .eh_frame_hdr, pairs of 32-bit offsets from
 *	@hdr_vaddr; NULL if there is none.
 * @hdr_vaddr: virtual address of .eh_frame_hdr.
 * @index: the index that was made for a section without a search table. If @index and @hdr
 *	are NULL, the section is an .sframe whose functions are sorted.
 * @index_bytes: bytes of memory of @index.
 * @nfde: number of functions.
 * @asked: number of lookups in a chunk before it is compiled, 255 at most.
 * @chunk: for each chunk the compiled chunk, or the number of lookups in it so far.
 * @arena: memory of the compiled chunks and of the array @chunk.
 */
struct table {
	struct cfi_section sec;
	struct sframe sf;
	const struct elf_image *img;
	const uint8_t *hdr;
	uint64_t hdr_vaddr;
	struct index_entry *index;
	size_t index_bytes;
	size_t nfde;
	unsigned int asked;
	struct table_chunk **chunk;
	struct arena arena;
};

/*
 * These functions prepare @t for .eh_frame, .debug_frame or .sframe of @img. They return 0, -ENOENT
 * if the image has no such section that can be used, or -ENOMEM.
 */
int table_init_eh_frame(struct table *t, const struct elf_image *img);
int table_init_debug_frame(struct table *t, const struct elf_image *img);
int table_init_sframe(struct table *t, const struct elf_image *img);
void table_deinit(struct table *t);

/* Returns the rule at virtual address @vaddr, or RULE_NONE if the table has none. */
uint64_t table_rule(struct table *t, uint64_t vaddr);

/*
 * Reads the whole row at @vaddr, which is needed where the rule is RULE_FULL. Returns 0, or a
 * negative enum shstk_end.
 */
int table_row(struct table *t, uint64_t vaddr, struct cfi_row *row);

/* Compiles all chunks now, for measurements and tests. */
void table_compile(struct table *t);

/* Returns the bytes of memory of the compiled rules and of @t->index. */
size_t table_bytes(const struct table *t);

#endif
