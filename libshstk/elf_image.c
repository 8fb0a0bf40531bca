// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * elf_image.c - finds the segments, unwind sections and build id of an ELF image.
 *
 * Section headers are used if they are there: they know the size of .eh_frame, and only they lead
 * to .debug_frame. Otherwise program headers are enough. All functions are async-signal-safe.
 */
#include <elf.h>
#include <errno.h>

#include "elf_image.h"

#define PAGE 4096ull

#ifndef PT_GNU_SFRAME /* in glibc since 2.42 */
#define PT_GNU_SFRAME 0x6474e554
#endif

/* Returns true if [off, off + len) lies in [0, size). */
static bool inside(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

const uint8_t *elf_image_at(const struct elf_image *img, uint64_t vaddr, size_t *avail)
{
	unsigned int i;

	for (i = 0; i < img->nload; i++) {
		const struct load *l = &img->load[i];
		uint64_t rel = vaddr - l->vaddr;
		uint64_t off;

		if (rel >= l->filesz)
			continue;
		off = img->in_memory ? vaddr - img->lo : l->offset + rel;
		if (off >= img->size)
			return NULL;
		*avail = min(l->filesz - rel, img->size - off);
		return img->data + off;
	}
	return NULL;
}

static struct section section_at(const struct elf_image *img, uint64_t vaddr, uint64_t size)
{
	struct section s = { .vaddr = vaddr };
	size_t avail;

	s.data = elf_image_at(img, vaddr, &avail);
	if (s.data)
		s.size = min(avail, size);
	return s;
}

static struct section section_of(const struct elf_image *img, const struct range *r)
{
	if (r->hi == r->lo)
		return (struct section){ .size = 0 };
	return section_at(img, r->lo, r->hi - r->lo);
}

/* What a mapping must have in common with a segment. */
enum match {
	BEGINS_CODE, /* the mapping begins where a segment with code begins */
	BEGINS, /* it begins where any segment begins, since data may have been made executable */
	HAS_CODE, /* it begins within a segment with code */
};

/*
 * Returns true if a mapping of @size bytes from @offset on matches the segment @l, with pages of
 * @page bytes. A @size of 0 matches any length.
 */
static bool matches(const struct load *l, enum match match, uint64_t offset, uint64_t size,
		    uint64_t page)
{
	uint64_t first = l->offset & ~(page - 1), behind = ALIGN_UP(l->offset + l->filesz, page);

	if (!l->filesz || (!l->exec && match != BEGINS))
		return false;
	if (match == HAS_CODE ? offset < first || offset >= l->offset + l->filesz : offset != first)
		return false;
	return !size || size <= behind - offset;
}

bool elf_image_fits(const struct elf_image *img, const struct range *at, uint64_t offset,
		    uint64_t bias)
{
	uint64_t vaddr = at->lo - bias, page;
	unsigned int i;

	for (i = 0; i < img->nload; i++) {
		const struct load *l = &img->load[i];

		if (vaddr - offset != l->vaddr - l->offset)
			continue;
		for (page = PAGE; page <= 16 * PAGE; page *= 4) {
			uint64_t first = l->offset & ~(page - 1);

			if (offset >= first && offset < l->offset + l->filesz &&
			    at->hi - at->lo <= ALIGN_UP(l->offset + l->filesz, page) - offset)
				return true;
		}
	}
	return false;
}

static const struct load *find_load(const struct elf_image *img, const struct range *at,
				    uint64_t offset, uint64_t size)
{
	enum match match;
	uint64_t page;
	unsigned int i;

	/* Kernels map whole pages of 4 to 64 KiB, so the closest fit is tried first. */
	for (page = PAGE; page <= 16 * PAGE; page *= 4) {
		if (page > PAGE && size && (at->lo | at->hi | offset) & (page - 1))
			continue;
		for (match = BEGINS_CODE; match <= HAS_CODE; match++) {
			for (i = 0; i < img->nload; i++) {
				if (matches(&img->load[i], match, offset, size, page))
					return &img->load[i];
			}
		}
	}
	return NULL;
}

bool elf_image_bias(const struct elf_image *img, const struct range *at, uint64_t offset,
		    uint64_t *bias)
{
	const struct load *l = find_load(img, at, offset, at->hi - at->lo);

	/* Mappings of neighbouring segments may have become one mapping. */
	if (!l)
		l = find_load(img, at, offset, 0);
	if (l)
		*bias = at->lo - offset - (l->vaddr - l->offset);
	return l;
}

static void find_build_id(struct elf_image *img, uint64_t vaddr, uint64_t size)
{
	struct section s = section_at(img, vaddr, size);
	size_t pos = 0;

	while (s.size - pos >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		size_t name, desc;

		memcpy(&n, s.data + pos, sizeof(n));
		name = pos + sizeof(n);
		if (!inside(name, ALIGN_UP((uint64_t)n.n_namesz, 4), s.size))
			return;
		desc = name + ALIGN_UP((uint64_t)n.n_namesz, 4);
		if (!inside(desc, n.n_descsz, s.size))
			return;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
		    !memcmp(s.data + name, "GNU", 4) && n.n_descsz) {
			img->build_id = s.data + desc;
			img->build_id_size = n.n_descsz;
			return;
		}
		pos = desc + ALIGN_UP((uint64_t)n.n_descsz, 4);
		if (pos > s.size)
			return;
	}
}

/* Returns the range of virtual addresses of a segment. */
static struct range memory_of(const Elf64_Phdr *p)
{
	return (struct range){ p->p_vaddr, p->p_vaddr + p->p_memsz };
}

/* The segments that are known by their type. */
struct ranges {
	struct range eh_frame_hdr, sframe, dynamic;
};

static noinline_for_stack int parse_phdrs(struct elf_image *img, const Elf64_Ehdr *eh,
					  struct ranges *ranges)
{
	struct range note[4];
	unsigned int i, nnote = 0;

	if (eh->e_phentsize != sizeof(Elf64_Phdr) ||
	    !inside(eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(Elf64_Phdr), img->size))
		return -ENOEXEC;
	img->lo = UINT64_MAX;
	for (i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr p;

		memcpy(&p, img->data + eh->e_phoff + i * sizeof(p), sizeof(p));
		switch (p.p_type) {
		case PT_LOAD:
			/* So no sum of these is more than a number can hold. */
			if (img->nload == IMAGE_LOADS || p.p_memsz > img->m->addr_max ||
			    p.p_vaddr > img->m->addr_max || p.p_offset > img->m->addr_max ||
			    p.p_filesz > p.p_memsz)
				return -ENOEXEC;
			img->load[img->nload++] = (struct load){
				.vaddr = p.p_vaddr,
				.offset = p.p_offset,
				.filesz = p.p_filesz,
				.memsz = p.p_memsz,
				.exec = p.p_flags & PF_X,
				.write = p.p_flags & PF_W,
			};
			img->lo = min(img->lo, p.p_vaddr & ~(PAGE - 1));
			img->hi = max(img->hi, ALIGN_UP(p.p_vaddr + p.p_memsz, PAGE));
			break;
		case PT_GNU_EH_FRAME:
			ranges->eh_frame_hdr = memory_of(&p);
			break;
		case PT_GNU_SFRAME:
			ranges->sframe = memory_of(&p);
			break;
		case PT_DYNAMIC:
			ranges->dynamic = memory_of(&p);
			break;
		case PT_NOTE:
			if (nnote < ARRAY_SIZE(note))
				note[nnote++] = memory_of(&p);
			break;
		default:
			break;
		}
	}
	if (!img->nload)
		return -ENOEXEC;
	for (i = 0; i < nnote && !img->build_id; i++)
		find_build_id(img, note[i].lo, note[i].hi - note[i].lo);
	return 0;
}

/* Returns true if the name at @off of the string table @str equals @want. */
static bool named(const struct section *str, uint64_t off, const char *want)
{
	size_t len = strlen(want) + 1;

	return inside(off, len, str->size) && !memcmp(str->data + off, want, len);
}

static noinline_for_stack void parse_shdrs(struct elf_image *img, const Elf64_Ehdr *eh)
{
	struct section str = { 0 };
	Elf64_Shdr sh;
	unsigned int i;

	if (img->in_memory || eh->e_shentsize != sizeof(sh) || eh->e_shstrndx >= eh->e_shnum ||
	    !inside(eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(sh), img->size))
		return;
	memcpy(&sh, img->data + eh->e_shoff + eh->e_shstrndx * sizeof(sh), sizeof(sh));
	if (!inside(sh.sh_offset, sh.sh_size, img->size))
		return;
	str.data = img->data + sh.sh_offset;
	str.size = sh.sh_size;
	img->nsection = eh->e_shnum;

	for (i = 0; i < eh->e_shnum; i++) {
		struct section s;

		memcpy(&sh, img->data + eh->e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type == SHT_NOBITS || sh.sh_flags & SHF_COMPRESSED ||
		    !inside(sh.sh_offset, sh.sh_size, img->size))
			continue;
		s.data = img->data + sh.sh_offset;
		s.size = sh.sh_size;
		s.vaddr = sh.sh_addr;
		if (named(&str, sh.sh_name, ".eh_frame"))
			img->eh_frame = s;
		else if (named(&str, sh.sh_name, ".debug_frame"))
			img->debug_frame = s;
		else if (named(&str, sh.sh_name, ".sframe"))
			img->sframe = s;
		else if (named(&str, sh.sh_name, ".gopclntab") ||
			 named(&str, sh.sh_name, ".data.rel.ro.gopclntab"))
			img->gopclntab = s;
		else if (named(&str, sh.sh_name, ".go.buildinfo"))
			img->go_buildinfo = s;
	}
}

int elf_image_parse(struct elf_image *img, const void *data, size_t size, bool in_memory)
{
	struct ranges ranges = { 0 };
	Elf64_Ehdr eh;
	int err;

	memset(img, 0, sizeof(*img));
	img->data = data;
	img->size = size;
	img->in_memory = in_memory;
	if (size < sizeof(eh))
		return -ENOEXEC;
	memcpy(&eh, data, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	img->m = machine_by_elf(eh.e_machine);
	if (!img->m)
		return -ENOEXEC;
	img->entry = eh.e_entry;
	err = parse_phdrs(img, &eh, &ranges);
	if (err)
		return err;
	parse_shdrs(img, &eh);
	if (!img->sframe.size)
		img->sframe = section_of(img, &ranges.sframe);
	img->eh_frame_hdr = section_of(img, &ranges.eh_frame_hdr);
	img->dynamic = section_of(img, &ranges.dynamic);
	return 0;
}
