/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf_image.h - the few things the unwinder needs from an ELF file, found with
 * bounds checks in foreign bytes, without allocation.
 *
 * (Symbols and line numbers are elfutils' work, see symbol/.)
 */
#ifndef SHSTK_ELF_IMAGE_H
#define SHSTK_ELF_IMAGE_H

#include "machine.h"

#define IMAGE_LOADS 16

/* Bytes of an entry point's first instruction, which may be described as any function's. */
#define IMAGE_ENTRY_INSN 4

/* Bytes of a section, and where they are mapped (virtual address in the file's
 * own numbering).
 */
struct section {
	const uint8_t *data;
	size_t size;
	uint64_t vaddr;
};

struct load {
	uint64_t vaddr, offset, filesz, memsz;
	bool exec, write;
};

/**
 * struct elf_image - a parsed ELF image
 * @data: its bytes.
 * @size: number of bytes.
 * @in_memory: the bytes lie as the loader lays them out, not as in the file.
 * @m: machine.
 * @entry: e_entry.
 * @lo: lowest virtual address of the loadable segments, page aligned.
 * @hi: first address behind them.
 * @load: loadable segments.
 * @nload: their number.
 * @eh_frame: .eh_frame, size 0 if there is none.
 * @eh_frame_hdr: .eh_frame_hdr, size 0 if there is none.
 * @debug_frame: .debug_frame, if not compressed.
 * @sframe: .sframe.
 * @gopclntab: Go's table of functions, if a section names it.
 * @go_buildinfo: .go.buildinfo.
 * @dynamic: what the loader is told.
 * @nsection: number of section headers; 0 if they are stripped, or not in memory.
 * @build_id: build ID note's bytes, NULL if there is none.
 * @build_id_size: their number.
 */
struct elf_image {
	const uint8_t *data;
	size_t size;
	bool in_memory;
	const struct machine *m;
	uint64_t entry;
	uint64_t lo, hi;
	struct load load[IMAGE_LOADS];
	unsigned int nload;
	struct section eh_frame;
	struct section eh_frame_hdr;
	struct section debug_frame;
	struct section sframe;
	struct section gopclntab;
	struct section go_buildinfo;
	struct section dynamic;
	unsigned int nsection;
	const uint8_t *build_id;
	size_t build_id_size;
};

/* 0, or -ENOEXEC. @in_memory: see struct elf_image. */
int elf_image_parse(struct elf_image *img, const void *data, size_t size, bool in_memory);

/* Bytes at a virtual address; *avail receives how many follow. NULL if none. */
const uint8_t *elf_image_at(const struct elf_image *img, uint64_t vaddr, size_t *avail);

/* Is what @at maps, from @offset in the file on, part of a segment, if the load bias is @bias? */
bool elf_image_fits(const struct elf_image *img, const struct range *at, uint64_t offset,
		    uint64_t bias);

/*
 * Load bias of a file that is mapped at @at from @offset on. A page of the file can belong to
 * two segments: the mapping is that of the segment with which it begins, and which has all of
 * it. False if no segment matches.
 */
bool elf_image_bias(const struct elf_image *img, const struct range *at, uint64_t offset,
		    uint64_t *bias);

#endif
