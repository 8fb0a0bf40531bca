// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * functions_test.c - tests how long it takes to find the functions of files that are made to take
 * long: `shstk record --heap -p` looks into all files that a process has mapped.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/elf/functions.h"

#define PATIENCE 100 /* seconds, for what takes a fraction of one */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

/**
 * struct shape - the contents of a file
 * @segments: number of code segments, of which the last one has all functions.
 * @symbols: number of symbols in its table.
 * @tables: number of sections that say that they are this table.
 * @least: least number of functions to find.
 * @most: greatest number of functions to find.
 * @name: name of the case.
 */
struct shape {
	unsigned int segments, symbols, tables, least, most;
	const char *name;
};

static const struct shape shapes[] = {
	{ 1, 1000, 1, 1000, 1000, "a file as others: all functions" },
	{ 60000, 1000000, 1, 0, 1000000, "many segments: each symbol does not go through all" },
	{ 1, 1000, 60000, 1000, 8000, "many tables of symbols: not all are looked at" },
};

static void put(int fd, const void *from, size_t size, uint64_t at)
{
	if (pwrite(fd, from, size, (off_t)at) != (ssize_t)size)
		_exit(2);
}

static void put_segments(int fd, const struct shape *s)
{
	Elf64_Phdr p = { .p_type = PT_LOAD, .p_flags = PF_X, .p_filesz = 16 };

	for (unsigned int i = 0; i < s->segments; i++) {
		p.p_vaddr = i + 1 == s->segments ? 0x1000 : 0x100000;
		put(fd, &p, sizeof(p), sizeof(Elf64_Ehdr) + i * sizeof(p));
	}
}

static void put_symbols(int fd, const struct shape *s, uint64_t at)
{
	const Elf64_Sym sym = {
		.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x1000
	};
	Elf64_Sym many[1000];

	for (unsigned int i = 0; i < 1000; i++)
		many[i] = sym;
	for (unsigned int i = 0; i < s->symbols; i += 1000)
		put(fd, many, sizeof(many), at + i * sizeof(sym));
}

/*
 * Writes the names and the sections behind the symbols. Returns the offset of the section headers.
 */
static uint64_t put_sections(int fd, const struct shape *s, uint64_t symbols)
{
	uint64_t names = symbols + s->symbols * sizeof(Elf64_Sym), at = names + 16;
	Elf64_Shdr strings = { .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = 3 };
	Elf64_Shdr table = {
		.sh_type = SHT_SYMTAB,
		.sh_offset = symbols,
		.sh_size = s->symbols * sizeof(Elf64_Sym),
		.sh_link = 1,
		.sh_entsize = sizeof(Elf64_Sym),
	};

	put(fd, "\0f", 3, names);
	put(fd, &(Elf64_Shdr){ .sh_type = SHT_NULL }, sizeof(table), at);
	put(fd, &strings, sizeof(strings), at + sizeof(table));
	for (unsigned int i = 0; i < s->tables; i++)
		put(fd, &table, sizeof(table), at + (2 + i) * sizeof(table));
	return at;
}

static int make(const struct shape *s)
{
	uint64_t symbols = sizeof(Elf64_Ehdr) + s->segments * sizeof(Elf64_Phdr);
	int fd = memfd_create("elf", MFD_CLOEXEC);
	Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = OWN_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)s->segments,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (uint16_t)(s->tables + 2),
		.e_shstrndx = 1,
	};

	if (fd < 0)
		_exit(2);
	symbols = (symbols + 15) & ~15ull;
	put_segments(fd, s);
	put_symbols(fd, s, symbols);
	header.e_shoff = put_sections(fd, s, symbols);
	put(fd, &header, sizeof(header), 0);
	return fd;
}

static int count(void *arg, const char *name, uint64_t offset)
{
	*(unsigned int *)arg += !strcmp(name, "f") && !offset;
	return 0;
}

int main(void)
{
	const int nr = sizeof(shapes) / sizeof(*shapes);
	bool failed = false;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%d\n", nr);
	for (int i = 0; i < nr; i++) {
		const struct shape *s = &shapes[i];
		int fd = make(s);
		unsigned int found = 0;
		bool good;

		alarm(PATIENCE);
		good = !functions_find(fd, count, &found) && found >= s->least && found <= s->most;
		close(fd);
		printf("%sok %d %s # %u functions\n", good ? "" : "not ", i + 1, s->name, found);
		failed |= !good;
	}
	return failed;
}
