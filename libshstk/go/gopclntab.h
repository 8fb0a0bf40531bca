/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gopclntab.h - the table that every Go program carries, stripped or not: where each
 * function starts, how far sp is from the caller's at each instruction, names, files,
 * lines and what was inlined.
 *
 * Four forms, by their first word: of Go 1.2 to 1.15, 1.16 and 1.17, 1.18 and 1.19, 1.20
 * and later. All input is foreign; every loop is bounded by the bytes it reads.
 * Async-signal-safe. Sources: golang/go, src/internal/abi/symtab.go,
 * src/runtime/symtab.go, src/runtime/runtime2.go, src/cmd/link/internal/ld/pcln.go.
 */
#ifndef SHSTK_GOPCLNTAB_H
#define SHSTK_GOPCLNTAB_H

#include "elf_image.h"

/* The form of the table: the first release that has it. */
enum go_form {
	GO_1_2,
	GO_1_16,
	GO_1_18,
	GO_1_20,
};

/**
 * struct gopclntab - a table whose header has been checked
 * @img: the image it belongs to.
 * @moved: what the loader added to the addresses that words of the image hold; not 0
 *	only for images that were copied from memory.
 * @rela: relocations that the loader has yet to apply: position-independent programs
 *	have no addresses in their file otherwise.
 * @nrela: their number.
 * @rela_sorted: they are in the order of their places.
 * @data: the bytes of the table, and what follows in its segment.
 * @size: number of bytes.
 * @vaddr: virtual address of the table.
 * @form: enum go_form.
 * @quantum: distance of two instructions.
 * @nfunc: number of functions; 0: there is no table.
 * @functab: offset in @data of the functions' starts.
 * @names: of names, @cutab: of lists of files, @files: of names of files, @pctab: of
 *	values by address, @funcs: of descriptions of functions.
 * @text: virtual address that starts count from.
 * @moduledata: virtual address of the runtime's own description of all this, or 0.
 * @gofunc: virtual address that places of inlining trees count from, or 0.
 * @start: starts of functions from the image's lowest address, where they have to be
 *	gathered from relocations; or NULL.
 * @start_bytes: memory of @start.
 */
struct gopclntab {
	const struct elf_image *img;
	uint64_t moved;
	const uint8_t *rela;
	size_t nrela;
	bool rela_sorted;
	const uint8_t *data;
	size_t size;
	uint64_t vaddr;
	uint8_t form;
	uint8_t quantum;
	uint32_t nfunc;
	size_t functab, names, cutab, files, pctab, funcs;
	uint64_t text;
	uint64_t moduledata;
	uint64_t gofunc;
	uint32_t *start;
	size_t start_bytes;
};

/* Bits of a function's flag: it is the outermost one; it writes sp. */
#define GO_TOP_FRAME 1
#define GO_WRITES_SP 2

/**
 * struct gofunc - one function
 * @entry: its virtual address.
 * @end: behind it, with padding.
 * @name: where its name lies, counted from all names.
 * @pcsp: table of the distance of sp, @pcfile of files, @pcln of lines.
 * @cu: first of its files.
 * @start_line: line of its declaration, or 0.
 * @id: not 0 for functions that the runtime must know.
 * @flag: GO_TOP_FRAME, GO_WRITES_SP.
 * @pcinline: table of inlined calls, or 0.
 * @tree: virtual address of their tree, or 0.
 */
struct gofunc {
	uint64_t entry, end;
	uint32_t name;
	uint32_t pcsp, pcfile, pcln;
	uint32_t cu;
	int32_t start_line;
	uint8_t id;
	uint8_t flag;
	uint32_t pcinline;
	uint64_t tree;
};

/**
 * struct goline - a function at an address, inlined or not
 * @function: its name, as the compiler wrote it.
 * @file: source file, or NULL.
 * @line: line in it, or 0.
 * @start_line: line of its declaration, or 0.
 * @inlined: into the next one.
 */
struct goline {
	const char *function;
	const char *file;
	uint32_t line;
	uint32_t start_line;
	bool inlined;
};

/* A file, for those who only want names. */
struct gofile {
	struct elf_image img;
	struct gopclntab tab;
};

/*
 * Find the table of @img and prepare @g. @moved: see struct gopclntab. 0, -ENOENT if
 * there is none that can be used, -ENOMEM.
 */
int shstk_gopclntab_init(struct gopclntab *g, const struct elf_image *img, uint64_t moved);
void shstk_gopclntab_deinit(struct gopclntab *g);

/* The same for the bytes of a whole file, which must stay; -ENOEXEC if it is no ELF. */
int shstk_gofile_init(struct gofile *f, const void *data, size_t size);
void shstk_gofile_deinit(struct gofile *f);

/* The function at virtual address @vaddr. False: it is in none. */
bool shstk_gopclntab_find(const struct gopclntab *g, uint64_t vaddr, struct gofunc *f);

/* Function number @i, below @g->nfunc, by address. False: it cannot be read. */
bool shstk_gopclntab_get(const struct gopclntab *g, size_t i, struct gofunc *f);

/* Name of @f, or NULL. */
const char *shstk_gopclntab_name(const struct gopclntab *g, const struct gofunc *f);

/* How far sp lies below the frame's start at @vaddr in @f. False: that is not known. */
bool shstk_gopclntab_spdelta(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
			     int32_t *ret);

/* Up to where sp is as far as at @vaddr in @f. False: its table does not reach that. */
bool shstk_gopclntab_sp_end(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
			    uint64_t *end);

/*
 * How far sp lies below the frame's start once @f has made its frame: the first distance in
 * its table that is not 0. 0: it makes none.
 */
int32_t shstk_gopclntab_frame_size(const struct gopclntab *g, const struct gofunc *f);

/* The functions at @vaddr, innermost first. Returns their number, at most @max. */
unsigned int shstk_gopclntab_lines(const struct gopclntab *g, uint64_t vaddr, struct goline *ret,
				   unsigned int max);

/* A word of the image as the loader leaves it, but unmoved. False: it has none there. */
bool gopclntab_word(const struct gopclntab *g, uint64_t vaddr, uint64_t *ret);

#endif
