// SPDX-License-Identifier: LGPL-2.1-or-later
/* cfi.c - decodes DWARF call frame information and runs its programs; see cfi.h. */
#include "cfi.h"
#include "cfi_bytes.h"
#include "scratch.h"

/* Pointer encodings of LSB 5.0 section 10.5. */
/* clang-format off */
enum {
	PE_ABSPTR = 0x00, PE_ULEB = 0x01, PE_UDATA2 = 0x02, PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04, PE_SLEB = 0x09, PE_SDATA2 = 0x0a, PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c, PE_PCREL = 0x10, PE_DATAREL = 0x30, PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};
/* clang-format on */

/* Call frame instructions of DWARF 5 section 7.24, and vendor extensions. */
/* clang-format off */
enum {
	CFA_NOP = 0x00, CFA_SET_LOC = 0x01, CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03, CFA_ADVANCE4 = 0x04, CFA_OFFSET_EXT = 0x05,
	CFA_RESTORE_EXT = 0x06, CFA_UNDEFINED = 0x07, CFA_SAME = 0x08,
	CFA_REGISTER = 0x09, CFA_REMEMBER = 0x0a, CFA_RESTORE_STATE = 0x0b,
	CFA_DEF = 0x0c, CFA_DEF_REG = 0x0d, CFA_DEF_OFFSET = 0x0e,
	CFA_DEF_EXPR = 0x0f, CFA_EXPR = 0x10, CFA_OFFSET_SF = 0x11,
	CFA_DEF_SF = 0x12, CFA_DEF_OFFSET_SF = 0x13, CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15, CFA_VAL_EXPR = 0x16,
	CFA_AARCH64_NEGATE_RA_WITH_PC = 0x2c, CFA_AARCH64_NEGATE_RA = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e, CFA_GNU_NEG_OFFSET_EXT = 0x2f,
	CFA_ADVANCE = 0x40, CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0,
};
/* clang-format on */

#define REMEMBER_MAX 4

/* Registers by their DWARF numbers. */
enum { ARM64_FP = 29, ARM64_LR, ARM64_SP, RISCV_RA = 1, RISCV_SP, X86_SP = 7 };

/* Returns the stack pointer of the machine on which return addresses are in column @ra. */
static unsigned int stack_pointer(unsigned int ra)
{
	return ra == ARM64_LR ? ARM64_SP : ra == RISCV_RA ? RISCV_SP : X86_SP;
}

uint64_t cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, uint64_t data)
{
	uint64_t v;

	switch (encoding & 0x0f) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		v = bytes_fixed(b, 8);
		break;
	case PE_ULEB:
		v = bytes_uleb(b);
		break;
	case PE_SLEB:
		v = bytes_sleb(b);
		break;
	case PE_UDATA2:
		v = bytes_fixed(b, 2);
		break;
	case PE_SDATA2:
		v = bytes_signed(b, 2);
		break;
	case PE_UDATA4:
		v = bytes_fixed(b, 4);
		break;
	case PE_SDATA4:
		v = bytes_signed(b, 4);
		break;
	default:
		b->bad = true;
		return 0;
	}
	switch (encoding & 0xf0) {
	case 0:
		return v;
	case PE_PCREL:
		return v + vaddr;
	case PE_DATAREL:
		return v + data;
	default:
		b->bad = true;
		return 0;
	}
}

static uint64_t vaddr_of(const struct cfi_section *sec, const uint8_t *p)
{
	return sec->s.vaddr + (p - sec->s.data);
}

/**
 * struct cfi_entry - an FDE or a CIE
 * @b: the bytes behind the entry's ID.
 * @id: the ID; in an FDE it tells where the CIE lies.
 * @id_at: address of the ID.
 * @is_cie: the entry is a CIE.
 */
struct cfi_entry {
	struct bytes b;
	uint64_t id;
	const uint8_t *id_at;
	bool is_cie;
};

/*
 * Reads the length and the ID of the entry at @off, in 32-bit or 64-bit DWARF. Returns false at the
 * end of the section or for a corrupt entry.
 */
static bool entry_header(const struct cfi_section *sec, size_t off, struct cfi_entry *e)
{
	struct bytes *b = &e->b;
	uint64_t len;
	bool wide = false;

	if (off >= sec->s.size)
		return false;
	*b = (struct bytes){ sec->s.data + off, sec->s.data + sec->s.size, false };
	len = bytes_fixed(b, 4);
	if (len == 0xffffffff) {
		len = bytes_fixed(b, 8);
		wide = true;
	}
	if (b->bad || !len || len > (size_t)(b->end - b->p))
		return false;
	b->end = b->p + len;
	e->id_at = b->p;
	/* In .eh_frame the ID has 4 bytes in the 64-bit format too. */
	if (sec->debug_frame && wide) {
		e->id = bytes_fixed(b, 8);
		e->is_cie = e->id == UINT64_MAX;
	} else {
		e->id = bytes_fixed(b, 4);
		e->is_cie = e->id == (sec->debug_frame ? 0xffffffff : 0);
	}
	return !b->bad;
}

static int augmentation(const struct cfi_section *sec, struct bytes *b, const char *aug,
			struct cie *cie)
{
	const uint8_t *end;
	uint64_t len;

	if (!*aug)
		return 0;
	if (*aug != 'z')
		return -1;
	cie->has_augmentation = true;
	len = bytes_uleb(b);
	if (b->bad || len > (size_t)(b->end - b->p))
		return -1;
	end = b->p + len;
	while (*++aug) {
		uint8_t encoding;

		switch (*aug) {
		case 'R':
			cie->encoding = bytes_fixed(b, 1);
			break;
		case 'P':
			encoding = bytes_fixed(b, 1);
			cfi_pointer(b, encoding & ~PE_INDIRECT, vaddr_of(sec, b->p), 0);
			break;
		case 'L':
			bytes_fixed(b, 1);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* arm64: return addresses are signed with key B */
		case 'G': /* arm64: frames are memory tagged */
			break;
		default: /* unknown, but skipped: the length of the data is known */
			b->p = end;
			return 0;
		}
	}
	b->p = end;
	return b->bad ? -1 : 0;
}

static int parse_cie(const struct cfi_section *sec, size_t off, struct cie *cie)
{
	struct cfi_entry e;
	struct bytes *b = &e.b;
	const char *aug;
	uint8_t version;

	if (!entry_header(sec, off, &e) || !e.is_cie)
		return -1;
	memset(cie, 0, sizeof(*cie));
	cie->offset = off;
	cie->end = b->end;
	if ((size_t)(b->end - b->p) > CFI_MAX_CIE)
		b->end = b->p + CFI_MAX_CIE;
	version = bytes_fixed(b, 1);
	if (version != 1 && version != 3 && version != 4)
		return -1;
	aug = (const char *)b->p;
	while (bytes_fixed(b, 1))
		;
	if (b->bad)
		return -1;
	if (version == 4 && (bytes_fixed(b, 1) != 8 || bytes_fixed(b, 1) != 0))
		return -1; /* address size and segment selector size */
	cie->code_align = bytes_uleb(b);
	cie->data_align = bytes_sleb(b);
	cie->ra = version == 1 ? bytes_fixed(b, 1) : bytes_uleb(b);
	if (augmentation(sec, b, aug, cie) || b->bad || cie->ra >= REG_PC)
		return -1;
	if (cie->end - b->p > CFI_MAX_CIE_PROGRAM)
		return -1;
	cie->insn = b->p;
	return 0;
}

int cfi_entry(const struct cfi_section *sec, size_t off, struct fde *fde, size_t *next)
{
	struct cfi_entry e;
	struct bytes *b = &e.b;
	size_t cie_off;
	uint64_t len;

	if (!entry_header(sec, off, &e))
		return -1;
	*next = b->end - sec->s.data;
	if (e.is_cie)
		return 0;
	if (sec->debug_frame) {
		cie_off = e.id;
	} else {
		if (e.id > (size_t)(e.id_at - sec->s.data))
			return -1;
		cie_off = e.id_at - sec->s.data - e.id;
	}
	if (parse_cie(sec, cie_off, &fde->cie))
		return -1;
	fde->start = cfi_pointer(b, fde->cie.encoding, vaddr_of(sec, b->p), 0);
	len = cfi_pointer(b, fde->cie.encoding & 0x0f, 0, 0);
	if (b->bad || len > UINT64_MAX - fde->start)
		return -1;
	fde->end = fde->start + len;
	if (fde->cie.has_augmentation)
		bytes_skip(b, bytes_uleb(b));
	if (b->bad || (size_t)(b->end - b->p) > CFI_MAX_PROGRAM)
		return -1;
	fde->insn = b->p;
	fde->insn_end = b->end;
	return 1;
}

/* The state of an unwind program that is being run. */
struct program {
	const struct cfi_section *sec;
	const struct cie *cie;
	uint64_t loc;
	struct cfi_row row;
	struct cfi_row initial;
	struct cfi_row remembered[REMEMBER_MAX];
	struct cfi_row mended; /* the row that mend_row() returns */
	struct fde fde; /* room for the FDE that cfi_row_at() decodes */
	unsigned int nremembered;
	bool plt_resolver; /* set by find_plt_resolver() */
};

static bool set_rule(struct cfi_row *row, uint64_t reg, enum reg_rule type, int64_t val)
{
	if (val != (int32_t)val)
		return false;
	if (reg < REG_PC) { /* other registers (vector, PAC state) are not tracked */
		row->type[reg] = type;
		row->val[reg] = val;
	}
	return true;
}

static bool set_cfa(struct cfi_row *row, uint64_t reg, int64_t off)
{
	if (reg >= REG_PC || off != (int32_t)off)
		return false;
	row->cfa_expr = false;
	row->cfa_reg = reg;
	row->cfa_off = off;
	return true;
}

/*
 * Sets how far the CFA is from its register. Where an expression gives the CFA there is no such distance, but
 * assemblers are told that something is pushed there, too (OCaml's caml_c_call_stack_args()). The CFA stays where
 * it is then, so an expression that counts from another register stays true, and one that counts from the stack
 * pointer does not.
 */
static bool set_offset(const struct program *pr, struct cfi_row *row, int64_t off)
{
	int reg;

	if (!row->cfa_expr)
		return set_cfa(row, row->cfa_reg, off);
	reg = cfi_loads_by(pr->sec, row->cfa_off);
	return reg >= 0 && reg != (int)stack_pointer(row->ra);
}

/* Skips an expression and stores its offset in the section, which identifies it, in *@off. */
static bool take_expr(struct program *pr, struct bytes *b, int64_t *off)
{
	*off = b->p - pr->sec->s.data;
	bytes_skip(b, bytes_uleb(b));
	return !b->bad && *off == (int32_t)*off;
}

/*
 * Executes an instruction that sets the rule of one register. Returns false if it is corrupt or not
 * known.
 */
static bool register_rule(struct program *pr, struct bytes *b, uint8_t op)
{
	struct cfi_row *row = &pr->row;
	uint64_t align = pr->cie->data_align; /* unsigned: products may wrap */
	uint64_t reg = bytes_uleb(b);
	int64_t off;

	switch (op) {
	case CFA_OFFSET_EXT:
		return set_rule(row, reg, REG_AT_CFA, bytes_uleb(b) * align);
	case CFA_OFFSET_SF:
		return set_rule(row, reg, REG_AT_CFA, bytes_sleb(b) * align);
	case CFA_GNU_NEG_OFFSET_EXT:
		return set_rule(row, reg, REG_AT_CFA, -(bytes_uleb(b) * align));
	case CFA_VAL_OFFSET:
		return set_rule(row, reg, REG_IS_CFA, bytes_uleb(b) * align);
	case CFA_VAL_OFFSET_SF:
		return set_rule(row, reg, REG_IS_CFA, bytes_sleb(b) * align);
	case CFA_RESTORE_EXT:
		if (reg >= REG_PC)
			return true;
		return set_rule(row, reg, pr->initial.type[reg], pr->initial.val[reg]);
	case CFA_UNDEFINED:
		return set_rule(row, reg, REG_UNDEFINED, 0);
	case CFA_SAME:
		return set_rule(row, reg, REG_SAME, 0);
	case CFA_REGISTER:
		off = bytes_uleb(b);
		return off >= 0 && off < REG_PC && set_rule(row, reg, REG_IN, off);
	case CFA_EXPR:
		return take_expr(pr, b, &off) && set_rule(row, reg, REG_AT_EXPR, off);
	case CFA_VAL_EXPR:
		return take_expr(pr, b, &off) && set_rule(row, reg, REG_IS_EXPR, off);
	default:
		return false;
	}
}

/*
 * Executes an instruction that sets the rule of the CFA or the whole row; leaves all others to
 * register_rule(). Returns false if it is corrupt or not known.
 */
static bool cfa_op(struct program *pr, struct bytes *b, uint8_t op)
{
	struct cfi_row *row = &pr->row;
	uint64_t align = pr->cie->data_align; /* unsigned: products may wrap */
	uint64_t reg;
	int64_t off;

	switch (op) {
	case CFA_NOP:
	case CFA_AARCH64_NEGATE_RA:
	case CFA_AARCH64_NEGATE_RA_WITH_PC:
		return true;
	case CFA_REMEMBER:
		if (pr->nremembered == REMEMBER_MAX)
			return false;
		pr->remembered[pr->nremembered++] = *row;
		return true;
	case CFA_RESTORE_STATE:
		if (!pr->nremembered)
			return false;
		*row = pr->remembered[--pr->nremembered];
		return true;
	case CFA_DEF:
		reg = bytes_uleb(b);
		return set_cfa(row, reg, bytes_uleb(b));
	case CFA_DEF_SF:
		reg = bytes_uleb(b);
		return set_cfa(row, reg, bytes_sleb(b) * align);
	case CFA_DEF_REG:
		return !row->cfa_expr && set_cfa(row, bytes_uleb(b), row->cfa_off);
	case CFA_DEF_OFFSET:
		return set_offset(pr, row, bytes_uleb(b));
	case CFA_DEF_OFFSET_SF:
		return set_offset(pr, row, bytes_sleb(b) * align);
	case CFA_DEF_EXPR:
		if (!take_expr(pr, b, &off))
			return false;
		row->cfa_expr = true;
		row->cfa_off = off;
		return true;
	case CFA_GNU_ARGS_SIZE:
		bytes_uleb(b);
		return true;
	default:
		return register_rule(pr, b, op);
	}
}

/* Returns true if @op advances the location; *@delta receives how far. */
static bool advance(struct program *pr, struct bytes *b, uint8_t op, uint64_t *delta)
{
	switch (op) {
	case CFA_ADVANCE1:
		*delta = bytes_fixed(b, 1);
		break;
	case CFA_ADVANCE2:
		*delta = bytes_fixed(b, 2);
		break;
	case CFA_ADVANCE4:
		*delta = bytes_fixed(b, 4);
		break;
	default:
		if ((op & 0xc0) != CFA_ADVANCE)
			return false;
		*delta = op & 0x3f;
	}
	*delta *= pr->cie->code_align;
	return true;
}

/*
 * Finds out whether the function is glibc's _dl_runtime_resolve() for arm64, whose description is
 * wrong. The PLT pushes 16 bytes before it enters the function, among them the return address. The
 * function is described as if its frame ended below these bytes: from its first instruction on, or
 * from the second if the first is a landing pad. No other function finds its return address 8 bytes
 * above its frame.
 */
static void find_plt_resolver(struct program *pr, const struct fde *fde)
{
	struct bytes b = { fde->insn, fde->insn_end, false };
	uint64_t delta;
	uint8_t op;

	if (fde->cie.ra != ARM64_LR)
		return;
	op = bytes_fixed(&b, 1);
	if (op != CFA_OFFSET_SF && advance(pr, &b, op, &delta))
		op = bytes_fixed(&b, 1);
	pr->plt_resolver = op == CFA_OFFSET_SF && bytes_uleb(&b) == ARM64_LR &&
			   (uint64_t)bytes_sleb(&b) * (uint64_t)pr->cie->data_align == 8 && !b.bad;
}

/* For glibc's _dl_runtime_resolve() the frame ends 16 bytes further up. */
static void mend_plt_resolver(struct cfi_row *row)
{
	unsigned int i;

	row->cfa_off += 16;
	for (i = 0; i < NREGS; i++)
		if (row->type[i] == REG_AT_CFA || row->type[i] == REG_IS_CFA)
			row->val[i] -= 16;
}

/* Returns whether the row has the register below the stack pointer. */
static bool is_below_sp(const struct cfi_row *row, unsigned int reg)
{
	return row->type[reg] == REG_AT_CFA && (int64_t)row->cfa_off + row->val[reg] < 0;
}

/*
 * Returns the present row, mended for arm64, where functions keep nothing below the stack pointer. Registers that a
 * row has there are not saved yet, or not any more: at the ends of the functions of OCaml's runtime, which were
 * called though they are marked as signal frames (rule_was_called()).
 */
static const struct cfi_row *mend_row(struct program *pr)
{
	const struct cfi_row *row = &pr->row;
	struct cfi_row *mended = &pr->mended;

	if (row->ra != ARM64_LR || row->cfa_expr || row->cfa_load || row->cfa_reg != ARM64_SP ||
	    !(pr->plt_resolver || is_below_sp(row, ARM64_LR) || is_below_sp(row, ARM64_FP)))
		return row;
	*mended = *row;
	if (pr->plt_resolver)
		mend_plt_resolver(mended);
	for (unsigned int reg = ARM64_FP; reg <= ARM64_LR; reg++)
		if (is_below_sp(mended, reg)) {
			mended->type[reg] = REG_SAME;
			mended->signal_frame = false;
		}
	return mended;
}

static bool execute(struct program *pr, struct bytes *b, uint8_t op)
{
	uint8_t reg = op & 0x3f;

	switch (op & 0xc0) {
	case CFA_OFFSET:
		return set_rule(&pr->row, reg, REG_AT_CFA, bytes_uleb(b) * pr->cie->data_align);
	case CFA_RESTORE:
		return reg >= REG_PC ||
		       set_rule(&pr->row, reg, pr->initial.type[reg], pr->initial.val[reg]);
	default:
		return cfa_op(pr, b, op);
	}
}

/*
 * Gives the present row to the caller of cfi_run(). Returns true if the caller wants no more rows.
 */
static bool give_row(struct program *pr, const struct cfi_run *to)
{
	return to && to->row && to->row(to->arg, pr->loc, mend_row(pr));
}

/*
 * Executes the instructions @b and gives the rows to @to, which is NULL for the instructions of a
 * CIE, because those have no addresses. Returns 1 if the row at the limit is reached, 0 at the end
 * of the instructions, and -1 if they are corrupt.
 */
static int execute_all(struct program *pr, struct bytes b, const struct cfi_run *to)
{
	while (b.p < b.end) {
		uint8_t op = bytes_fixed(&b, 1);
		uint64_t next;

		if (op == CFA_SET_LOC) {
			next = cfi_pointer(&b, pr->cie->encoding, vaddr_of(pr->sec, b.p), 0);
		} else if (advance(pr, &b, op, &next)) {
			next += pr->loc;
		} else {
			if (!execute(pr, &b, op) || b.bad)
				return -1;
			continue;
		}
		if (b.bad || next < pr->loc)
			return -1;
		if (next == pr->loc)
			continue;
		if (give_row(pr, to))
			return 0;
		if (to && next >= to->limit)
			return 1;
		pr->loc = next;
	}
	give_row(pr, to);
	return 0;
}

static int run_in(void *mem, void *args)
{
	const struct cfi_run *run = args;
	const struct fde *fde = run->fde;
	struct program *pr = mem;
	int err;

	/* Do not clear all of @mem: @fde may be a member of it (row_at_in()). */
	pr->sec = run->sec;
	pr->cie = &fde->cie;
	pr->loc = fde->start;
	memset(&pr->row, 0, sizeof(pr->row));
	memset(&pr->initial, 0, sizeof(pr->initial));
	pr->nremembered = 0;
	pr->plt_resolver = false;
	pr->row.signal_frame = fde->cie.signal_frame;
	pr->row.ra = fde->cie.ra;
	if (run->bad)
		*run->bad = fde->start;
	err = execute_all(pr, (struct bytes){ fde->cie.insn, fde->cie.end, false }, NULL);
	if (err < 0 || pr->loc != fde->start)
		return -1;
	pr->initial = pr->row;
	pr->nremembered = 0;
	find_plt_resolver(pr, fde);
	err = execute_all(pr, (struct bytes){ fde->insn, fde->insn_end, false }, run);
	if (run->last)
		*run->last = *mend_row(pr);
	if (run->bad)
		*run->bad = pr->loc;
	return err < 0 ? -1 : 0;
}

/* The arguments of cfi_row_at(). */
struct at_args {
	const struct cfi_section *sec;
	size_t off;
	uint64_t vaddr;
	struct cfi_row *row;
};

static int row_at_in(void *mem, void *args)
{
	const struct at_args *a = args;
	struct program *pr = mem;
	struct cfi_run run = {
		.sec = a->sec,
		.fde = &pr->fde,
		.limit = a->vaddr + 1,
		.last = a->row,
	};
	size_t next;

	if (cfi_entry(a->sec, a->off, &pr->fde, &next) != 1)
		return -SHSTK_END_BAD_RULE;
	if (a->vaddr < pr->fde.start || a->vaddr >= pr->fde.end)
		return -SHSTK_END_NO_RULE;
	return run_in(pr, &run) ? -SHSTK_END_BAD_RULE : 0;
}

int cfi_row_at(const struct cfi_section *sec, size_t off, uint64_t vaddr, struct cfi_row *row)
{
	struct at_args a = { sec, off, vaddr, row };

	return scratch_call(sizeof(struct program), row_at_in, &a);
}

int cfi_run(const struct cfi_run *run)
{
	return scratch_call(sizeof(struct program), run_in, (void *)run);
}
