// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * golang_test.c - tests that programs of Go are recognised, whatever the headers of a file say: the
 * process that makes tables looks at files of all users. Prints KTAP.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/elf/golang.h"

#define LARGE (2u << 20) /* bytes of a dynamic section that no program has */

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

enum { NONE, MARK, FIRST, SECOND, NAMES, SECTIONS };

/* An ELF file with the section that Go makes, and two dynamic sections. */
struct file {
	Elf64_Ehdr head;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Dyn needed, none;
	char names[40];
};

/* The names of the sections, one after the other, from 1 on. */
static const char names[] = "\0.go.buildinfo\0.dynamic\0.shstrtab";
enum { NAME_MARK = 1, NAME_DYNAMIC = 15, NAME_NAMES = 24 };

static const struct file plain = {
	.head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shoff = offsetof(struct file, sections),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
	},
	.sections = {
		[MARK] = { .sh_name = NAME_MARK, .sh_type = SHT_PROGBITS },
		[FIRST] = { .sh_name = NAME_DYNAMIC, .sh_type = SHT_DYNAMIC, .sh_addralign = 8,
			    .sh_offset = offsetof(struct file, needed),
			    .sh_size = sizeof(Elf64_Dyn), .sh_entsize = sizeof(Elf64_Dyn) },
		[SECOND] = { .sh_name = NAME_DYNAMIC, .sh_type = SHT_DYNAMIC, .sh_addralign = 8,
			     .sh_offset = offsetof(struct file, none),
			     .sh_size = sizeof(Elf64_Dyn), .sh_entsize = sizeof(Elf64_Dyn) },
		[NAMES] = { .sh_name = NAME_NAMES, .sh_type = SHT_STRTAB,
			    .sh_offset = offsetof(struct file, names), .sh_size = sizeof(names) },
	},
	.needed = { .d_tag = DT_NEEDED },
};

#define UNEQUAL 9 /* the open file and its bytes are taken for different ones */

/*
 * Returns what a file with this beginning, and zeroes behind it, is taken for, as an open file and in
 * memory; UNEQUAL: for different ones.
 */
static int kind_of(struct file it)
{
	const int fd = memfd_create("file", MFD_CLOEXEC);
	enum golang_kind in_memory = GOLANG_NONE, ret = GOLANG_NONE;
	void *bytes = MAP_FAILED;

	memcpy(it.names, names, sizeof(names));
	if (fd >= 0 && !ftruncate(fd, 2 * LARGE) && pwrite(fd, &it, sizeof(it), 0) == sizeof(it)) {
		ret = golang_kind(fd);
		bytes = mmap(NULL, 2 * LARGE, PROT_READ, MAP_SHARED, fd, 0);
	}
	if (bytes != MAP_FAILED) {
		in_memory = golang_kind_of(bytes, 2 * LARGE);
		munmap(bytes, 2 * LARGE);
	}
	close(fd);
	return in_memory == ret ? (int)ret : UNEQUAL;
}

int main(void)
{
	struct file it = plain;

	puts("KTAP version 1\n1..5");
	verdict(kind_of(it) == GOLANG_WITH_C, "a program of Go that needs libraries");
	it.sections[FIRST].sh_offset = offsetof(struct file, none);
	verdict(kind_of(it) == GOLANG_ALONE, "one that needs none");
	it.sections[SECOND].sh_offset = offsetof(struct file, needed);
	verdict(kind_of(it) == GOLANG_ALONE, "of several dynamic sections only one is read");
	it = plain;
	it.sections[FIRST].sh_size = LARGE;
	verdict(kind_of(it) == GOLANG_ALONE, "one that is larger than a program's is not read");
	it = plain;
	it.sections[MARK].sh_name = NAME_NAMES;
	verdict(kind_of(it) == GOLANG_NONE, "a program of another language");
	return !!failed;
}
