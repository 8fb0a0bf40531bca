/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * made.h - programs of a few functions that are made by a test, with their code and a table
 * of Go's, or without one as a vdso may be.
 */
#ifndef SELFTESTS_GO_MADE_H
#define SELFTESTS_GO_MADE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MADE_CODE 0x1000 /* offset of the code in the file */
#define MADE_TABLE 0x2000 /* offset of the table */
#define MADE_SIZE 0x4000
#define MADE_FUNC_SIZE 64 /* bytes of code in each function */

/**
 * struct made_func - a function
 * @name: its name; NULL: behind the last one.
 * @code: its instructions; what is left of MADE_FUNC_SIZE is padding.
 * @frame: bytes that it moves sp by,
 * @from: from this instruction on: its offset.
 */
struct made_func {
	const char *name;
	uint8_t code[MADE_FUNC_SIZE];
	unsigned int frame, from;
};

/* Where the table of Go lies. */
enum made_table {
	MADE_WITHOUT,
	MADE_READ_ONLY,
	MADE_IN_DATA,
};

/* Offsets of the table's heaps from its start. */
enum {
	MADE_NAMES = 0x80,
	MADE_CUTAB = 0x480,
	MADE_FILES = 0x4a0,
	MADE_PCTAB = 0x500,
	MADE_FUNCS = 0x900,
};

struct made {
	uint8_t *bytes;
	/* offsets at which the next name, string of values and function go */
	size_t name, value, nfunc;
};

static inline void made_put(struct made *m, size_t at, uint64_t v, size_t n)
{
	memcpy(m->bytes + MADE_TABLE + at, &v, n);
}

static inline void made_number(struct made *m, uint32_t v)
{
	for (; v >= 128; v >>= 7)
		made_put(m, m->value++, (v & 127) | 128, 1);
	made_put(m, m->value++, v, 1);
}

/* Writes a string of values: 0 at first, and @v from @from on. Returns its offset in the heap. */
static inline uint32_t made_values(struct made *m, unsigned int v, unsigned int from,
				   unsigned int quantum)
{
	size_t at = m->value;

	if (v && from) {
		made_number(m, 2);
		made_number(m, from / quantum);
		made_number(m, 2 * v);
		made_number(m, (MADE_FUNC_SIZE - from) / quantum);
	} else {
		made_number(m, 2 * (v + 1));
		made_number(m, MADE_FUNC_SIZE / quantum);
	}
	made_number(m, 0);
	return at - MADE_PCTAB;
}

static inline void made_describe(struct made *m, const struct made_func *f, size_t i,
				 unsigned int quantum)
{
	const size_t starts = 8 * (m->nfunc + 1), at = starts + 44 * i;

	made_put(m, MADE_FUNCS + 8 * i, MADE_FUNC_SIZE * i, 4);
	made_put(m, MADE_FUNCS + 8 * i + 4, at, 4);
	made_put(m, MADE_FUNCS + at, MADE_FUNC_SIZE * i, 4);
	made_put(m, MADE_FUNCS + at + 4, m->name - MADE_NAMES, 4);
	made_put(m, MADE_FUNCS + at + 16, made_values(m, f->frame, f->from, quantum), 4);
	made_put(m, MADE_FUNCS + at + 20, made_values(m, 0, 0, quantum), 4);
	made_put(m, MADE_FUNCS + at + 24, made_values(m, 1, 0, quantum), 4);
	memcpy(m->bytes + MADE_TABLE + m->name, f->name, strlen(f->name) + 1);
	m->name += strlen(f->name) + 1;
}

/* Writes a table as Go 1.20 and later have it. */
static inline void made_table(struct made *m, const struct made_func *f, unsigned int quantum,
			      uint64_t text)
{
	static const uint16_t heaps[] = { MADE_NAMES, MADE_CUTAB, MADE_FILES, MADE_PCTAB,
					  MADE_FUNCS };
	size_t i;

	made_put(m, 0, 0xfffffff1, 4);
	made_put(m, 6, quantum | 8 << 8, 2);
	made_put(m, 8, m->nfunc, 8);
	made_put(m, 16, 1, 8);
	made_put(m, 24, text, 8);
	for (i = 0; i < sizeof(heaps) / sizeof(*heaps); i++)
		made_put(m, 32 + 8 * i, heaps[i], 8);
	memcpy(m->bytes + MADE_TABLE + MADE_FILES, "/asm.s", 7);
	for (i = 0; i < m->nfunc; i++)
		made_describe(m, &f[i], i, quantum);
	made_put(m, MADE_FUNCS + 8 * i, MADE_FUNC_SIZE * i, 4);
}

/*
 * Fills the MADE_SIZE bytes at @bytes, which are zeros, with a file for @machine (EM_*) that is to
 * be mapped at @base. The data after its code may be writable by the program.
 */
static inline void make_program(uint8_t *bytes, const struct made_func *f, int machine,
				uint64_t base, enum made_table table)
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
		  .p_filesz = MADE_TABLE,
		  .p_memsz = MADE_TABLE },
		{ .p_type = PT_LOAD,
		  .p_flags = table == MADE_IN_DATA ? PF_R | PF_W : PF_R,
		  .p_vaddr = base + MADE_TABLE,
		  .p_offset = MADE_TABLE,
		  .p_filesz = MADE_SIZE - MADE_TABLE,
		  .p_memsz = MADE_SIZE - MADE_TABLE },
	};
	struct made m = { bytes, MADE_NAMES, MADE_PCTAB + 1, 0 }; /* offset 0 means none */

	memcpy(bytes, &eh, sizeof(eh));
	memcpy(bytes + sizeof(eh), ph, sizeof(ph));
	for (; f[m.nfunc].name; m.nfunc++)
		memcpy(bytes + MADE_CODE + MADE_FUNC_SIZE * m.nfunc, f[m.nfunc].code,
		       MADE_FUNC_SIZE);
	if (table != MADE_WITHOUT)
		made_table(&m, f, machine == EM_AARCH64 ? 4 : 1, base + MADE_CODE);
}

#endif
