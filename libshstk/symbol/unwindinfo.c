// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * unwindinfo.c - unwind information that lies outside of what is mapped:
 * compressed, packed in .gnu_debugdata, or in a separate debug file.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "private.h"
#include "shstk.h"

/* More of it no program has. */
#define SECTION_MAX (1ull << 30)

static Elf_Scn *find(Elf *elf, const char *wanted, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, shdr) || shdr->sh_type == SHT_NOBITS ||
		    !shdr->sh_size)
			continue;
		name = elf_strptr(elf, names, shdr->sh_name);
		if (name && !strcmp(name, wanted))
			return scn;
	}
	return NULL;
}

static void *unpack(Elf_Scn *scn, const Elf_Data *data, size_t *size)
{
	size_t head = sizeof(Elf64_Chdr);
	GElf_Chdr chdr;
	uLongf len;
	void *p;

	if (!gelf_getchdr(scn, &chdr) || chdr.ch_type != ELFCOMPRESS_ZLIB ||
	    !chdr.ch_size || chdr.ch_size > SECTION_MAX || data->d_size < head)
		return NULL;
	len = chdr.ch_size;
	p = malloc(len);
	if (p && (uncompress(p, &len, (Bytef *)data->d_buf + head,
			     data->d_size - head) != Z_OK ||
		  len != chdr.ch_size)) {
		free(p);
		p = NULL;
	}
	*size = len;
	return p;
}

/* A section's bytes, unpacked, as memory of their own. False if there is none. */
static bool take(Elf *elf, const char *name, struct shstk_section *ret)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = find(elf, name, &shdr);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	if (ret->data || !data || !data->d_buf || data->d_size > SECTION_MAX)
		return false;
	if (shdr.sh_flags & SHF_COMPRESSED) {
		ret->data = unpack(scn, data, &ret->size);
	} else {
		ret->data = malloc(data->d_size);
		ret->size = data->d_size;
		if (ret->data)
			memcpy(ret->data, data->d_buf, data->d_size);
	}
	ret->vaddr = shdr.sh_addr;
	return ret->data;
}

static void take_both(Elf *elf, unsigned int machine, struct shstk_debug *ret)
{
	GElf_Ehdr eh;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != machine)
		return;
	take(elf, ".debug_frame", &ret->debug_frame);
	take(elf, ".eh_frame", &ret->eh_frame);
}

int shstk_debug_find(void *debug_dirs, const char *path, const void *image,
		     size_t size, struct shstk_debug *ret)
{
	const char *dirs = debug_dirs ? debug_dirs : "/usr/lib/debug";
	const struct shstk_root ours = { .fd = -1 };
	GElf_Ehdr eh;
	void *memory = NULL;
	Elf *elf, *other;
	int fd;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)image, size);
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh)) {
		elf_end(elf);
		return -ENOEXEC;
	}
	take(elf, ".debug_frame", &ret->debug_frame);

	other = shstk_elf_minidebug(elf, &memory);
	take_both(other, eh.e_machine, ret);
	elf_end(other);
	free(memory);

	fd = ret->debug_frame.data ? -ENOENT :
				     shstk_debugfile_open(&ours, dirs, path, elf);
	if (fd >= 0) {
		other = shstk_elf_begin(fd);
		take_both(other, eh.e_machine, ret);
		elf_end(other);
		close(fd);
	}
	elf_end(elf);
	return ret->debug_frame.data || ret->eh_frame.data ? 0 : -ENOENT;
}
