/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * address_space.h - what the command needs to know of a space beyond the public interface.
 */
#ifndef SHSTK_ADDRESS_SPACE_H
#define SHSTK_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shstk.h"

struct module;
struct shstk_space;

/*
 * Has the program code of Go's? Then a trace may lead over several stacks, and
 * unwinding reads more than the one that sp points to.
 */
bool shstk_space_has_go(const struct shstk_space *space);

/*
 * Who reads code that no file has, as it is now; NULL: nobody. While a stack is unwound code is
 * taken to stay as it is.
 */
void shstk_space_set_made(struct shstk_space *space, shstk_read_fn read, void *arg);

/* Where the kernel has its page for probes in the program, if that is known: [uprobes]. */
void shstk_space_set_probes(struct shstk_space *space, uint64_t page);

#define SHSTK_FILE_CODES 16

/**
 * struct shstk_file_code - where a file that is mapped has code
 * @start: first address, of a page.
 * @end: first address behind it, of a page.
 * @offset: offset of @start in the file, in bytes.
 */
struct shstk_file_code {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
};

/**
 * shstk_file_code() - where a file has code, by another mapping of it
 * @fd: the file.
 * @start: first address of the mapping, which may be of any segment.
 * @end: first address behind it.
 * @offset: offset of @start in the file, in bytes.
 * @ret: receives up to SHSTK_FILE_CODES.
 *
 * Return: their number, or a negative errno.
 */
int shstk_file_code(int fd, uint64_t start, uint64_t end, uint64_t offset,
		    struct shstk_file_code *ret);

/* Is there a file that describes what lies at an address? */
bool shstk_space_has_file(struct shstk_space *space, uint64_t addr);

/* The module that has an address, or NULL. */
const struct module *shstk_space_find(struct shstk_space *space, uint64_t pc);

/* The modules in the order of their addresses; NULL behind the last one. */
const struct module *address_space_module(const struct shstk_space *space, size_t i);

#endif
