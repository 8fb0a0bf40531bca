// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * elf_headers.c - how many headers an ELF file says it has, before libelf reads them.
 *
 * libelf allocates memory for each section when it opens a file, and for all segments when it is
 * asked for one. A file with holes, or an image that was packed, can have as many of them as it
 * likes.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "elf_file.h"

/* Linkers make a few dozen sections, and compilers one for each function of a file. */
#define MOST_SECTIONS (1u << 16)
/* Core files have a segment for each mapping. Systems allow a process 2^20 of these. */
#define MOST_SEGMENTS (1u << 21)

/*
 * struct places - where the numbers are in files of a class, as offsets in bytes
 * @word: bytes of an address.
 * @table: place in the file's header of the offset of the sections' headers, of @word bytes.
 * @segments: place in the file's header of the number of segments, of two bytes. PN_XNUM: the number
 *	is in the header of the first section.
 * @sections: the same for sections. 0: the number is in the header of the first section.
 * @many_sections: place in that header of the number of sections, of @word bytes.
 * @many_segments: place in that header of the number of segments, of four bytes.
 */
struct places {
	uint8_t word;
	uint8_t table;
	uint8_t segments;
	uint8_t sections;
	uint8_t many_sections;
	uint8_t many_segments;
};

static const struct places places32 = {
	.word = 4,
	.table = offsetof(Elf32_Ehdr, e_shoff),
	.segments = offsetof(Elf32_Ehdr, e_phnum),
	.sections = offsetof(Elf32_Ehdr, e_shnum),
	.many_sections = offsetof(Elf32_Shdr, sh_size),
	.many_segments = offsetof(Elf32_Shdr, sh_info),
};

static const struct places places64 = {
	.word = 8,
	.table = offsetof(Elf64_Ehdr, e_shoff),
	.segments = offsetof(Elf64_Ehdr, e_phnum),
	.sections = offsetof(Elf64_Ehdr, e_shnum),
	.many_sections = offsetof(Elf64_Shdr, sh_size),
	.many_segments = offsetof(Elf64_Shdr, sh_info),
};

static uint64_t number(const uint8_t *at, unsigned int size, bool big)
{
	uint64_t ret = 0;

	for (unsigned int i = 0; i < size; i++)
		ret |= (uint64_t)at[i] << 8 * (big ? size - 1 - i : i);
	return ret;
}

/*
 * struct source - where the headers are
 * @image: the file in memory, or NULL.
 * @size: bytes of @image.
 * @fd: the file, if there is no @image.
 */
struct source {
	const uint8_t *image;
	size_t size;
	int fd;
};

/* Reads at most @size bytes. Returns how many could be read. */
static size_t read_at(const struct source *from, uint64_t at, void *buf, size_t size)
{
	ssize_t n;

	if (from->image) {
		if (at >= from->size)
			return 0;
		size = size < from->size - at ? size : from->size - at;
		memcpy(buf, from->image + at, size);
		return size;
	}
	n = at <= INT64_MAX ? pread(from->fd, buf, size, (off_t)at) : -1;
	return n > 0 ? (size_t)n : 0;
}

/*
 * Corrects numbers that are too large for the file's header, whose first section's header is at
 * @table.
 */
static void read_first(const struct source *from, const struct places *p, bool big, uint64_t table,
		       uint64_t *sections, uint64_t *segments)
{
	uint8_t first[sizeof(Elf64_Shdr)] = { 0 };

	if (!table || !read_at(from, table, first, sizeof(first)))
		return;
	if (!*sections)
		*sections = number(first + p->many_sections, p->word, big);
	if (*segments == PN_XNUM)
		*segments = number(first + p->many_segments, 4, big);
}

static bool is_bounded(const struct source *from)
{
	uint8_t head[sizeof(Elf64_Ehdr)] = { 0 };
	uint64_t sections, segments;
	const struct places *p;
	bool big;

	/* libelf refuses what is no ELF file. */
	if (read_at(from, 0, head, sizeof(head)) < sizeof(Elf32_Ehdr) ||
	    memcmp(head, ELFMAG, SELFMAG))
		return true;
	p = head[EI_CLASS] == ELFCLASS32 ? &places32 : &places64;
	big = head[EI_DATA] == ELFDATA2MSB;
	sections = number(head + p->sections, 2, big);
	segments = number(head + p->segments, 2, big);
	if (!sections || segments == PN_XNUM)
		read_first(from, p, big, number(head + p->table, p->word, big), &sections,
			   &segments);
	return sections <= MOST_SECTIONS && segments <= MOST_SEGMENTS;
}

bool shstk_elf_bounded(int fd)
{
	return is_bounded(&(struct source){ .fd = fd });
}

bool shstk_elf_image_bounded(const void *image, size_t size)
{
	return !size || is_bounded(&(struct source){ .image = image, .size = size });
}
