// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * unwindinfo.c - unwind information that is not in mapped memory: compressed, packed in
 * .gnu_debugdata, or in a separate debug file.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "debugfile.h"
#include "elf_file.h"
#include "root.h"
#include "shstk.h"
#include "symbol.h"

/* Largest section that is read; no program has more unwind information. */
#define SECTION_MAX (1ull << 30)

/* This constant is newer than some <elf.h>. */
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

static Elf_Scn *find(Elf *elf, const char *wanted, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;

	while ((scn = shstk_elf_next_named(elf, scn, wanted, shdr)))
		if (shdr->sh_type != SHT_NOBITS && shdr->sh_size)
			break;
	return scn;
}

/*
 * Returns what @from unpacks to, packed as @type says, in malloc'd memory; NULL if that is not
 * @size bytes.
 */
static void *unpack(unsigned int type, const uint8_t *from, size_t len, uint64_t size)
{
	uLongf n = size;
	void *p = NULL;
	bool done = false;

	if (size && size <= SECTION_MAX)
		p = malloc(size);
	if (p && type == ELFCOMPRESS_ZLIB)
		done = uncompress(p, &n, from, len) == Z_OK && n == size;
	else if (p && type == ELFCOMPRESS_ZSTD)
		done = ZSTD_decompress(p, size, from, len) == size;
	if (!done) {
		free(p);
		p = NULL;
	}
	return p;
}

static void unpack_section(Elf_Scn *scn, const Elf_Data *data, struct shstk_section *ret)
{
	const size_t head = sizeof(Elf64_Chdr);
	GElf_Chdr chdr;

	if (!gelf_getchdr(scn, &chdr) || data->d_size < head)
		return;
	ret->data = unpack(chdr.ch_type, (uint8_t *)data->d_buf + head, data->d_size - head,
			   chdr.ch_size);
	ret->size = chdr.ch_size;
}

/* Unpacks a section in the old way, .zdebug_frame: "ZLIB", then the size, big endian. */
static void unpack_old(const Elf_Data *data, struct shstk_section *ret)
{
	const uint8_t *from = data->d_buf;
	const size_t head = 12;

	if (data->d_size < head || memcmp(from, "ZLIB", 4))
		return;
	ret->size = 0;
	for (size_t i = 4; i < head; i++)
		ret->size = ret->size << 8 | from[i];
	ret->data = unpack(ELFCOMPRESS_ZLIB, from + head, data->d_size - head, ret->size);
}

/* Takes the bytes of a section, unpacked, in malloc'd memory, if @ret has none yet. */
static void take(Elf *elf, const char *name, struct shstk_section *ret)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = ret->data ? NULL : find(elf, name, &shdr);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	if (!data || !data->d_buf || data->d_size > SECTION_MAX)
		return;
	if (shdr.sh_flags & SHF_COMPRESSED) {
		unpack_section(scn, data, ret);
	} else if (!strncmp(name, ".zdebug", 7)) {
		unpack_old(data, ret);
	} else {
		ret->data = malloc(data->d_size);
		ret->size = data->d_size;
		if (ret->data)
			memcpy(ret->data, data->d_buf, data->d_size);
	}
	ret->vaddr = shdr.sh_addr;
}

static void take_debug_frame(Elf *elf, struct shstk_debug *ret)
{
	take(elf, ".debug_frame", &ret->debug_frame);
	take(elf, ".zdebug_frame", &ret->debug_frame);
}

static void take_both(Elf *elf, unsigned int machine, struct shstk_debug *ret)
{
	GElf_Ehdr eh;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != machine)
		return;
	take_debug_frame(elf, ret);
	take(elf, ".eh_frame", &ret->eh_frame);
}

int shstk_debug_find(void *debug_dirs, const char *path, const void *image, size_t size,
		     struct shstk_debug *ret)
{
	const struct shstk_root ours = { .fd = -1 };
	const struct shstk_debugplace place = {
		.root = &ours,
		.dirs = debug_dirs ? debug_dirs : "/usr/lib/debug",
	};
	GElf_Ehdr eh;
	void *memory = NULL;
	Elf *elf, *other;
	int fd;

	elf = shstk_elf_memory((char *)image, size);
	if (!elf || !gelf_getehdr(elf, &eh)) {
		elf_end(elf);
		return -ENOEXEC;
	}
	take_debug_frame(elf, ret);

	other = shstk_elf_minidebug(elf, &memory, NULL);
	take_both(other, eh.e_machine, ret);
	elf_end(other);
	free(memory);

	fd = ret->debug_frame.data ? -ENOENT : shstk_debugfile_open(&place, path, elf);
	if (fd >= 0) {
		other = shstk_elf_begin(fd);
		take_both(other, eh.e_machine, ret);
		elf_end(other);
		close(fd);
	}
	elf_end(elf);
	return ret->debug_frame.data || ret->eh_frame.data ? 0 : -ENOENT;
}
