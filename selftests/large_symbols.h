/* SPDX-License-Identifier: GPL-2.0-or-later */
/* large_symbols.h - an ELF file whose symbols are too many to be read. */
#ifndef SELFTESTS_LARGE_SYMBOLS_H
#define SELFTESTS_LARGE_SYMBOLS_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Makes a file in memory, with holes, that has a symbol table of 64 MiB with 256 MiB of names.
 * Returns a descriptor or -1.
 */
static inline int make_large_symbols(const char *name)
{
	const uint64_t mib = 1u << 20, symbols = 64 * mib, names = 256 * mib;
	int fd = memfd_create(name, MFD_CLOEXEC);
	Elf64_Ehdr eh = {
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_shoff = 4096,
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3,
	};
	Elf64_Phdr ph = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096
	};
	Elf64_Shdr sh[4] = {
		{ .sh_type = SHT_NULL },
		{ .sh_type = SHT_DYNSYM,
		  .sh_offset = mib,
		  .sh_size = symbols,
		  .sh_link = 2,
		  .sh_entsize = sizeof(Elf64_Sym) },
		{ .sh_type = SHT_STRTAB, .sh_offset = mib + symbols, .sh_size = names },
		/* A file with so large names of sections is refused before. */
		{ .sh_type = SHT_STRTAB, .sh_offset = mib - 1, .sh_size = 1 },
	};

	memcpy(eh.e_ident, "\177ELF\2\1\1", 7);
	if (ftruncate(fd, mib + symbols + names) || pwrite(fd, &eh, sizeof(eh), 0) < 0 ||
	    pwrite(fd, &ph, sizeof(ph), sizeof(eh)) < 0 || pwrite(fd, sh, sizeof(sh), 4096) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

#endif
