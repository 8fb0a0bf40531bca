/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* dwarf.h - functions, inlined calls and lines, by debug information. */
#ifndef SHSTK_SYMBOL_DWARF_H
#define SHSTK_SYMBOL_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"

struct shstk_debugplace;
struct shstk_pool;
struct shstk_resolved;
struct shstk_sym;
struct shstk_symbols_opts;

struct shstk_dwarf;

/*
 * Makes the reader of debug information of @elf. @fd is its descriptor, or -1 if it is in memory;
 * @path is the path of the program, or NULL. It takes over nothing; names are kept in @pool.
 *	Returns NULL if there is no usable debug information.
 */
struct shstk_dwarf *shstk_dwarf_create(struct shstk_pool *pool, Elf *elf, int fd,
				       const struct shstk_debugplace *place, const char *path,
				       const struct shstk_symbols_opts *opts,
				       struct shstk_account *account);
/*
 * Makes another reader of what @of reads, for another thread. It shares the file and the index of
 * units with @of, which must stay; its names are kept in @pool, and it draws from @account. This must
 * be called by the thread that made @of, the others can be read from by one thread each, at the same
 * time. Returns NULL when memory runs out.
 */
struct shstk_dwarf *shstk_dwarf_again(const struct shstk_dwarf *of, struct shstk_pool *pool,
				      struct shstk_account *account);
/*
 * Finds the number of the unit that describes @addr. Returns false if there is none, or if its
 * description is in a file of its own, which only the first reader may open.
 */
bool shstk_dwarf_unit(const struct shstk_dwarf *dwarf, uint64_t addr, size_t *ret);
void shstk_dwarf_destroy(struct shstk_dwarf *dwarf);
/*
 * Returns how many of the units that addresses were looked up in lack the .dwo file that describes
 * them. @first receives the path of the first such file, if it has one.
 */
size_t shstk_dwarf_missing(const struct shstk_dwarf *dwarf, const char **first);
/*
 * Fills @ret->frames, which has room for SHSTK_FRAMES_MAX frames of which the first is zeroed, and
 * @ret->start. @sym is the symbol that covers @addr, or NULL. Returns the number of frames; 0 if
 *	the address is not described, but then the first frame may have received file and line.
 */
unsigned int shstk_dwarf_find(struct shstk_dwarf *dwarf, uint64_t addr, const struct shstk_sym *sym,
			      struct shstk_resolved *ret);

#endif
