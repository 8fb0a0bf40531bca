/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module.h - one mapped ELF image, its unwind tables and its code.
 */
#ifndef SHSTK_MODULE_H
#define SHSTK_MODULE_H

#include "go/gopclntab.h"
#include "table.h"

/**
 * struct module - an ELF image at an address
 * @range: mapped addresses.
 * @bias: mapped address minus virtual address.
 * @img: the image; no segments for a range of code without a file (JIT).
 * @eh: rules from .eh_frame.
 * @df: rules from .debug_frame.
 * @sf: rules from .sframe.
 * @go: Go's table of functions.
 * @map: memory to unmap with the module, @map_size bytes.
 * @map_size: see @map.
 * @more: called once when nothing describes an address; may add tables by
 *	module_add(). NULL: nobody is.
 * @more_arg: for @more.
 * @added: sections that @more gave, @added_size bytes.
 * @added_size: see @added.
 * @is_volatile: may go away while its rules are in use.
 * @next: list of retired modules.
 * @outer: in a space: another between whose segments it lies, or NULL.
 */
struct module {
	struct range range;
	uint64_t bias;
	struct elf_image img;
	struct table eh;
	struct table df;
	struct table sf;
	struct gopclntab go;
	void *map;
	size_t map_size;
	void (*more)(struct module *m);
	void *more_arg;
	void *added;
	size_t added_size;
	bool is_volatile;
	struct module *next;
	struct module *outer;
};

/* Inode and size of a file; the size is 0 if it is none that can be mapped. */
int module_file(int fd, uint64_t *inode, size_t *size);

/*
 * Make a module of the ELF file @fd (@memory NULL) or of an image laid out at
 * @memory, which begins at @addr. One of the file's executable mappings is @at, from
 * @offset in the file on. 0, -ENOEXEC, -ENOMEM, or the errno of a system call.
 * Async-signal-safe: maps memory, never allocates.
 */
int module_from_fd(struct module **ret, int fd, const struct range *at, uint64_t offset);
int module_from_memory(struct module **ret, const void *memory, size_t size, uint64_t addr);
/* A range of code that no file describes. */
int module_from_range(struct module **ret, uint64_t lo, uint64_t hi);
/* Code that a copy of the .eh_frame at @eh_frame describes. */
int module_from_frames(struct module **ret, const struct machine *machine, const void *eh_frame,
		       size_t size);
void module_free(struct module *m);

/*
 * Does @pc lie in @m? With 64 KiB between its segments there is room for others:
 * arm64 kernels put the vdso there.
 */
bool module_has(const struct module *m, uint64_t pc);

/* Is @a between the segments of @b, or is it of no file and over none of its code? */
bool module_between(const struct module *a, const struct module *b);

/*
 * Copy sections of another file of the same program, and use them for what the
 * module has no section of that kind for. 0, -ENOENT, -ENOMEM.
 */
int module_add(struct module *m, const struct section *eh_frame, const struct section *debug_frame);

/* Does @pc lie in code of @m? */
bool module_is_code(const struct module *m, uint64_t pc);

/* The function at @pc, as far as unwind information says: up to the next one. */
bool module_function(const struct module *m, uint64_t pc, struct range *ret);

/* Bytes of code at @pc, *before and *after it; NULL if they are not there. */
const uint8_t *module_code(const struct module *m, uint64_t pc, size_t *before, size_t *after);

/*
 * The rule at @pc; @exact: it is a program counter, not a return address (whose
 * rule is that of the call in front of it). RULE_NONE, never RULE_GUESS.
 */
uint64_t module_rule(struct module *m, uint64_t pc, bool exact);

/* All of the row, for RULE_FULL; *sec receives the section its expressions lie
 * in. 0, or -enum shstk_end.
 */
int module_row(struct module *m, uint64_t pc, bool exact, struct cfi_row *row,
	       const struct cfi_section **sec);

size_t module_bytes(const struct module *m);
/* Add @m, if there is one. */
void module_count(const struct module *m, struct shstk_stats *stats);

#endif
