// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * insn.c - what an instruction does to the stack, from its bytes.
 *
 * Zydis decodes; the answers are cached by address until code is unmapped.
 */
#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>

#include "oracle.h"

#define CACHE_SIZE 65536

static struct insn cache[CACHE_SIZE];
static ZydisDecoder decoder;

void insn_flush(void)
{
	memset(cache, 0, sizeof(cache));
}

static int reg_number(ZydisRegister reg)
{
	if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
		return reg - ZYDIS_REGISTER_RAX;
	return -1;
}

static u64 reg_value(const struct user_regs_struct *r, int n)
{
	const unsigned long long *const regs[] = {
		&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi, &r->rdi,
		&r->r8,	 &r->r9,  &r->r10, &r->r11, &r->r12, &r->r13, &r->r14, &r->r15,
	};

	return n < 0 ? 0 : *regs[n];
}

/**
 * insn_operand() - address that an instruction writes to
 * @insn: the instruction, write being WRITE_OPERAND.
 * @regs: registers before it runs.
 * @addr: receives the address.
 *
 * Return: false if it cannot be told.
 */
bool insn_operand(const struct insn *insn, const struct user_regs_struct *regs, u64 *addr)
{
	if (insn->write != WRITE_OPERAND)
		return false;
	*addr = reg_value(regs, insn->base) + reg_value(regs, insn->index) * insn->scale +
		insn->disp;
	if (insn->segment == 'f')
		*addr += regs->fs_base;
	else if (insn->segment == 'g')
		*addr += regs->gs_base;
	return true;
}

/*
 * Notes the one explicit memory operand that has plain 64-bit address registers; without one,
 * nothing is noted.
 */
static void set_operand(struct insn *in, const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *mem = &op->mem;
	bool rip = mem->base == ZYDIS_REGISTER_RIP;

	in->write = WRITE_ANYWHERE;
	if (mem->type != ZYDIS_MEMOP_TYPE_MEM || !op->size)
		return;
	in->base = rip ? -1 : reg_number(mem->base);
	in->index = reg_number(mem->index);
	if (mem->base != ZYDIS_REGISTER_NONE && !rip && in->base < 0)
		return;
	if (mem->index != ZYDIS_REGISTER_NONE && in->index < 0)
		return;
	in->scale = mem->scale;
	in->disp = mem->disp.value;
	if (rip)
		in->disp += in->pc + in->len;
	in->segment = mem->segment == ZYDIS_REGISTER_FS ? 'f' :
		      mem->segment == ZYDIS_REGISTER_GS ? 'g' :
							  0;
	in->size = (op->size + 7) / 8;
	in->write = WRITE_OPERAND;
}

static void find_writes(struct insn *in, const ZydisDecodedInstruction *z,
			const ZydisDecodedOperand *ops)
{
	unsigned int writes = 0;

	for (unsigned int i = 0; i < z->operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		writes++;
		if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    op->mem.base == ZYDIS_REGISTER_RSP)
			in->write = WRITE_STACK;
		else
			set_operand(in, op);
	}
	if (writes > 1 ||
	    z->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		in->write = WRITE_ANYWHERE;
	/* What these instructions write depends on more than their operands. */
	if (z->meta.category == ZYDIS_CATEGORY_XSAVE || z->meta.category == ZYDIS_CATEGORY_XSAVEOPT)
		in->write = WRITE_ANYWHERE;
}

static enum insn_kind kind_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		return INSN_CALL;
	case ZYDIS_MNEMONIC_RET:
		return INSN_RET;
	case ZYDIS_MNEMONIC_SYSCALL:
		return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_PUSH:
		return INSN_PUSH;
	case ZYDIS_MNEMONIC_POP:
		if (ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ops[0].reg.value != ZYDIS_REGISTER_RSP)
			return INSN_POP;
		return INSN_LOAD_SP;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_XCHG:
		for (int i = 0; i < z->operand_count_visible; i++)
			if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    ops[i].reg.value == ZYDIS_REGISTER_RSP &&
			    ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
				return INSN_LOAD_SP;
		return INSN_PLAIN;
	default:
		if (z->attributes &
		    (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
			return INSN_REP;
		return INSN_PLAIN;
	}
}

static bool decode(struct memory *m, u64 pc, struct insn *in)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	size_t len = sizeof(bytes);

	if (!decoder.machine_mode)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	/* The last instruction of a mapping may be shorter than the buffer. */
	while (len && memory_read(m, pc, bytes, len))
		len--;
	if (!len || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, len, &z, ops)))
		return false;
	memset(in, 0, sizeof(*in));
	in->pc = pc;
	in->len = z.length;
	in->base = -1;
	in->index = -1;
	in->kind = kind_of(&z, ops);
	find_writes(in, &z, ops);
	if (in->kind == INSN_SYSCALL)
		in->write = WRITE_ANYWHERE;
	return true;
}

/**
 * insn_at() - decode an instruction
 * @p: process whose memory holds it.
 * @pc: its address.
 *
 * Return: the instruction, valid until the next call, or NULL if there is none.
 */
const struct insn *insn_at(struct process *p, u64 pc)
{
	struct insn *in = &cache[(pc ^ pc >> 16) % CACHE_SIZE];

	if (in->pc != pc || in->owner != p || !pc) {
		in->pc = 0;
		if (!decode(p->memory, pc, in))
			return NULL;
		in->owner = p;
	}
	return in;
}
