/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* elf_file.h - opens ELF files that may be hostile. */
#ifndef SHSTK_SYMBOL_ELF_FILE_H
#define SHSTK_SYMBOL_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Elf;
struct Elf_Scn;
typedef struct Elf Elf;
struct shstk_account;

/* Opens an ELF file; returns NULL if it is none. @fd stays the caller's and must stay open. */
Elf *shstk_elf_begin(int fd);
/*
 * Opens an ELF file in memory; returns NULL if it is none. @image stays the caller's and must stay.
 */
Elf *shstk_elf_memory(void *image, size_t size);
/*
 * Returns whether libelf copies the file's content to memory, instead of mapping it, which it does
 * for files that are not root's. @fd -1 means an image that is in memory already: false.
 */
bool shstk_elf_copied(int fd);
/*
 * Copies @size bytes from @offset on of the file that @elf was opened with, by @fd or, if that is -1, in memory.
 * Returns false if not all of them are there. Unlike with elf_getdata_rawchunk(), libelf keeps nothing of each
 * such request until the file is closed.
 */
bool shstk_elf_read(Elf *elf, int fd, uint64_t offset, void *ret, size_t size);
/*
 * Returns false for a large file that is not root's and consists almost only of holes: any user can
 * make such a file of any size.
 */
bool shstk_elf_dense(int fd);
/*
 * Returns false for a file that says it has more sections or segments than libelf should make room
 * for. To be asked before libelf opens the file.
 */
bool shstk_elf_bounded(int fd);
/* The same for an ELF file in memory, before elf_memory(). */
bool shstk_elf_image_bounded(const void *image, size_t size);
/*
 * Returns the next section of that name behind @scn, or the first one if that is NULL; NULL: there is no more.
 * @ret receives its header.
 */
struct Elf_Scn *shstk_elf_next_named(Elf *elf, struct Elf_Scn *scn, const char *wanted,
				     Elf64_Shdr *ret);
/* Returns whether there is a section of that name (also as .zdebug_*) with content. */
bool shstk_elf_has(Elf *elf, const char *section);

/* The bytes of a section; both pointers are NULL if there is none. */
struct shstk_bytes {
	const uint8_t *p;
	const uint8_t *end;
};

/* Returns the bytes of the section of that name (also as .zdebug_*), unless it is compressed. */
struct shstk_bytes shstk_elf_bytes(Elf *elf, const char *section);
/*
 * Gives a section other bytes, which stay the caller's and must stay, for libelf and libdw. Its
 * header and the file remain as they are. Returns false if the section cannot be read.
 */
bool shstk_elf_replace(struct Elf_Scn *scn, const void *bytes, size_t size);
/*
 * Returns the ELF file packed in .gnu_debugdata, or NULL. It is unpacked into @ret (malloc'd),
 * whose memory is taken from @account, if that is not NULL.
 */
Elf *shstk_elf_minidebug(Elf *elf, void **ret, struct shstk_account *account);

#endif
