// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cfi.c - decode DWARF call frame information; see cfi.h.
 */
#include "cfi.h"
#include "scratch.h"

/* Pointer encodings, LSB 5.0 section 10.5. */
/* clang-format off */
enum {
	PE_ABSPTR = 0x00, PE_ULEB = 0x01, PE_UDATA2 = 0x02, PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04, PE_SLEB = 0x09, PE_SDATA2 = 0x0a, PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c, PE_PCREL = 0x10, PE_DATAREL = 0x30, PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};
/* clang-format on */

/* Call frame instructions, DWARF 5 section 7.24 and its vendor extensions. */
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

/* A cursor over foreign bytes: reading past the end makes it bad, and bad
 * cursors read zeros.
 */
struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t fixed(struct bytes *b, unsigned int size)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->p) < size) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&v, b->p, size);
	b->p += size;
	return v;
}

static int64_t fixed_signed(struct bytes *b, unsigned int size)
{
	unsigned int shift = 64 - 8 * size;

	return (int64_t)(fixed(b, size) << shift) >> shift;
}

static uint64_t uleb(struct bytes *b)
{
	unsigned int shift = 0;
	uint64_t v = 0;

	for (;;) {
		uint8_t byte = fixed(b, 1);

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80) || b->bad)
			return v;
	}
}

static int64_t sleb(struct bytes *b)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	do {
		byte = fixed(b, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !b->bad);
	if (shift < 64 && byte & 0x40)
		v |= ~0ull << shift;
	return v;
}

static void skip(struct bytes *b, uint64_t len)
{
	if (len > (size_t)(b->end - b->p)) {
		b->bad = true;
		b->p = b->end;
	} else {
		b->p += len;
	}
}

static uint64_t pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, uint64_t data)
{
	uint64_t v;

	switch (encoding & 0x0f) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		v = fixed(b, 8);
		break;
	case PE_ULEB:
		v = uleb(b);
		break;
	case PE_SLEB:
		v = sleb(b);
		break;
	case PE_UDATA2:
		v = fixed(b, 2);
		break;
	case PE_SDATA2:
		v = fixed_signed(b, 2);
		break;
	case PE_UDATA4:
		v = fixed(b, 4);
		break;
	case PE_SDATA4:
		v = fixed_signed(b, 4);
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

const uint8_t *cfi_pointer(const uint8_t *p, const uint8_t *end, uint8_t encoding, uint64_t vaddr,
			   uint64_t data, uint64_t *ret)
{
	struct bytes b = { p, end, false };

	*ret = pointer(&b, encoding, vaddr, data);
	return b.bad ? NULL : b.p;
}

static uint64_t vaddr_of(const struct cfi_section *sec, const uint8_t *p)
{
	return sec->s.vaddr + (p - sec->s.data);
}

/* Length field and ID of an entry: 32-bit and 64-bit DWARF. */
static bool entry_header(const struct cfi_section *sec, size_t off, struct bytes *b, uint64_t *id,
			 const uint8_t **id_at, bool *is_cie)
{
	uint64_t len;
	bool wide = false;

	if (off >= sec->s.size)
		return false;
	*b = (struct bytes){ sec->s.data + off, sec->s.data + sec->s.size, false };
	len = fixed(b, 4);
	if (len == 0xffffffff) {
		len = fixed(b, 8);
		wide = true;
	}
	if (b->bad || !len || len > (size_t)(b->end - b->p))
		return false;
	b->end = b->p + len;
	*id_at = b->p;
	/* .eh_frame keeps a 4-byte ID even in the 64-bit format. */
	if (sec->debug_frame && wide) {
		*id = fixed(b, 8);
		*is_cie = *id == UINT64_MAX;
	} else {
		*id = fixed(b, 4);
		*is_cie = *id == (sec->debug_frame ? 0xffffffff : 0);
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
	len = uleb(b);
	if (b->bad || len > (size_t)(b->end - b->p))
		return -1;
	end = b->p + len;
	while (*++aug) {
		uint8_t encoding;

		switch (*aug) {
		case 'R':
			cie->encoding = fixed(b, 1);
			break;
		case 'P':
			encoding = fixed(b, 1);
			pointer(b, encoding & ~PE_INDIRECT, vaddr_of(sec, b->p), 0);
			break;
		case 'L':
			fixed(b, 1);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* arm64: return addresses signed with key B */
		case 'G': /* arm64: memory tagged frames */
			break;
		default: /* unknown, but its length is known */
			b->p = end;
			return 0;
		}
	}
	b->p = end;
	return b->bad ? -1 : 0;
}

static int parse_cie(const struct cfi_section *sec, size_t off, struct cie *cie)
{
	const uint8_t *id_at;
	struct bytes b;
	const char *aug;
	uint8_t version;
	uint64_t id;
	bool is_cie;

	if (!entry_header(sec, off, &b, &id, &id_at, &is_cie) || !is_cie)
		return -1;
	memset(cie, 0, sizeof(*cie));
	cie->offset = off;
	version = fixed(&b, 1);
	if (version != 1 && version != 3 && version != 4)
		return -1;
	aug = (const char *)b.p;
	while (fixed(&b, 1))
		;
	if (b.bad)
		return -1;
	if (version == 4 && (fixed(&b, 1) != 8 || fixed(&b, 1) != 0))
		return -1; /* address size, segment selector size */
	cie->code_align = uleb(&b);
	cie->data_align = sleb(&b);
	cie->ra = version == 1 ? fixed(&b, 1) : uleb(&b);
	if (augmentation(sec, &b, aug, cie) || b.bad || cie->ra >= REG_PC)
		return -1;
	cie->insn = b.p;
	cie->end = b.end;
	return 0;
}

int cfi_entry(const struct cfi_section *sec, size_t off, struct fde *fde, size_t *next)
{
	const uint8_t *id_at;
	uint64_t id, len;
	struct bytes b;
	size_t cie_off;
	bool is_cie;

	if (!entry_header(sec, off, &b, &id, &id_at, &is_cie))
		return -1;
	*next = b.end - sec->s.data;
	if (is_cie)
		return 0;
	if (sec->debug_frame) {
		cie_off = id;
	} else {
		if (id > (size_t)(id_at - sec->s.data))
			return -1;
		cie_off = id_at - sec->s.data - id;
	}
	if (parse_cie(sec, cie_off, &fde->cie))
		return -1;
	fde->start = pointer(&b, fde->cie.encoding, vaddr_of(sec, b.p), 0);
	len = pointer(&b, fde->cie.encoding & 0x0f, 0, 0);
	if (b.bad || len > UINT64_MAX - fde->start)
		return -1;
	fde->end = fde->start + len;
	if (fde->cie.has_augmentation)
		skip(&b, uleb(&b));
	if (b.bad || (size_t)(b.end - b.p) > CFI_MAX_PROGRAM)
		return -1;
	fde->insn = b.p;
	fde->insn_end = b.end;
	return 1;
}

/* State of a running program. */
struct program {
	const struct cfi_section *sec;
	const struct cie *cie;
	uint64_t loc;
	struct cfi_row row;
	struct cfi_row initial;
	struct cfi_row remembered[REMEMBER_MAX];
	struct cfi_row mended; /* see mend() */
	struct fde fde; /* see cfi_row_at() */
	unsigned int nremembered;
	bool pushed; /* see find_pushed() */
};

static bool set_rule(struct cfi_row *row, uint64_t reg, enum reg_rule type, int64_t val)
{
	if (val != (int32_t)val)
		return false;
	if (reg < REG_PC) { /* others (vector, PAC state) are not tracked */
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

/* An expression stays where it is: its offset in the section names it. */
static bool take_expr(struct program *pr, struct bytes *b, int64_t *off)
{
	*off = b->p - pr->sec->s.data;
	skip(b, uleb(b));
	return !b->bad && *off == (int32_t)*off;
}

/* How one register is found. */
static bool register_rule(struct program *pr, struct bytes *b, uint8_t op)
{
	struct cfi_row *row = &pr->row;
	uint64_t align = pr->cie->data_align; /* products may wrap */
	uint64_t reg = uleb(b);
	int64_t off;

	switch (op) {
	case CFA_OFFSET_EXT:
		return set_rule(row, reg, REG_AT_CFA, uleb(b) * align);
	case CFA_OFFSET_SF:
		return set_rule(row, reg, REG_AT_CFA, sleb(b) * align);
	case CFA_GNU_NEG_OFFSET_EXT:
		return set_rule(row, reg, REG_AT_CFA, -(uleb(b) * align));
	case CFA_VAL_OFFSET:
		return set_rule(row, reg, REG_IS_CFA, uleb(b) * align);
	case CFA_VAL_OFFSET_SF:
		return set_rule(row, reg, REG_IS_CFA, sleb(b) * align);
	case CFA_RESTORE_EXT:
		if (reg >= REG_PC)
			return true;
		return set_rule(row, reg, pr->initial.type[reg], pr->initial.val[reg]);
	case CFA_UNDEFINED:
		return set_rule(row, reg, REG_UNDEFINED, 0);
	case CFA_SAME:
		return set_rule(row, reg, REG_SAME, 0);
	case CFA_REGISTER:
		off = uleb(b);
		return off >= 0 && off < REG_PC && set_rule(row, reg, REG_IN, off);
	case CFA_EXPR:
		return take_expr(pr, b, &off) && set_rule(row, reg, REG_AT_EXPR, off);
	case CFA_VAL_EXPR:
		return take_expr(pr, b, &off) && set_rule(row, reg, REG_IS_EXPR, off);
	default:
		return false;
	}
}

/* How the CFA is found; anything else that has no register of its own, too. */
static bool extended(struct program *pr, struct bytes *b, uint8_t op)
{
	struct cfi_row *row = &pr->row;
	uint64_t align = pr->cie->data_align; /* products may wrap */
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
		reg = uleb(b);
		return set_cfa(row, reg, uleb(b));
	case CFA_DEF_SF:
		reg = uleb(b);
		return set_cfa(row, reg, sleb(b) * align);
	case CFA_DEF_REG:
		return !row->cfa_expr && set_cfa(row, uleb(b), row->cfa_off);
	case CFA_DEF_OFFSET:
		return !row->cfa_expr && set_cfa(row, row->cfa_reg, uleb(b));
	case CFA_DEF_OFFSET_SF:
		return !row->cfa_expr && set_cfa(row, row->cfa_reg, sleb(b) * align);
	case CFA_DEF_EXPR:
		if (!take_expr(pr, b, &off))
			return false;
		row->cfa_expr = true;
		row->cfa_off = off;
		return true;
	case CFA_GNU_ARGS_SIZE:
		uleb(b);
		return true;
	default:
		return register_rule(pr, b, op);
	}
}

/* Is @op an advance? *delta: how far. */
static bool advance(struct program *pr, struct bytes *b, uint8_t op, uint64_t *delta)
{
	switch (op) {
	case CFA_ADVANCE1:
		*delta = fixed(b, 1);
		break;
	case CFA_ADVANCE2:
		*delta = fixed(b, 2);
		break;
	case CFA_ADVANCE4:
		*delta = fixed(b, 4);
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
 * glibc's _dl_runtime_resolve() for arm64 is entered with 16 bytes pushed by the
 * PLT, among them the return address, and is described as if its frame ended
 * below them: from its second instruction on, if the first is a landing pad. No
 * other function finds its return address 8 bytes above its frame.
 */
static void find_pushed(struct program *pr, const struct fde *fde)
{
	struct bytes b = { fde->insn, fde->insn_end, false };
	uint64_t delta;
	uint8_t op;

	if (fde->cie.ra != 30)
		return;
	op = fixed(&b, 1);
	if (op != CFA_OFFSET_SF && advance(pr, &b, op, &delta))
		op = fixed(&b, 1);
	pr->pushed = op == CFA_OFFSET_SF && uleb(&b) == 30 &&
		     (uint64_t)sleb(&b) * (uint64_t)pr->cie->data_align == 8 && !b.bad;
}

static const struct cfi_row *mend(struct program *pr)
{
	const struct cfi_row *row = &pr->row;
	struct cfi_row *mended = &pr->mended;
	unsigned int i;

	if (!pr->pushed || row->cfa_expr || row->cfa_load || row->cfa_reg != 31)
		return row;
	*mended = *row;
	mended->cfa_off += 16;
	for (i = 0; i < NREGS; i++)
		if (row->type[i] == REG_AT_CFA || row->type[i] == REG_IS_CFA)
			mended->val[i] -= 16;
	return mended;
}

static int run(struct program *pr, const uint8_t *p, const uint8_t *end, uint64_t limit,
	       cfi_row_fn row, void *arg)
{
	struct bytes b = { p, end, false };

	while (b.p < b.end) {
		uint8_t op = fixed(&b, 1);
		uint64_t to;

		if (op == CFA_SET_LOC) {
			to = pointer(&b, pr->cie->encoding, vaddr_of(pr->sec, b.p), 0);
		} else if (advance(pr, &b, op, &to)) {
			to += pr->loc;
		} else {
			bool ok;

			if ((op & 0xc0) == CFA_OFFSET)
				ok = set_rule(&pr->row, op & 0x3f, REG_AT_CFA,
					      uleb(&b) * pr->cie->data_align);
			else if ((op & 0xc0) == CFA_RESTORE && (op & 0x3f) >= REG_PC)
				ok = true;
			else if ((op & 0xc0) == CFA_RESTORE)
				ok = set_rule(&pr->row, op & 0x3f, pr->initial.type[op & 0x3f],
					      pr->initial.val[op & 0x3f]);
			else
				ok = extended(pr, &b, op);
			if (!ok || b.bad)
				return -1;
			continue;
		}
		if (b.bad || to < pr->loc)
			return -1;
		if (to == pr->loc)
			continue;
		if (row && row(arg, pr->loc, mend(pr)))
			return 0;
		if (to >= limit)
			return 1;
		pr->loc = to;
	}
	if (row)
		row(arg, pr->loc, mend(pr));
	return 0;
}

/* The arguments of cfi_run(). */
struct run_args {
	const struct cfi_section *sec;
	const struct fde *fde;
	uint64_t limit;
	struct cfi_row *out;
	cfi_row_fn row;
	void *arg;
};

static int run_in(void *mem, void *args)
{
	const struct run_args *a = args;
	const struct fde *fde = a->fde;
	struct program *pr = mem;
	int err;

	/* @fde may lie in it. */
	pr->sec = a->sec;
	pr->cie = &fde->cie;
	pr->loc = fde->start;
	memset(&pr->row, 0, sizeof(pr->row));
	memset(&pr->initial, 0, sizeof(pr->initial));
	pr->nremembered = 0;
	pr->pushed = false;
	pr->row.signal_frame = fde->cie.signal_frame;
	pr->row.ra = fde->cie.ra;
	err = run(pr, fde->cie.insn, fde->cie.end, UINT64_MAX, NULL, NULL);
	if (err < 0 || pr->loc != fde->start)
		return -1;
	pr->initial = pr->row;
	pr->nremembered = 0;
	find_pushed(pr, fde);
	err = run(pr, fde->insn, fde->insn_end, a->limit, a->row, a->arg);
	if (a->out)
		*a->out = *mend(pr);
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
	struct run_args run = { a->sec, &pr->fde, a->vaddr + 1, a->row, NULL, NULL };
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

int cfi_run(const struct cfi_section *sec, const struct fde *fde, uint64_t limit,
	    struct cfi_row *out, cfi_row_fn row, void *arg)
{
	struct run_args a = { sec, fde, limit, out, row, arg };

	return scratch_call(sizeof(struct program), run_in, &a);
}

/* Expressions: DWARF 5 section 7.7.1, as far as call frames use them. */
/* clang-format off */
enum {
	OP_ADDR = 0x03, OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a, OP_CONST2S = 0x0b, OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d, OP_CONST8U = 0x0e, OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10, OP_CONSTS = 0x11, OP_DUP = 0x12, OP_DROP = 0x13,
	OP_OVER = 0x14, OP_PICK = 0x15, OP_SWAP = 0x16, OP_ROT = 0x17,
	OP_ABS = 0x19, OP_AND = 0x1a, OP_DIV = 0x1b, OP_MINUS = 0x1c,
	OP_MOD = 0x1d, OP_MUL = 0x1e, OP_NEG = 0x1f, OP_NOT = 0x20,
	OP_OR = 0x21, OP_PLUS = 0x22, OP_PLUS_UCONST = 0x23, OP_SHL = 0x24,
	OP_SHR = 0x25, OP_SHRA = 0x26, OP_XOR = 0x27, OP_BRA = 0x28,
	OP_EQ = 0x29, OP_GE = 0x2a, OP_GT = 0x2b, OP_LE = 0x2c, OP_LT = 0x2d,
	OP_NE = 0x2e, OP_SKIP = 0x2f, OP_LIT0 = 0x30, OP_BREG0 = 0x70,
	OP_BREGX = 0x92, OP_DEREF_SIZE = 0x94, OP_NOP = 0x96,
};
/* clang-format on */

#define EVAL_STACK 16
#define EVAL_STEPS 512

/* Of signed numbers. */
static bool compare(uint8_t op, int64_t a, int64_t b, uint64_t *v)
{
	switch (op) {
	case OP_EQ:
		*v = a == b;
		return true;
	case OP_GE:
		*v = a >= b;
		return true;
	case OP_GT:
		*v = a > b;
		return true;
	case OP_LE:
		*v = a <= b;
		return true;
	case OP_LT:
		*v = a < b;
		return true;
	case OP_NE:
		*v = a != b;
		return true;
	default:
		return false;
	}
}

/* False: there is no such operation, or no such quotient. */
static bool binary(uint8_t op, uint64_t a, uint64_t b, uint64_t *v)
{
	int64_t sa = a, sb = b;

	switch (op) {
	case OP_AND:
		*v = a & b;
		return true;
	case OP_DIV:
		if (!sb || (sb == -1 && sa == INT64_MIN))
			return false;
		*v = sa / sb;
		return true;
	case OP_MINUS:
		*v = a - b;
		return true;
	case OP_MOD:
		if (!b)
			return false;
		*v = a % b;
		return true;
	case OP_MUL:
		*v = a * b;
		return true;
	case OP_OR:
		*v = a | b;
		return true;
	case OP_PLUS:
		*v = a + b;
		return true;
	case OP_SHL:
		*v = b < 64 ? a << b : 0;
		return true;
	case OP_SHR:
		*v = b < 64 ? a >> b : 0;
		return true;
	case OP_SHRA:
		*v = sa >> (b < 64 ? b : 63);
		return true;
	case OP_XOR:
		*v = a ^ b;
		return true;
	default:
		return compare(op, sa, sb, v);
	}
}

struct eval {
	uint64_t stack[EVAL_STACK];
	unsigned int n;
	const struct regs *regs;
	const struct memory *mem;
};

static int push(struct eval *e, uint64_t v)
{
	if (e->n == EVAL_STACK)
		return -SHSTK_END_BAD_RULE;
	e->stack[e->n++] = v;
	return 0;
}

static int push_reg(struct eval *e, uint64_t reg, int64_t off)
{
	/* x86 names the program counter by its return address column, 16. */
	if (reg >= NREGS)
		return -SHSTK_END_BAD_RULE;
	if (!(e->regs->known & 1ull << reg))
		return -SHSTK_END_NO_REGISTER;
	return push(e, e->regs->r[reg] + off);
}

static int deref(struct eval *e, unsigned int size)
{
	uint64_t v = 0;

	if (!e->n || !size || size > 8)
		return -SHSTK_END_BAD_RULE;
	if (e->mem->read(e->mem->arg, e->stack[e->n - 1], &v, size))
		return -SHSTK_END_READ;
	e->stack[e->n - 1] = v;
	return 0;
}

static int stack_op(struct eval *e, uint8_t op, struct bytes *b)
{
	uint64_t *top = e->stack + e->n - 1;
	uint64_t v, n;

	switch (op) {
	case OP_DUP:
		return e->n ? push(e, *top) : -SHSTK_END_BAD_RULE;
	case OP_DROP:
		if (!e->n)
			return -SHSTK_END_BAD_RULE;
		e->n--;
		return 0;
	case OP_OVER:
	case OP_PICK:
		n = op == OP_OVER ? 1 : fixed(b, 1);
		return n < e->n ? push(e, top[-(int)n]) : -SHSTK_END_BAD_RULE;
	case OP_SWAP:
		if (e->n < 2)
			return -SHSTK_END_BAD_RULE;
		v = top[0];
		top[0] = top[-1];
		top[-1] = v;
		return 0;
	case OP_ROT:
		if (e->n < 3)
			return -SHSTK_END_BAD_RULE;
		v = top[0];
		top[0] = top[-1];
		top[-1] = top[-2];
		top[-2] = v;
		return 0;
	case OP_ABS:
	case OP_NEG:
	case OP_NOT:
	case OP_PLUS_UCONST:
		if (!e->n)
			return -SHSTK_END_BAD_RULE;
		if (op == OP_NOT)
			*top = ~*top;
		else if (op == OP_PLUS_UCONST)
			*top += uleb(b);
		else if (op == OP_NEG || (int64_t)*top < 0)
			*top = -*top;
		return 0;
	default:
		if (e->n < 2 || !binary(op, top[-1], top[0], &v))
			return -SHSTK_END_BAD_RULE;
		e->n--;
		top[-1] = v;
		return 0;
	}
}

static int eval_op(struct eval *e, uint8_t op, struct bytes *b, const uint8_t *start)
{
	uint64_t reg;
	int64_t off;

	if (op >= OP_LIT0 && op < OP_LIT0 + 32)
		return push(e, op - OP_LIT0);
	if (op >= OP_BREG0 && op < OP_BREG0 + 32)
		return push_reg(e, op - OP_BREG0, sleb(b));
	switch (op) {
	case OP_NOP:
		return 0;
	case OP_ADDR:
	case OP_CONST8U:
	case OP_CONST8S:
		return push(e, fixed(b, 8));
	case OP_CONST1U:
	case OP_CONST2U:
	case OP_CONST4U:
		return push(e, fixed(b, 1u << ((op - OP_CONST1U) / 2)));
	case OP_CONST1S:
	case OP_CONST2S:
	case OP_CONST4S:
		return push(e, fixed_signed(b, 1u << ((op - OP_CONST1S) / 2)));
	case OP_CONSTU:
		return push(e, uleb(b));
	case OP_CONSTS:
		return push(e, sleb(b));
	case OP_BREGX:
		reg = uleb(b);
		return push_reg(e, reg, sleb(b));
	case OP_DEREF:
		return deref(e, 8);
	case OP_DEREF_SIZE:
		return deref(e, fixed(b, 1));
	case OP_SKIP:
	case OP_BRA:
		off = fixed_signed(b, 2);
		if (op == OP_BRA) {
			if (!e->n)
				return -SHSTK_END_BAD_RULE;
			if (!e->stack[--e->n])
				return 0;
		}
		if (off < start - b->p || off > b->end - b->p)
			return -SHSTK_END_BAD_RULE;
		b->p += off;
		return 0;
	default:
		return stack_op(e, op, b);
	}
}

int cfi_eval(const struct cfi_section *sec, size_t off, const struct regs *regs,
	     const struct memory *mem, const uint64_t *cfa, uint64_t *ret)
{
	struct bytes b = { sec->s.data + off, sec->s.data + sec->s.size, false };
	struct eval e = { .regs = regs, .mem = mem };
	unsigned int steps = 0;
	const uint8_t *start;
	uint64_t len;

	len = uleb(&b);
	if (b.bad || len > (size_t)(b.end - b.p))
		return -SHSTK_END_BAD_RULE;
	start = b.p;
	b.end = b.p + len;
	if (cfa)
		push(&e, *cfa);
	while (b.p < b.end) {
		uint8_t op = fixed(&b, 1);
		int err = eval_op(&e, op, &b, start);

		if (err)
			return err;
		if (b.bad || ++steps > EVAL_STEPS)
			return -SHSTK_END_BAD_RULE;
	}
	if (!e.n)
		return -SHSTK_END_BAD_RULE;
	*ret = e.stack[e.n - 1];
	return 0;
}
