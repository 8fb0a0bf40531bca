/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* module.h - one mapped ELF image, with its unwind tables and its code. */
#ifndef SHSTK_MODULE_H
#define SHSTK_MODULE_H

#include "go/gopclntab.h"
#include "table.h"

/**
 * struct module - an ELF image at an address
 * @range: addresses that the image is mapped to.
 * @bias: mapped address minus virtual address.
 * @img: the image; it has no segments if the module is a range of code without a file (JIT).
 * @eh: rules from .eh_frame.
 * @df: rules from .debug_frame.
 * @sf: rules from .sframe.
 * @go: Go's table of functions.
 * @map: memory that is unmapped with the module, or NULL.
 * @map_size: number of bytes at @map.
 * @more: called once, when nothing describes an address; may add tables by module_add(). NULL if
 *	there is no such function, or if it was called.
 * @more_arg: for the function @more; set by whoever sets @more.
 * @added: memory with the sections that @more gave, or NULL.
 * @added_size: number of bytes at @added.
 * @file: in a space, the number of its file among those whose rules are shared (file_rules.h); 0: none.
 * @is_volatile: the module may go away while its rules are in use.
 * @next: next module in the list of retired modules.
 * @outer: in a space, another module between whose segments this one lies, or NULL.
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
	uint32_t file;
	bool is_volatile;
	struct module *next;
	struct module *outer;
};

/*
 * Stores inode and size of a file; the size is 0 if the file cannot be mapped. Returns 0 or a
 * negative errno.
 */
int module_file(int fd, uint64_t *inode, size_t *size);

/*
 * Makes a module of the ELF file @fd, or of an image that is laid out at @memory and begins at
 * address @addr. @at is one of the file's executable mappings, from @offset in the file on. Both
 * functions return 0, -ENOEXEC, -ENOMEM, or the negative errno of a system call. They are
 * async-signal-safe: they map memory, but never allocate.
 */
int module_from_fd(struct module **ret, int fd, const struct range *at, uint64_t offset);
int module_from_memory(struct module **ret, const void *memory, size_t size, uint64_t addr);
/* Makes a module of a range of code that no file describes. */
int module_from_range(struct module **ret, uint64_t lo, uint64_t hi);
/*
 * Makes a module of the code that the @size bytes of .eh_frame at @eh_frame describe; copies them.
 */
int module_from_frames(struct module **ret, const struct machine *machine, const void *eh_frame,
		       size_t size);
void module_free(struct module *m);

/*
 * Returns true if @pc lies in a segment of @m. If segments are 64 KiB apart, there is room for
 * other modules between them: arm64 kernels put the vdso there.
 */
bool module_has(const struct module *m, uint64_t pc);

/*
 * Returns true if @a lies between the segments of @b. If @a has no file, it may overlap segments of
 * @b without code.
 */
bool module_between(const struct module *a, const struct module *b);

/*
 * Copies sections of another file of the same program. Each is used if the module has no section of
 * its kind. Returns 0, -ENOENT or -ENOMEM.
 */
int module_add(struct module *m, const struct section *eh_frame, const struct section *debug_frame);

/* Returns true if @pc lies in code of @m. */
bool module_is_code(const struct module *m, uint64_t pc);

/*
 * Finds the function at @pc, which ends where the next one in the unwind information begins.
 * Returns false if there is no unwind information for @pc.
 */
bool module_function(const struct module *m, uint64_t pc, struct range *ret);

/*
 * Returns the code at @pc, or NULL if it is not there. There are *@before bytes in front of it and
 * *@after bytes from there on.
 */
const uint8_t *module_code(const struct module *m, uint64_t pc, size_t *before, size_t *after);

/*
 * Returns the rule at @pc, or RULE_NONE, never RULE_GUESS. @exact: @pc is a program counter;
 * otherwise it is a return address, and the rule is that of the call in front of it.
 */
uint64_t module_rule(struct module *m, uint64_t pc, bool exact);

/*
 * Finds the row at @pc, which is needed for RULE_FULL. *@sec receives the section in which the
 * row's expressions lie. Returns 0 or -enum shstk_end.
 */
int module_row(struct module *m, uint64_t pc, bool exact, struct cfi_row *row,
	       const struct cfi_section **sec);

size_t module_bytes(const struct module *m);
/* Adds @m to @stats; @m may be NULL. */
void module_count(const struct module *m, struct shstk_stats *stats);

#endif
