/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table.h - unwind rules of one section, compiled on demand.
 *
 * The functions of a section, sorted by address, are cut into chunks of
 * CHUNK_FDES. The first few addresses in a chunk are looked up in the section itself;
 * when more are asked for it is compiled: by whoever asks, a signal handler included,
 * into memory that was reserved beforehand, and published by one compare-and-swap. So
 * a program pays for the code it runs, not for the code it maps.
 */
#ifndef SHSTK_TABLE_H
#define SHSTK_TABLE_H

#include "arena.h"
#include "rule.h"
#include "sframe.h"

#define CHUNK_FDES 64
#define TABLE_ASKED 8

struct chunk;

/* Function start (relative to the image) and offset of its FDE, or number of its
 * SFrame function.
 */
struct index_entry {
	uint32_t start;
	uint32_t offset;
};

/**
 * struct table - the rules of one section
 * @sec: the section.
 * @sf: its header, if it is .sframe: sf.s.size is 0 otherwise.
 * @img: image it belongs to.
 * @hdr: the sorted search table of .eh_frame_hdr: pairs of 32-bit offsets from
 *	@hdr_vaddr. NULL: @index is used.
 * @hdr_vaddr: virtual address of .eh_frame_hdr.
 * @index: own index, for sections without a search table. NULL, and no @hdr: an .sframe
 *	whose functions are sorted.
 * @index_bytes: memory of @index.
 * @nfde: number of functions.
 * @asked: lookups in a chunk before it is compiled, 255 at most.
 * @chunk: compiled chunks, NULL where not yet.
 * @arena: where chunks (and this array) live.
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
	struct chunk **chunk;
	struct arena arena;
};

/* Prepare @t for .eh_frame (or .debug_frame, .sframe) of @img. 0, -ENOENT if the image
 * has none that can be used, -ENOMEM.
 */
int table_init_eh_frame(struct table *t, const struct elf_image *img);
int table_init_debug_frame(struct table *t, const struct elf_image *img);
int table_init_sframe(struct table *t, const struct elf_image *img);
void table_deinit(struct table *t);

/* Rule at virtual address @vaddr; RULE_NONE if the table has none. */
uint64_t table_rule(struct table *t, uint64_t vaddr);

/* All of the row at @vaddr, for RULE_FULL: 0, or -enum shstk_end. */
int table_row(struct table *t, uint64_t vaddr, struct cfi_row *row);

/* Compile everything now (measurements, tests). */
void table_compile(struct table *t);

/* Bytes of compiled rules and own index. */
size_t table_bytes(const struct table *t);

#endif
