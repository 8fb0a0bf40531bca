/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi.h - DWARF call frame information: .eh_frame and .debug_frame.
 *
 * Decodes entries, runs their programs, evaluates expressions. All input is
 * foreign; every loop is bounded by the bytes it reads. Async-signal-safe.
 * Sources: DWARF 5 section 6.4, LSB 5.0 section 10.6 (.eh_frame, encodings).
 */
#ifndef SHSTK_CFI_H
#define SHSTK_CFI_H

#include "elf_image.h"

/* Longest program accepted for one function, in bytes. */
#define CFI_MAX_PROGRAM 65536

struct cfi_section {
	struct section s;
	bool debug_frame;
};

struct cie {
	size_t offset; /* of its length field; names the CIE */
	uint64_t code_align;
	int64_t data_align;
	unsigned int ra;
	uint8_t encoding; /* of the FDE's addresses */
	bool has_augmentation; /* 'z' */
	bool signal_frame; /* 'S' */
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
	REG_IS_CFA, /* is CFA + val */
	REG_IN, /* in register val */
	REG_AT_EXPR, /* saved at expression; val: offset in section */
	REG_IS_EXPR, /* is the value of expression */
	REG_AT_REG, /* saved at register + offset, both in val */
	REG_IS_REG, /* is register + offset */
};

/* A register and an offset from it, in one val: offsets up to 64 MiB fit. */
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

/* How to recover the caller's registers at one address. */
struct cfi_row {
	bool cfa_expr;
	bool cfa_load; /* the CFA is read from cfa_reg + cfa_off */
	uint8_t cfa_reg;
	int32_t cfa_off; /* or offset in the section of the expression */
	bool signal_frame;
	uint8_t ra;
	uint8_t type[NREGS];
	int32_t val[NREGS];
};

/* Decode the entry at @off. 1: an FDE; 0: a CIE; -1: end or corrupt. *next
 * receives the offset of the next entry (when not -1).
 */
int cfi_entry(const struct cfi_section *sec, size_t off, struct fde *fde, size_t *next);

/* Receives a row and the address at which it starts; non-zero: no more are wanted. */
typedef int (*cfi_row_fn)(void *arg, uint64_t start, const struct cfi_row *row);

/**
 * struct cfi_run - which rows are wanted
 * @sec: the section.
 * @fde: its entry that describes the function.
 * @limit: rows that start below this address.
 * @row: called for each, in the order of their addresses; NULL: only the last is wanted.
 * @arg: passed to it.
 * @last: receives the last row; may be NULL.
 */
struct cfi_run {
	const struct cfi_section *sec;
	const struct fde *fde;
	uint64_t limit;
	cfi_row_fn row;
	void *arg;
	struct cfi_row *last;
};

/* Run the program of a function. 0, or -1 if it is corrupt. */
int cfi_run(const struct cfi_run *run);

/*
 * The row of @vaddr, by the FDE at @off. 0, or negative: -enum shstk_end, for instance
 * -SHSTK_END_NO_RULE if it is not about that address.
 */
int cfi_row_at(const struct cfi_section *sec, size_t off, uint64_t vaddr, struct cfi_row *row);

/* Registers and memory an expression may use. */
struct regs {
	uint64_t r[NREGS]; /* [REG_PC]: program counter */
	uint64_t known; /* bit per register */
};

struct memory {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
};

/*
 * Evaluate the expression at @off (its length comes first, ULEB128); @cfa is
 * pushed first unless NULL. 0, or -enum shstk_end.
 */
int cfi_eval(const struct cfi_section *sec, size_t off, const struct regs *regs,
	     const struct memory *mem, const uint64_t *cfa, uint64_t *ret);

struct bytes;

/*
 * Read an encoded pointer (DW_EH_PE_*) that lies at virtual address @vaddr; @data is the
 * base of datarel. Makes @b bad if there is none, or of a kind that is not known.
 */
uint64_t cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, uint64_t data);

#endif
