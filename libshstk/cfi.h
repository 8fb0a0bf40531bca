/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi.h - DWARF call frame information: .eh_frame and .debug_frame.
 *
 * The functions decode entries, run their programs and evaluate expressions. All input is
 * untrusted; every loop is bounded by the bytes it reads. All functions are async-signal-safe.
 * Sources: DWARF 5 section 6.4, LSB 5.0 section 10.6 (.eh_frame, encodings).
 */
#ifndef SHSTK_CFI_H
#define SHSTK_CFI_H

#include "elf_image.h"

/* The longest program that is accepted for one function, in bytes. */
#define CFI_MAX_PROGRAM 65536

/*
 * The longest CIE that is accepted, in bytes up to its program. It is read once more for each of its
 * functions.
 */
#define CFI_MAX_CIE 256

/*
 * The longest program of a CIE that is accepted, in bytes. It is run once more for each of its functions.
 * Those of Debian's programs have 44 bytes at most.
 */
#define CFI_MAX_CIE_PROGRAM 1024

struct cfi_section {
	struct section s;
	bool debug_frame;
};

struct cie {
	size_t offset; /* of the CIE's length field in the section; identifies the CIE */
	uint64_t code_align;
	int64_t data_align;
	unsigned int ra;
	uint8_t encoding; /* DW_EH_PE_* of the addresses in FDEs */
	bool has_augmentation; /* the augmentation string begins with 'z' */
	bool signal_frame; /* the augmentation string has 'S' */
	const uint8_t *insn, *end;
};

struct fde {
	struct cie cie;
	uint64_t start, end; /* virtual addresses */
	const uint8_t *insn, *insn_end;
};

enum reg_rule {
	REG_SAME = 0,
	REG_UNDEFINED,
	REG_AT_CFA, /* saved at CFA + val */
	REG_IS_CFA, /* its value is CFA + val */
	REG_IN, /* saved in register number val */
	/* Saved at the address of an expression; val: offset of the expression in the section. */
	REG_AT_EXPR,
	REG_IS_EXPR, /* its value is that of an expression; val as for REG_AT_EXPR */
	REG_AT_REG, /* saved at register + offset, both in val (reg_and_offset()) */
	REG_IS_REG, /* its value is register + offset, both in val */
};

/* Packs a register number and an offset into the val of a rule. Offsets up to 64 MiB fit. */
static inline int32_t reg_and_offset(unsigned int reg, int32_t off)
{
	return (uint32_t)off << 5 | reg;
}

static inline unsigned int reg_number(int32_t val)
{
	return val & 31;
}

static inline int32_t reg_offset(int32_t val)
{
	return val >> 5;
}

/* A row: how to recover the caller's registers at one address. */
struct cfi_row {
	bool cfa_expr;
	bool cfa_load; /* the CFA is the word at cfa_reg + cfa_off */
	uint8_t cfa_reg;
	/* Offset from cfa_reg; with cfa_expr: offset of the expression in the section. */
	int32_t cfa_off;
	bool signal_frame;
	uint8_t ra;
	uint8_t type[NREGS];
	int32_t val[NREGS];
};

/*
 * Decodes the entry at @off of @sec into @fde. Returns 1 for an FDE, 0 for a CIE and -1 at the end
 * of the section or for a corrupt entry. Unless it returns -1, *@next receives the offset of the
 * next entry.
 */
int cfi_entry(const struct cfi_section *sec, size_t off, struct fde *fde, size_t *next);

/* Receives a row and the address at which it starts. Returns non-zero if it wants no more rows. */
typedef int (*cfi_row_fn)(void *arg, uint64_t start, const struct cfi_row *row);

/**
 * struct cfi_run - the arguments of cfi_run()
 * @sec: the section.
 * @fde: the entry of @sec that describes the function.
 * @limit: only rows that start below this address are wanted.
 * @row: called for each row, in the order of addresses; NULL if only the last row is wanted.
 * @arg: passed to @row.
 * @last: receives the last row; may be NULL.
 * @bad: if the program is corrupt, receives the address from which on it is; may be NULL. @row was called for all
 *	rows in front of it.
 */
struct cfi_run {
	const struct cfi_section *sec;
	const struct fde *fde;
	uint64_t limit;
	cfi_row_fn row;
	void *arg;
	struct cfi_row *last;
	uint64_t *bad;
};

/* Runs the unwind program of a function. Returns 0, or -1 if the program is corrupt. */
int cfi_run(const struct cfi_run *run);

/*
 * Finds the row for @vaddr in the FDE at @off. Returns 0 or -enum shstk_end, for instance
 * -SHSTK_END_NO_RULE if the FDE does not cover @vaddr.
 */
int cfi_row_at(const struct cfi_section *sec, size_t off, uint64_t vaddr, struct cfi_row *row);

/* The registers that an expression may use. */
struct regs {
	uint64_t r[NREGS]; /* by DWARF number; [REG_PC]: program counter */
	uint64_t known; /* bit n: r[n] holds a value */
};

struct memory {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
};

/*
 * Evaluates the expression at offset @off of @sec, which begins with its length in ULEB128. If @cfa
 * is not NULL, *@cfa is pushed first. Returns 0 or -enum shstk_end.
 */
int cfi_eval(const struct cfi_section *sec, size_t off, const struct regs *regs,
	     const struct memory *mem, const uint64_t *cfa, uint64_t *ret);

/*
 * Returns the number of the register if the expression at offset @off of @sec is the word at a register and an
 * offset, or as many bytes more as a number says, in 32 bytes at most; otherwise -1.
 */
int cfi_loads_by(const struct cfi_section *sec, size_t off);

struct bytes;

/*
 * Reads an encoded pointer (DW_EH_PE_*) that lies at virtual address @vaddr. @data is the base of
 * datarel pointers. Marks @b as bad if the bytes end too early or the encoding is not known.
 */
uint64_t cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, uint64_t data);

#endif
