// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * filter.c - what a filter of system calls permits, found out without a call.
 *
 * Such a filter is a program of classic BPF, whose jumps lead forward only. It is executed here as the kernel
 * executes it (Documentation/networking/filter.rst of Linux), for a call of which no more is known than its number
 * and the architecture.
 */
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "filter.h"

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/**
 * struct filter_state - the state of a filter that is executed
 * @call: number of the system call.
 * @a: the accumulator.
 * @x: the index register.
 * @mem: the filter's memory.
 */
struct filter_state {
	uint32_t call;
	uint32_t a;
	uint32_t x;
	uint32_t mem[BPF_MEMWORDS];
};

/* Executes a load. Returns false if its result is not known. */
static bool load(struct filter_state *s, const struct sock_filter *f, uint32_t *to)
{
	bool whole = BPF_SIZE(f->code) == BPF_W;

	if (BPF_MODE(f->code) == BPF_IMM && whole)
		*to = f->k;
	else if (BPF_MODE(f->code) == BPF_MEM && whole && f->k < BPF_MEMWORDS)
		*to = s->mem[f->k];
	else if (BPF_MODE(f->code) == BPF_LEN && whole)
		*to = sizeof(struct seccomp_data);
	else if (f->code == (BPF_LD | BPF_W | BPF_ABS) && f->k == offsetof(struct seccomp_data, nr))
		*to = s->call;
	else if (f->code == (BPF_LD | BPF_W | BPF_ABS) &&
		 f->k == offsetof(struct seccomp_data, arch))
		*to = THIS_ARCH;
	else
		return false;
	return true;
}

/* Returns the other operand of an instruction. */
static uint32_t operand(const struct filter_state *s, const struct sock_filter *f)
{
	return BPF_SRC(f->code) == BPF_X ? s->x : f->k;
}

/* Calculates. Returns false if the kernel would not do it. */
static bool calculate(struct filter_state *s, const struct sock_filter *f)
{
	uint32_t b = operand(s, f);

	switch (BPF_OP(f->code)) {
	case BPF_ADD:
		s->a += b;
		return true;
	case BPF_SUB:
		s->a -= b;
		return true;
	case BPF_MUL:
		s->a *= b;
		return true;
	case BPF_DIV:
		s->a = b ? s->a / b : 0;
		return b;
	case BPF_AND:
		s->a &= b;
		return true;
	case BPF_OR:
		s->a |= b;
		return true;
	case BPF_XOR:
		s->a ^= b;
		return true;
	case BPF_LSH:
		s->a = b < 32 ? s->a << b : 0;
		return b < 32;
	case BPF_RSH:
		s->a = b < 32 ? s->a >> b : 0;
		return b < 32;
	case BPF_NEG:
		s->a = -s->a;
		return true;
	default:
		return false;
	}
}

/* Stores in *@skip how many instructions a jump skips. Returns false if it is none that the kernel knows. */
static bool jump(const struct filter_state *s, const struct sock_filter *f, uint32_t *skip)
{
	uint32_t b = operand(s, f);
	bool yes;

	switch (BPF_OP(f->code)) {
	case BPF_JA:
		*skip = f->k;
		return true;
	case BPF_JEQ:
		yes = s->a == b;
		break;
	case BPF_JGT:
		yes = s->a > b;
		break;
	case BPF_JGE:
		yes = s->a >= b;
		break;
	case BPF_JSET:
		yes = s->a & b;
		break;
	default:
		return false;
	}
	*skip = yes ? f->jt : f->jf;
	return true;
}

/* Executes an instruction that does not end the filter. Returns false if its result is not known. */
static bool step(struct filter_state *s, const struct sock_filter *f, uint32_t *skip)
{
	switch (BPF_CLASS(f->code)) {
	case BPF_LD:
		return load(s, f, &s->a);
	case BPF_LDX:
		return load(s, f, &s->x);
	case BPF_ST:
	case BPF_STX:
		if (f->k >= BPF_MEMWORDS)
			return false;
		s->mem[f->k] = BPF_CLASS(f->code) == BPF_ST ? s->a : s->x;
		return true;
	case BPF_ALU:
		return calculate(s, f);
	case BPF_JMP:
		return jump(s, f, skip);
	case BPF_MISC:
		if (BPF_MISCOP(f->code) == BPF_TAX)
			s->x = s->a;
		else
			s->a = s->x;
		return true;
	default:
		return false;
	}
}

bool filter_permits(const struct sock_filter *code, uint32_t n, uint32_t call)
{
	struct filter_state s = { .call = call };
	uint32_t skip, result;

	for (uint32_t at = 0; at < n && n <= BPF_MAXINSNS; at++) {
		/* Another thread may write to it meanwhile. */
		const struct sock_filter f = *(const volatile struct sock_filter *)&code[at];

		if (BPF_CLASS(f.code) == BPF_RET) {
			result = BPF_RVAL(f.code) == BPF_A ? s.a : f.k;
			return (result & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ALLOW;
		}
		skip = 0;
		if (!step(&s, &f, &skip) || skip >= n)
			return false;
		at += skip;
	}
	return false;
}
