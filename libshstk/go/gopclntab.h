/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gopclntab.h - reads the table of functions that every Go program has, stripped or not:
 * where each function starts, how far sp is from the caller's sp at each instruction,
 * names, files, lines and inlined calls.
 *
 * The first word of the table tells its form. There are four: of Go 1.2 to 1.15, 1.16 and
 * 1.17, 1.18 and 1.19, 1.20 and later. The input is not trusted; every loop is bounded by
 * the bytes it reads. All functions are async-signal-safe. Sources: golang/go,
 * src/internal/abi/symtab.go, src/runtime/symtab.go, src/runtime/runtime2.go,
 * src/cmd/link/internal/ld/pcln.go.
 */
#ifndef SHSTK_GOPCLNTAB_H
#define SHSTK_GOPCLNTAB_H

#include "elf_image.h"

/* The form of the table, named by the first release that has it. */
enum go_form {
	GO_1_2,
	GO_1_16,
	GO_1_18,
	GO_1_20,
};

/**
 * struct gopclntab - a table whose header has been checked
 * @img: the image that the table belongs to.
 * @moved: what the loader has added to the addresses in words of the image; not 0 only for
 *	images that were copied from memory.
 * @rela: the relocations that the loader has not applied yet. In a position-independent
 *	program only they have the addresses.
 * @nrela: number of relocations.
 * @rela_sorted: the relocations are in the order of their places.
 * @data: the bytes of the table, and what follows in its segment.
 * @size: number of bytes in @data.
 * @vaddr: virtual address of the table.
 * @form: enum go_form.
 * @quantum: smallest distance of two instructions, in bytes.
 * @nfunc: number of functions; 0 if there is no table.
 * @functab: offset in @data of the starts of functions.
 * @names: offset in @data of the names of functions.
 * @cutab: offset in @data of the lists of files.
 * @files: offset in @data of the names of files.
 * @pctab: offset in @data of the values by address.
 * @funcs: offset in @data of the descriptions of functions.
 * @text: virtual address that the starts of functions are relative to.
 * @moduledata: virtual address of the runtime's own description of the program, or 0.
 * @gofunc: virtual address that the places of inlining trees are relative to, or 0.
 * @start: starts of functions, relative to the image's lowest address, where they have to
 *	be gathered from relocations; otherwise NULL.
 * @start_bytes: bytes of memory of @start.
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

/* Bits of a function's flag. */
#define GO_TOP_FRAME 1 /* the function is the outermost one */
#define GO_WRITES_SP 2 /* the function writes sp */

/**
 * struct gofunc - one function
 * @entry: virtual address of the function.
 * @end: first virtual address behind the function and its padding.
 * @name: offset of its name in the names.
 * @pcsp: offset in the values of the distances of sp.
 * @pcfile: offset in the values of the files.
 * @pcln: offset in the values of the lines.
 * @cu: index of its first file in the lists of files.
 * @start_line: line of its declaration, or 0.
 * @id: not 0 for functions that the runtime must know.
 * @flag: GO_TOP_FRAME, GO_WRITES_SP.
 * @pcinline: offset in the values of the inlined calls, or 0.
 * @tree: virtual address of the tree of inlined calls, or 0.
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
 * @function: name of the function, as the compiler wrote it.
 * @file: source file, or NULL.
 * @line: line in @file, or 0.
 * @start_line: line of the function's declaration, or 0.
 * @inlined: the function was inlined into the next one.
 */
struct goline {
	const char *function;
	const char *file;
	uint32_t line;
	uint32_t start_line;
	bool inlined;
};

/* An ELF file and its table, for callers that only need names. */
struct gofile {
	struct elf_image img;
	struct gopclntab tab;
};

/*
 * Finds the table of @img and prepares @g. @moved: what the loader has added to the
 * addresses in words of the image. Returns 0, -ENOENT if there is no table that can be
 * used, or -ENOMEM.
 */
int shstk_gopclntab_init(struct gopclntab *g, const struct elf_image *img, uint64_t moved);
void shstk_gopclntab_deinit(struct gopclntab *g);

/*
 * Does the same for the bytes of a whole file, which must stay valid. Returns -ENOEXEC if it is not
 * an ELF file.
 */
int shstk_gofile_init(struct gofile *f, const void *data, size_t size);
void shstk_gofile_deinit(struct gofile *f);

/* Finds the function that contains virtual address @vaddr. Returns false if there is none. */
bool shstk_gopclntab_find(const struct gopclntab *g, uint64_t vaddr, struct gofunc *f);

/*
 * Reads function number @i, below @g->nfunc, in the order of addresses. Returns false if it can't
 * be read.
 */
bool shstk_gopclntab_get(const struct gopclntab *g, size_t i, struct gofunc *f);

/* Returns the name of @f, or NULL. */
const char *shstk_gopclntab_name(const struct gopclntab *g, const struct gofunc *f);

/*
 * Stores in *@ret how far sp lies below the frame's start at @vaddr in @f. Returns false if that is
 * not known.
 */
bool shstk_gopclntab_spdelta(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
			     int32_t *ret);

/*
 * Stores in *@end the address in @f up to which sp stays at the same distance as at @vaddr. Returns
 * false if the table does not reach @vaddr.
 */
bool shstk_gopclntab_sp_end(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
			    uint64_t *end);

/*
 * Returns how far sp lies below the frame's start once @f has made its frame: the first distance
 * in its table that is not 0. Returns 0 if @f makes no frame.
 */
int32_t shstk_gopclntab_frame_size(const struct gopclntab *g, const struct gofunc *f);

/* Finds the functions at @vaddr, innermost first. Returns their number, at most @max. */
unsigned int shstk_gopclntab_lines(const struct gopclntab *g, uint64_t vaddr, struct goline *ret,
				   unsigned int max);

/*
 * Reads the word at @vaddr of the image, with its relocation applied as if the image were loaded at
 * its own addresses. Returns false if the image has no word there.
 */
bool gopclntab_word(const struct gopclntab *g, uint64_t vaddr, uint64_t *ret);

#endif
