// SPDX-License-Identifier: LGPL-2.1-or-later
/* elf.c - opening ELF files that may be hostile. */
#include <gelf.h>
#include <libelf.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "budget.h"
#include "elf_file.h"
#include "elf_names.h"

/* Bytes that a packed symbol table may unpack to, and the memory that the unpacker may use. */
#define MINIDEBUG_MAX (256u << 20)
#define MINIDEBUG_MEMORY (128u << 20)

/* Bytes of the names of sections. What libelf has read of them stays in memory as long as the file is open. */
#define NAMES_MAX (64u << 20)

/*
 * A file of at least DENSE_FROM bytes is checked for holes: one byte in DENSE must be on the disk.
 */
#define DENSE_FROM (1ll << 30)
#define DENSE 8

bool shstk_elf_dense(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	/* Some file systems do not count blocks: st_blocks is 0 there. */
	return !st.st_uid || st.st_size < DENSE_FROM || !st.st_blocks ||
	       st.st_size / DENSE / 512 < st.st_blocks;
}

bool shstk_elf_copied(int fd)
{
	struct stat st;

	return fd >= 0 && (fstat(fd, &st) || st.st_uid);
}

bool shstk_elf_read(Elf *elf, int fd, uint64_t offset, void *ret, size_t size)
{
	const char *bytes;
	size_t whole;

	if (shstk_elf_copied(fd))
		return pread(fd, ret, size, (off_t)offset) == (ssize_t)size;
	/* The file is mapped, so libelf copies nothing here. */
	bytes = elf_rawfile(elf, &whole);
	if (!bytes || offset > whole || size > whole - offset)
		return false;
	memcpy(ret, bytes + offset, size);
	return true;
}

/* Returns whether the names of sections can be looked at: they are few enough, and each has an end. */
static bool has_names(Elf *elf, size_t names)
{
	GElf_Shdr header;

	return gelf_getshdr(elf_getscn(elf, names), &header) && header.sh_size <= NAMES_MAX &&
	       elf_names_end(elf, names);
}

/* Returns @elf, or NULL if it is no ELF file, or the names of its sections cannot be looked at. */
static Elf *checked(Elf *elf)
{
	size_t names;

	if (elf && elf_kind(elf) == ELF_K_ELF &&
	    (elf_getshdrstrndx(elf, &names) || !names || has_names(elf, names)))
		return elf;
	elf_end(elf);
	return NULL;
}

Elf *shstk_elf_begin(int fd)
{
	elf_version(EV_CURRENT);
	if (!shstk_elf_dense(fd) || !shstk_elf_bounded(fd))
		return NULL;
	/*
	 * If a mapped file is shortened meanwhile, an access to it raises SIGBUS. So only files of
	 * root are mapped: root has simpler ways to end this process. Files of other users are
	 * read.
	 */
	return checked(elf_begin(fd, shstk_elf_copied(fd) ? ELF_C_READ : ELF_C_READ_MMAP, NULL));
}

Elf *shstk_elf_memory(void *image, size_t size)
{
	elf_version(EV_CURRENT);
	return shstk_elf_image_bounded(image, size) ? checked(elf_memory(image, size)) : NULL;
}

Elf_Scn *shstk_elf_next_named(Elf *elf, Elf_Scn *scn, const char *wanted, GElf_Shdr *ret)
{
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		name = gelf_getshdr(scn, ret) ? elf_strptr(elf, names, ret->sh_name) : NULL;
		if (name && !strcmp(name, wanted))
			return scn;
	}
	return NULL;
}

static Elf_Scn *find_section(Elf *elf, const char *wanted)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS || !shdr.sh_size)
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (!name)
			continue;
		if (!strcmp(name, wanted))
			return scn;
		if (!strncmp(name, ".z", 2) && !strcmp(name + 2, wanted + 1))
			return scn;
	}
	return NULL;
}

bool shstk_elf_has(Elf *elf, const char *section)
{
	return find_section(elf, section);
}

struct shstk_bytes shstk_elf_bytes(Elf *elf, const char *section)
{
	Elf_Scn *scn = find_section(elf, section);
	Elf_Data *data;
	GElf_Shdr shdr;

	if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_flags & SHF_COMPRESSED)
		return (struct shstk_bytes){ NULL, NULL };
	data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf)
		return (struct shstk_bytes){ NULL, NULL };
	return (struct shstk_bytes){ data->d_buf, (uint8_t *)data->d_buf + data->d_size };
}

bool shstk_elf_replace(Elf_Scn *scn, const void *bytes, size_t size)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	/* libdw asks for the raw data since elfutils 0.190. */
	Elf_Data *raw = elf_rawdata(scn, NULL);

	if (!data || !raw)
		return false;
	data->d_buf = (void *)bytes;
	data->d_size = size;
	data->d_type = ELF_T_BYTE;
	data->d_align = 1;
	*raw = *data;
	return true;
}

/* Unpacks data whose unpacked size is not known ahead: it tries with more room until they fit. */
static void *unpack(const Elf_Data *packed, size_t *size)
{
	uint8_t *out = NULL, *more;
	size_t max, in_pos, out_pos;
	uint64_t memory;
	lzma_ret ret;

	for (max = 64 * 1024; max <= MINIDEBUG_MAX; max *= 4) {
		more = realloc(out, max);
		if (!more)
			break;
		out = more;
		in_pos = out_pos = 0;
		memory = MINIDEBUG_MEMORY;
		ret = lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &in_pos,
						packed->d_size, out, &out_pos, max);
		if (ret == LZMA_OK) {
			*size = out_pos;
			return out;
		}
		if (ret != LZMA_BUF_ERROR)
			break;
	}
	free(out);
	return NULL;
}

Elf *shstk_elf_minidebug(Elf *elf, void **ret, struct shstk_account *account)
{
	Elf_Scn *scn = find_section(elf, ".gnu_debugdata");
	Elf_Data *packed = scn ? elf_rawdata(scn, NULL) : NULL;
	Elf *mini = NULL;
	size_t size;
	void *image;

	if (!packed || !packed->d_buf)
		return NULL;
	image = unpack(packed, &size);
	if (image && (!account || shstk_account_take(account, size)))
		mini = shstk_elf_memory(image, size);
	if (!mini) {
		free(image);
		return NULL;
	}
	*ret = image;
	return mini;
}
