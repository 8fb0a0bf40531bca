/* SPDX-License-Identifier: GPL-2.0-or-later */
/* many_tables.h - a library with many tables of relocations, which are all the same bytes of the file. */
#ifndef SELFTESTS_MANY_TABLES_H
#define SELFTESTS_MANY_TABLES_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MANY_TABLES 100
#define MANY_RELOCATIONS 1000 /* in each of them */
#define MANY_BYTES (MANY_RELOCATIONS * sizeof(Elf64_Rela))
#define MANY_PLACE 0x2000 /* address to which the last relocation refers */

enum { MANY_DYNSYM = 1, MANY_NAMES, MANY_SYMTAB, MANY_FIRST };

/* The symbol "other" has the relocations of @others, and the next one has @last, which is a table of its own. */
struct many_tables {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Shdr sections[MANY_FIRST + MANY_TABLES + 1];
	Elf64_Sym symbols[3];
	char names[32];
	Elf64_Rela others[MANY_RELOCATIONS];
	Elf64_Rela last;
};

static inline Elf64_Shdr many_table(size_t offset, size_t size, unsigned int symbols)
{
	return (Elf64_Shdr){ .sh_type = SHT_RELA,
			     .sh_offset = offset,
			     .sh_size = size,
			     .sh_link = symbols,
			     .sh_entsize = sizeof(Elf64_Rela),
			     .sh_addralign = 8 };
}

static inline Elf64_Shdr many_symbols(unsigned int type)
{
	return (Elf64_Shdr){ .sh_type = type,
			     .sh_offset = offsetof(struct many_tables, symbols),
			     .sh_size = sizeof(((struct many_tables *)0)->symbols),
			     .sh_link = MANY_NAMES,
			     .sh_entsize = sizeof(Elf64_Sym),
			     .sh_addralign = 8 };
}

static inline void make_many_headers(struct many_tables *f, unsigned int machine, unsigned int nr)
{
	f->header = (Elf64_Ehdr){ .e_type = ET_DYN,
				  .e_machine = machine,
				  .e_version = EV_CURRENT,
				  .e_phoff = offsetof(struct many_tables, segments),
				  .e_shoff = offsetof(struct many_tables, sections),
				  .e_ehsize = sizeof(f->header),
				  .e_phentsize = sizeof(Elf64_Phdr),
				  .e_phnum = 2,
				  .e_shentsize = sizeof(Elf64_Shdr),
				  .e_shnum = MANY_FIRST + nr + 1 };
	memcpy(f->header.e_ident, ELFMAG "\2\1\1", EI_VERSION + 1);
	f->segments[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096
	};
	f->segments[1] = (Elf64_Phdr){ .p_type = PT_TLS, .p_memsz = 64, .p_align = 8 };
}

/*
 * Makes a file with @nr tables of relocations of a type, at most MANY_TABLES, before the one of @name, whose type
 * is @last. They refer to the symbols in that section. @name has at most 24 characters.
 */
static inline void make_many_tables(struct many_tables *f, unsigned int machine, unsigned int nr,
				    unsigned int symbols, unsigned int type, const char *name,
				    unsigned int last)
{
	memset(f, 0, sizeof(*f));
	make_many_headers(f, machine, nr);
	memcpy(f->names + 1, "other", 6);
	memcpy(f->names + 7, name, strlen(name));
	f->symbols[1] = (Elf64_Sym){ .st_name = 1, .st_info = STT_TLS, .st_shndx = 1 };
	f->symbols[2] = (Elf64_Sym){ .st_name = 7, .st_info = STT_TLS, .st_shndx = 1 };
	f->sections[MANY_DYNSYM] = many_symbols(SHT_DYNSYM);
	f->sections[MANY_SYMTAB] = many_symbols(SHT_SYMTAB);
	f->sections[MANY_NAMES] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
						.sh_offset = offsetof(struct many_tables, names),
						.sh_size = sizeof(f->names),
						.sh_addralign = 1 };
	for (unsigned int i = 0; i < MANY_RELOCATIONS; i++)
		f->others[i] = (Elf64_Rela){ 8, ELF64_R_INFO(1, type), 0 };
	f->last = (Elf64_Rela){ MANY_PLACE, ELF64_R_INFO(2, last), 0 };
	for (unsigned int i = 0; i < nr; i++)
		f->sections[MANY_FIRST + i] =
			many_table(offsetof(struct many_tables, others), MANY_BYTES, symbols);
	f->sections[MANY_FIRST + nr] =
		many_table(offsetof(struct many_tables, last), sizeof(f->last), MANY_DYNSYM);
}

#endif
