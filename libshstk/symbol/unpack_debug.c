// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * unpack_debug.c - unpacks debug sections before libdw gets them.
 *
 * dwarf_begin_elf() inflates every compressed section of a file, by zlib. Debian's debug files are
 * compressed, and that took two thirds of the time of naming a profile. So sections that are not
 * read here are hidden from it, and the others are inflated before: libdeflate takes less than half
 * of the time. It is loaded where there are such sections; if it is not installed, libdw inflates
 * them. Sections that are packed by zstd are unpacked here in any case: libdw does not know zstd
 * before 0.189, and after that only if it was built so.
 */
#include <dlfcn.h>
#include <gelf.h>
#include <libdeflate.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "budget.h"
#include "elf_file.h"
#include "unpack_debug.h"

/* This constant is newer than some <elf.h>. */
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define HUGE_PAGE ((size_t)2 << 20) /* bytes, on all machines with pages of 4 KiB */

/* Header of an inflated section, before its bytes. */
struct shstk_unpacked {
	struct shstk_unpacked *next;
};

struct libdeflate_library {
	typeof(libdeflate_alloc_decompressor) *begin;
	typeof(libdeflate_zlib_decompress) *inflate;
	typeof(libdeflate_free_decompressor) *end;
};

/**
 * struct inflater - inflates sections, by libdeflate
 * @begun: the library was looked for.
 * @lib: the library's functions.
 * @state: the library's memory; NULL if the library is not there.
 */
struct inflater {
	bool begun;
	struct libdeflate_library lib;
	struct libdeflate_decompressor *state;
};

static void begin(struct inflater *ret)
{
	void *handle = dlopen("libdeflate.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	struct libdeflate_library *lib = &ret->lib;

	ret->begun = true;
	if (!handle)
		return;
	lib->begin = (typeof(lib->begin))dlsym(handle, "libdeflate_alloc_decompressor");
	lib->inflate = (typeof(lib->inflate))dlsym(handle, "libdeflate_zlib_decompress");
	lib->end = (typeof(lib->end))dlsym(handle, "libdeflate_free_decompressor");
	dlclose(handle);
	if (lib->begin && lib->inflate && lib->end)
		ret->state = lib->begin();
}

static void end(struct inflater *inflater)
{
	if (inflater->state)
		inflater->lib.end(inflater->state);
}

/*
 * Returns whether a section is read for functions, inlined calls or lines; all others stay packed.
 * In .dwo and .dwp files the names end in ".dwo", except the name of the index.
 */
static bool is_wanted(const char *name, bool lines)
{
	static const char *const wanted[] = {
		".debug_info",	   ".debug_abbrev",   ".debug_str",	 ".debug_str_offsets",
		".debug_line_str", ".debug_rnglists", ".debug_addr",	 ".debug_ranges",
		".debug_aranges",  ".debug_types",    ".debug_cu_index",
	};
	size_t len = strlen(name);

	if (!strcmp(name, ".debug_line"))
		return lines;
	if (len > 4 && !strcmp(name + len - 4, ".dwo"))
		len -= 4;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if (!strncmp(name, wanted[i], len) && !wanted[i][len])
			return true;
	return false;
}

/* Returns the bytes that a section takes once unpacked, 0 if it is not compressed. */
static uint64_t unpacked_size(Elf_Scn *scn, const GElf_Shdr *shdr, const char *name)
{
	GElf_Chdr chdr;
	Elf_Data *data;
	uint64_t size = 0;
	unsigned int i;

	if (shdr->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(scn, &chdr) ? chdr.ch_size : 0;
	if (!name || strncmp(name, ".zdebug", 7))
		return 0;
	/* The section begins with "ZLIB" and the size, big endian. */
	data = elf_rawdata(scn, NULL);
	if (!data || data->d_size < 12)
		return 0;
	for (i = 4; i < 12; i++)
		size = size << 8 | ((uint8_t *)data->d_buf)[i];
	return size;
}

/*
 * Returns the bytes of memory that a section of debug information will need; 0 for other sections.
 */
static uint64_t cost(Elf_Scn *scn, const char *name, bool copied, bool lines)
{
	uint64_t size;
	GElf_Shdr shdr;

	if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS || !name ||
	    (strncmp(name, ".debug_", 7) && strncmp(name, ".zdebug_", 8)))
		return 0;
	size = unpacked_size(scn, &shdr, name);
	/* These sections are hidden. */
	if (shdr.sh_flags & SHF_COMPRESSED && !is_wanted(name, lines))
		return 0;
	if (size > SIZE_MAX / 4)
		return SIZE_MAX / 4;
	return size + (copied ? shdr.sh_size : 0);
}

bool shstk_elf_afford(Elf *elf, bool copied, bool lines, struct shstk_account *account)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	const char *name;
	uint64_t size;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		size = cost(scn, name, copied, lines);
		if (size && !shstk_account_take(account, size))
			return false;
	}
	return true;
}

/* Hides a section from libdw. Only libelf's own copy of the header changes, not the file. */
static void hide(Elf_Scn *scn, GElf_Shdr *shdr)
{
	shdr->sh_type = SHT_NOBITS;
	gelf_update_shdr(scn, shdr);
}

/*
 * Unpacks @from, which was packed as @type says, into @size bytes at @to. Returns false on failure.
 */
static bool inflate(struct inflater *inflater, unsigned int type, const uint8_t *from, size_t len,
		    void *to, size_t size)
{
	if (type == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(to, size, from, len) == size;
	if (!inflater->begun)
		begin(inflater);
	return inflater->state &&
	       !inflater->lib.inflate(inflater->state, from, len, to, size, NULL);
}

/*
 * Returns memory for a section of @size bytes, or NULL. Large ones get huge pages, where the system
 * gives them to those who ask: a fault for every 4 KiB costs as much as a third of the inflating.
 */
static struct shstk_unpacked *alloc_unpacked(size_t size)
{
	struct shstk_unpacked *ret;
	void *memory;

	if (size > SIZE_MAX - sizeof(*ret))
		return NULL;
	size += sizeof(*ret);
	if (size < HUGE_PAGE)
		return malloc(size);
	if (posix_memalign(&memory, HUGE_PAGE, size))
		return NULL;
	madvise(memory, size & -HUGE_PAGE, MADV_HUGEPAGE);
	return memory;
}

/* Unpacks the bytes in @data behind @header, to @size bytes. Returns their memory, or NULL. */
static struct shstk_unpacked *inflate_data(struct inflater *inflater, unsigned int type,
					   const Elf_Data *data, size_t header, size_t size)
{
	struct shstk_unpacked *ret = alloc_unpacked(size);

	if (!ret)
		return NULL;
	if (!inflate(inflater, type, (uint8_t *)data->d_buf + header, data->d_size - header,
		     ret + 1, size)) {
		free(ret);
		return NULL;
	}
	return ret;
}

/* Inflates a section. What cannot be inflated here stays as it is, and libdw tries it. */
static void inflate_section(Elf *elf, Elf_Scn *scn, GElf_Shdr *shdr, struct inflater *inflater,
			    struct shstk_unpacked **list)
{
	size_t header = gelf_fsize(elf, ELF_T_CHDR, 1, EV_CURRENT);
	Elf_Data *data = elf_getdata(scn, NULL);
	struct shstk_unpacked *more;
	GElf_Chdr chdr;

	if (!data || !data->d_buf || data->d_size < header || !gelf_getchdr(scn, &chdr) ||
	    (chdr.ch_type != ELFCOMPRESS_ZLIB && chdr.ch_type != ELFCOMPRESS_ZSTD))
		return;
	more = inflate_data(inflater, chdr.ch_type, data, header, chdr.ch_size);
	if (!more)
		return;
	if (!shstk_elf_replace(scn, more + 1, chdr.ch_size)) {
		free(more);
		return;
	}
	more->next = *list;
	*list = more;
	shdr->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	shdr->sh_size = chdr.ch_size;
	gelf_update_shdr(scn, shdr);
}

static bool is_packed(Elf_Scn *scn, GElf_Shdr *shdr)
{
	return gelf_getshdr(scn, shdr) && shdr->sh_type == SHT_PROGBITS &&
	       shdr->sh_flags & SHF_COMPRESSED;
}

void shstk_elf_unpack(Elf *elf, bool lines, struct shstk_unpacked **list)
{
	struct inflater inflater = { .state = NULL };
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		name = is_packed(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		if (!name || strncmp(name, ".debug_", 7))
			continue;
		if (!is_wanted(name, lines)) {
			hide(scn, &shdr);
			continue;
		}
		inflate_section(elf, scn, &shdr, &inflater, list);
	}
	end(&inflater);
}

void shstk_unpacked_free(struct shstk_unpacked *list)
{
	while (list) {
		struct shstk_unpacked *next = list->next;

		free(list);
		list = next;
	}
}
