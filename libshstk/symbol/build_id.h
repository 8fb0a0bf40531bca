/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* build_id.h - the GNU build id of an ELF file that anybody may have made. */
#ifndef SHSTK_SYMBOL_BUILD_ID_H
#define SHSTK_SYMBOL_BUILD_ID_H

#include <libelf.h>
#include <stddef.h>

/**
 * shstk_build_id() - find the GNU build id of an ELF file
 * @elf: the file.
 * @ret: receives the id, which stays until @elf is ended.
 *
 * What libelf has read of notes stays in memory as long, and a file may say that it has any number of
 * segments with notes, each as large as the file. So only the beginnings of the first ones are read. Those
 * of sections are read where no segment has the id: in files that are not linked, and in debug files
 * whose segments are still those of the program's file, as eu-strip leaves them.
 *
 * Return: bytes of the id, or 0 if none was found.
 */
size_t shstk_build_id(Elf *elf, const void **ret);

#endif
