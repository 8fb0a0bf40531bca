/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * address_space.h - what the shstk command needs from a space (struct shstk_space) beyond the
 * public interface.
 */
#ifndef SHSTK_ADDRESS_SPACE_H
#define SHSTK_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shstk.h"

struct file_rules;
struct module;
struct shstk_space;

/*
 * Returns true if the program has code of Go. A trace may then lead over several stacks, so
 * unwinding may read other stacks than the one that sp points to.
 */
bool shstk_space_has_go(const struct shstk_space *space);

/*
 * Sets the function that reads code which is in no file, as it is now; NULL: no function. The code
 * is taken not to change while a stack is unwound.
 */
void shstk_space_set_generated(struct shstk_space *space, shstk_read_fn read, void *arg);

/*
 * Lets the space share the rules of files that are added from now on (file_rules.h) with others of the
 * same thread, which has the number @user. @files must outlive the space.
 */
void shstk_space_share(struct shstk_space *space, struct file_rules *files, unsigned int user);

/* Sets where the kernel's page for probes ([uprobes]) lies in the program, if that is known. */
void shstk_space_set_probes(struct shstk_space *space, uint64_t page);

#define SHSTK_FILE_CODES 16

/**
 * struct shstk_file_code - where the code of a mapped file lies
 * @start: first address of the code, page aligned.
 * @end: first address behind the code, page aligned.
 * @offset: offset of @start in the file, in bytes.
 */
struct shstk_file_code {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
};

/**
 * shstk_file_code() - find where the code of a file lies, from any mapping of it
 * @fd: the file.
 * @start: first address of the mapping, which may be of any segment.
 * @end: first address behind the mapping.
 * @offset: offset of @start in the file, in bytes.
 * @ret: receives up to SHSTK_FILE_CODES entries, one for each segment with code.
 *
 * Return: the number of entries, or a negative errno.
 */
int shstk_file_code(int fd, uint64_t start, uint64_t end, uint64_t offset,
		    struct shstk_file_code *ret);

/* Returns true if a file describes the code at @addr. */
bool shstk_space_has_file(struct shstk_space *space, uint64_t addr);

/* Returns the module that contains @pc, or NULL. */
const struct module *shstk_space_find(struct shstk_space *space, uint64_t pc);

/* Returns the address at which the function at @pc begins, as unwind information says; 0: it says nothing. */
uint64_t shstk_space_function(struct shstk_space *space, uint64_t pc);

/* Returns module number @i in the order of addresses, or NULL behind the last one. */
const struct module *address_space_module(const struct shstk_space *space, size_t i);

#endif
