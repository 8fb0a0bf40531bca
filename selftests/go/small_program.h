/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * small_program.h - programs of a few functions that are made by a test, with their code and a
 * table of Go's, or without one as a vdso may be.
 */
#ifndef SELFTESTS_GO_SMALL_PROGRAM_H
#define SELFTESTS_GO_SMALL_PROGRAM_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SMALL_CODE 0x1000 /* offset of the code in the file */
#define SMALL_TABLE 0x2000 /* offset of the table */
#define SMALL_SIZE 0x4000
#define SMALL_FUNC_SIZE 64 /* bytes of code in each function */

/**
 * struct small_func - a function
 * @name: its name; NULL: behind the last one.
 * @code: its instructions; what is left of SMALL_FUNC_SIZE is padding.
 * @frame: bytes that it moves sp by,
 * @from: from this instruction on: its offset.
 */
struct small_func {
	const char *name;
	uint8_t code[SMALL_FUNC_SIZE];
	unsigned int frame, from;
};

/* Where the table of Go lies. */
enum small_table {
	SMALL_WITHOUT,
	SMALL_READ_ONLY,
	SMALL_IN_DATA,
};

/* Offsets of the table's heaps from its start. */
enum {
	SMALL_NAMES = 0x80,
	SMALL_CUTAB = 0x480,
	SMALL_FILES = 0x4a0,
	SMALL_PCTAB = 0x500,
	SMALL_FUNCS = 0x900,
};

struct small_program {
	uint8_t *bytes;
	/* offsets at which the next name, string of values and function go */
	size_t name, value, nfunc;
};

static inline void small_put(struct small_program *m, size_t at, uint64_t v, size_t n)
{
	memcpy(m->bytes + SMALL_TABLE + at, &v, n);
}

static inline void small_number(struct small_program *m, uint32_t v)
{
	for (; v >= 128; v >>= 7)
		small_put(m, m->value++, (v & 127) | 128, 1);
	small_put(m, m->value++, v, 1);
}

/* Writes a string of values: 0 at first, and @v from @from on. Returns its offset in the heap. */
static inline uint32_t small_values(struct small_program *m, unsigned int v, unsigned int from,
				    unsigned int quantum)
{
	size_t at = m->value;

	if (v && from) {
		small_number(m, 2);
		small_number(m, from / quantum);
		small_number(m, 2 * v);
		small_number(m, (SMALL_FUNC_SIZE - from) / quantum);
	} else {
		small_number(m, 2 * (v + 1));
		small_number(m, SMALL_FUNC_SIZE / quantum);
	}
	small_number(m, 0);
	return at - SMALL_PCTAB;
}

static inline void small_describe(struct small_program *m, const struct small_func *f, size_t i,
				  unsigned int quantum)
{
	const size_t starts = 8 * (m->nfunc + 1), at = starts + 44 * i;

	small_put(m, SMALL_FUNCS + 8 * i, SMALL_FUNC_SIZE * i, 4);
	small_put(m, SMALL_FUNCS + 8 * i + 4, at, 4);
	small_put(m, SMALL_FUNCS + at, SMALL_FUNC_SIZE * i, 4);
	small_put(m, SMALL_FUNCS + at + 4, m->name - SMALL_NAMES, 4);
	small_put(m, SMALL_FUNCS + at + 16, small_values(m, f->frame, f->from, quantum), 4);
	small_put(m, SMALL_FUNCS + at + 20, small_values(m, 0, 0, quantum), 4);
	small_put(m, SMALL_FUNCS + at + 24, small_values(m, 1, 0, quantum), 4);
	memcpy(m->bytes + SMALL_TABLE + m->name, f->name, strlen(f->name) + 1);
	m->name += strlen(f->name) + 1;
}

/* Writes a table as Go 1.20 and later have it. */
static inline void small_table(struct small_program *m, const struct small_func *f,
			       unsigned int quantum, uint64_t text)
{
	static const uint16_t heaps[] = { SMALL_NAMES, SMALL_CUTAB, SMALL_FILES, SMALL_PCTAB,
					  SMALL_FUNCS };
	size_t i;

	small_put(m, 0, 0xfffffff1, 4);
	small_put(m, 6, quantum | 8 << 8, 2);
	small_put(m, 8, m->nfunc, 8);
	small_put(m, 16, 1, 8);
	small_put(m, 24, text, 8);
	for (i = 0; i < sizeof(heaps) / sizeof(*heaps); i++)
		small_put(m, 32 + 8 * i, heaps[i], 8);
	memcpy(m->bytes + SMALL_TABLE + SMALL_FILES, "/asm.s", 7);
	for (i = 0; i < m->nfunc; i++)
		small_describe(m, &f[i], i, quantum);
	small_put(m, SMALL_FUNCS + 8 * i, SMALL_FUNC_SIZE * i, 4);
}

/*
 * Fills the SMALL_SIZE bytes at @bytes, which are zeros, with a file for @machine (EM_*) that is to
 * be mapped at @base. The data after its code may be writable by the program.
 */
static inline void make_program(uint8_t *bytes, const struct small_func *f, int machine,
				uint64_t base, enum small_table table)
{
	const Elf64_Ehdr eh = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_EXEC,
		.e_machine = machine,
		.e_phoff = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	const Elf64_Phdr ph[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = base,
		  .p_filesz = SMALL_TABLE,
		  .p_memsz = SMALL_TABLE },
		{ .p_type = PT_LOAD,
		  .p_flags = table == SMALL_IN_DATA ? PF_R | PF_W : PF_R,
		  .p_vaddr = base + SMALL_TABLE,
		  .p_offset = SMALL_TABLE,
		  .p_filesz = SMALL_SIZE - SMALL_TABLE,
		  .p_memsz = SMALL_SIZE - SMALL_TABLE },
	};
	struct small_program m = { bytes, SMALL_NAMES, SMALL_PCTAB + 1,
				   0 }; /* offset 0 means none */

	memcpy(bytes, &eh, sizeof(eh));
	memcpy(bytes + sizeof(eh), ph, sizeof(ph));
	for (; f[m.nfunc].name; m.nfunc++)
		memcpy(bytes + SMALL_CODE + SMALL_FUNC_SIZE * m.nfunc, f[m.nfunc].code,
		       SMALL_FUNC_SIZE);
	if (table != SMALL_WITHOUT)
		small_table(&m, f, machine == EM_AARCH64 ? 4 : 1, base + SMALL_CODE);
}

#endif
