/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf_image.h - the few parts of an ELF file that the unwinder needs. They are found in untrusted
 * bytes, with bounds checks and without allocation.
 *
 * Symbols and line numbers are read with elfutils; see symbol/.
 */
#ifndef SHSTK_ELF_IMAGE_H
#define SHSTK_ELF_IMAGE_H

#include "machine.h"

#define IMAGE_LOADS 16

/*
 * The size of the first instruction of an entry point, which may be described like any function's.
 */
#define IMAGE_ENTRY_INSN 4

/*
 * The bytes of a section, and the virtual address at which they are mapped, in the file's own
 * numbering.
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
 * @data: the image's bytes.
 * @size: number of bytes.
 * @in_memory: the bytes lie as the loader lays them out, not as in the file.
 * @m: instruction set of the image.
 * @entry: e_entry.
 * @lo: lowest virtual address of the loadable segments, page aligned.
 * @hi: first address behind the loadable segments, page aligned.
 * @load: the loadable segments.
 * @nload: number of loadable segments.
 * @eh_frame: .eh_frame, size 0 if there is none.
 * @eh_frame_hdr: .eh_frame_hdr, size 0 if there is none.
 * @debug_frame: .debug_frame, size 0 if there is none or it is compressed.
 * @sframe: .sframe, size 0 if there is none.
 * @gopclntab: Go's table of functions, if a section names it.
 * @go_buildinfo: .go.buildinfo, size 0 if there is none.
 * @dynamic: the dynamic section, from its segment.
 * @nsection: number of section headers; 0 if they are stripped or not in memory.
 * @build_id: bytes of the build id; NULL if there is none.
 * @build_id_size: number of bytes of the build id.
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

/* Parses the @size bytes at @data into @img. Returns 0 or -ENOEXEC. */
int elf_image_parse(struct elf_image *img, const void *data, size_t size, bool in_memory);

/* Returns the bytes at virtual address @vaddr, or NULL. *@avail receives how many there are. */
const uint8_t *elf_image_at(const struct elf_image *img, uint64_t vaddr, size_t *avail);

/*
 * Returns true if, with the load bias @bias, the mapping @at of the file from @offset on is part of
 * a segment.
 */
bool elf_image_fits(const struct elf_image *img, const struct range *at, uint64_t offset,
		    uint64_t bias);

/*
 * Finds the load bias of a file that is mapped at @at from @offset on. A page of the file may
 * belong to two segments; the mapping is then taken for the segment that begins with this page and
 * has room for the whole mapping. Returns false if no segment matches.
 */
bool elf_image_bias(const struct elf_image *img, const struct range *at, uint64_t offset,
		    uint64_t *bias);

#endif
