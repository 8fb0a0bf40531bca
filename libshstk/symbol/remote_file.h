/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* remote_file.h - ELF images that lie in the memory of another process. */
#ifndef SHSTK_SYMBOL_REMOTE_FILE_H
#define SHSTK_SYMBOL_REMOTE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_account;

/**
 * struct shstk_remote_memory - memory of a process from which files are made
 * @read: reads all @size bytes or nothing. Returns false if they cannot be read.
 * @arg: first argument of @read.
 * @account: account of the process; memory that a file takes comes from it.
 * @left: bytes that the file may take. They become fewer.
 */
struct shstk_remote_memory {
	bool (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
	struct shstk_account *account;
	uint64_t *left;
};

/* Makes a file of the ELF image that lies at @base. Returns a descriptor or a negative errno. */
int shstk_remote_image(const struct shstk_remote_memory *memory, uint64_t base);

#endif
