// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dwarf_fuzz.c - debug information: lines and inlined calls at addresses all over a program's code,
 * in bounded memory and time.
 *
 * A byte that is changed anywhere in a file hardly ever belongs to its debug information. So most
 * mutations change one of the debug sections, and the rest of the file stays as it is.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"

#define BASE 0x10000000ull
#define PROBES 256
#define MEMORY (64u << 20)
#define SECTIONS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

static bool read_header(const uint8_t *data, size_t size, Elf64_Ehdr *ret)
{
	if (size < sizeof(*ret))
		return false;
	memcpy(ret, data, sizeof(*ret));
	return !memcmp(ret->e_ident, ELFMAG, SELFMAG) && ret->e_ident[EI_CLASS] == ELFCLASS64;
}

static bool read_section(const uint8_t *data, size_t size, const Elf64_Ehdr *ehdr, unsigned int i,
			 Elf64_Shdr *ret)
{
	uint64_t at = ehdr->e_shoff + (uint64_t)i * sizeof(*ret);

	if (ehdr->e_shoff > size || at > size || size - at < sizeof(*ret))
		return false;
	memcpy(ret, data + at, sizeof(*ret));
	return ret->sh_offset <= size && ret->sh_size <= size - ret->sh_offset;
}

/* Returns whether the name of a section begins with ".debug_". */
static bool is_debug(const uint8_t *data, const Elf64_Shdr *names, const Elf64_Shdr *section)
{
	return names->sh_size > 7 && section->sh_name < names->sh_size - 7 &&
	       !memcmp(data + names->sh_offset + section->sh_name, ".debug_", 7);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	Elf64_Shdr names, section, some[SECTIONS_MAX];
	unsigned int nr = 0;
	Elf64_Ehdr ehdr;

	if (!read_header(data, size, &ehdr) ||
	    !read_section(data, size, &ehdr, ehdr.e_shstrndx, &names) || !(seed % 16))
		return LLVMFuzzerMutate(data, size, max);
	for (unsigned int i = 0; i < ehdr.e_shnum && nr < SECTIONS_MAX; i++)
		if (read_section(data, size, &ehdr, i, &section) && section.sh_size &&
		    section.sh_type == SHT_PROGBITS && is_debug(data, &names, &section))
			some[nr++] = section;
	if (!nr)
		return LLVMFuzzerMutate(data, size, max);
	section = some[seed / 16 % nr];
	LLVMFuzzerMutate(data + section.sh_offset, section.sh_size, section.sh_size);
	return size;
}

/* Finds the code that the file says it has, as far as that is possible: at most 1 MiB. */
static void find_code(const uint8_t *data, size_t size, uint64_t *start, uint64_t *length)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;

	*start = 0;
	*length = 0x2000;
	if (!read_header(data, size, &ehdr) || ehdr.e_phoff > size)
		return;
	for (unsigned int i = 0; i < ehdr.e_phnum; i++) {
		uint64_t at = ehdr.e_phoff + (uint64_t)i * sizeof(phdr);

		if (at > size || size - at < sizeof(phdr))
			return;
		memcpy(&phdr, data + at, sizeof(phdr));
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		*start = phdr.p_offset & ~4095ull;
		*length = phdr.p_filesz < 1u << 20 ? phdr.p_filesz : 1u << 20;
		return;
	}
}

static void probe(struct shstk_symproc *proc, uint64_t start, uint64_t length)
{
	const struct shstk_symbol *symbol;
	uint64_t step = length / PROBES + 1;

	for (uint64_t at = 0; at < length; at += step) {
		symbol = shstk_symproc_lookup(proc, BASE + start + at, at & 1);
		if (!symbol->nr)
			abort();
		for (unsigned int i = 0; i < symbol->nr; i++)
			if (!symbol->frames[i].function || !symbol->frames[i].linkage)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_symbols_opts opts = {
		.debug_dirs = "/nonexistent",
		.memory = MEMORY,
		.time = 1000000000,
	};
	struct shstk_symmap_info info = {
		.start = BASE,
		.end = BASE + (1ull << 32),
		.path = "fuzz",
		.image = data,
		.image_size = size,
	};
	struct shstk_symbols *symbols;
	struct shstk_symproc *proc;
	uint64_t start, length;

	if (!size)
		return 0;
	if (shstk_symbols_create(&opts, &symbols) || shstk_symproc_create(symbols, 0, &proc) ||
	    shstk_symproc_add(proc, &info))
		abort();
	find_code(data, size, &start, &length);
	probe(proc, start, length);
	shstk_symbols_destroy(symbols);
	return 0;
}
