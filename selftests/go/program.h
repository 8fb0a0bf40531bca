/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * program.h - the headers of a small program: code that is not in the file, and data, in
 * which a table of Go's may lie.
 */
#ifndef SELFTESTS_GO_PROGRAM_H
#define SELFTESTS_GO_PROGRAM_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TEXT 0x401000ull
#define DATA 0x500000ull
#define PROGRAM_HEAD (sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr))

/* Fills the PROGRAM_HEAD bytes at @head; @size bytes of data follow them in the file. */
static inline void program_head(uint8_t *head, size_t size)
{
	Elf64_Ehdr eh = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr ph[2] = {
		{
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_vaddr = TEXT,
			.p_filesz = PROGRAM_HEAD,
			.p_memsz = 0x10000,
		},
		{
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W,
			.p_vaddr = DATA,
			.p_offset = PROGRAM_HEAD,
			.p_filesz = size,
			.p_memsz = size,
		},
	};

	memcpy(head, &eh, sizeof(eh));
	memcpy(head + sizeof(eh), ph, sizeof(ph));
}

#endif
