/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* unpack_debug.h - debug sections as libdw gets them. */
#ifndef SHSTK_SYMBOL_UNPACK_DEBUG_H
#define SHSTK_SYMBOL_UNPACK_DEBUG_H

#include <stdbool.h>

#include "elf_file.h"

struct shstk_unpacked;

/*
 * Takes from @account the memory that debug sections will need once they are read, which is that of
 * compressed sections, and that of all sections if they are @copied. Returns false if it cannot be
 * had, or the file contradicts itself.
 */
bool shstk_elf_afford(Elf *elf, bool copied, bool lines, struct shstk_account *account);
/*
 * Inflates into @list the compressed debug sections that are read here, and hides the others.
 * Without
 * @lines, .debug_line is hidden as well. @elf refers to the list until shstk_unpacked_free().
 */
void shstk_elf_unpack(Elf *elf, bool lines, struct shstk_unpacked **list);
void shstk_unpacked_free(struct shstk_unpacked *list);

#endif
