// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hidden_variable.c - finds a thread-local variable by the code of a function. See hidden_variable.h.
 *
 * The models of thread-local storage that are known ("ELF Handling For Thread-Local Storage"):
 *
 *	local exec	A program knows the distance from the thread pointer.
 *	dynamic		A library gives __tls_get_addr() the address of two words that the loader fills in: the
 *			module's number and an offset in its block. To that a constant may be added.
 *	descriptor	The loader fills in a function and its argument: the distance from the thread pointer, or the
 *			address of number, offset and a generation.
 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/language/hidden_variable.h"

#define CODE_BYTES 64 /* of the function that are looked at; all forms are shorter */
#define MAX_MODULES 4096
#define MAX_OFFSET (1 << 24) /* in a module's block, or from the thread pointer */
#define LEAST_ADDRESS 65536 /* Nothing is mapped below it, so a smaller argument is a distance. */

/* What was found in the code. */
struct hidden_place {
	enum hidden_model { HIDDEN_DISTANCE, HIDDEN_INDEX, HIDDEN_DESCRIPTOR } model;
	uint64_t at; /* address of what the loader fills in */
	int64_t offset; /* the distance, or what is added to the offset */
	int member; /* offset of the member that is read, or HIDDEN_VARIABLE_RESULT */
};

/* ---- Code of x86-64 ---- */

/* A piece of code: bytes, and the operand behind them. One of @size 0 ends a form. */
struct x86_piece {
	uint8_t size;
	uint8_t bytes[6];
	enum { X86_NOTHING, X86_INDEX, X86_IGNORED, X86_OFFSET, X86_MEMBER } operand;
};

struct x86_form {
	enum hidden_model model;
	struct x86_piece pieces[6];
};

/* clang-format off */
static const struct x86_form x86_forms[] = {
	/* A program: mov %fs:offset,%rax; ret */
	{ HIDDEN_DISTANCE, {
		{ 5, { 0x64, 0x48, 0x8b, 0x04, 0x25 }, X86_OFFSET },
		{ 1, { 0xc3 }, X86_NOTHING },
	} },
	/* A library's own variable, as GCC makes it with frame pointers. */
	{ HIDDEN_INDEX, {
		{ 4, { 0x55, 0x48, 0x89, 0xe5 }, X86_NOTHING }, /* push %rbp; mov %rsp,%rbp */
		{ 3, { 0x48, 0x8d, 0x3d }, X86_INDEX }, /* lea index(%rip),%rdi */
		{ 1, { 0xe8 }, X86_IGNORED }, /* call __tls_get_addr */
		{ 4, { 0x5d, 0x48, 0x8b, 0x80 }, X86_OFFSET }, /* pop %rbp; mov offset(%rax),%rax */
		{ 1, { 0xc3 }, X86_NOTHING },
	} },
	/* A variable that others could replace, and a member of what it refers to. */
	{ HIDDEN_INDEX, {
		{ 4, { 0x48, 0x83, 0xec, 0x08 }, X86_NOTHING }, /* sub $8,%rsp */
		{ 4, { 0x66, 0x48, 0x8d, 0x3d }, X86_INDEX }, /* data16 lea index(%rip),%rdi */
		{ 4, { 0x66, 0x66, 0x48, 0xe8 }, X86_IGNORED }, /* data16 data16 rex.W call __tls_get_addr */
		{ 6, { 0x48, 0x8b, 0x00, 0x48, 0x8b, 0x40 }, X86_MEMBER }, /* mov (%rax),%rax; mov member(%rax),%rax */
	} },
};
/* clang-format on */

/* Takes the operand of a piece. @next: address of what follows it. Returns its bytes. */
static size_t take_operand(const struct x86_piece *piece, const uint8_t *code, uint64_t next,
			   struct hidden_place *ret)
{
	switch (piece->operand) {
	case X86_INDEX:
		ret->at = get_relative(code, next);
		return 4;
	case X86_OFFSET:
		ret->offset = (int32_t)get32(code);
		return 4;
	case X86_IGNORED:
		return 4;
	case X86_MEMBER:
		ret->member = *code;
		return 1;
	default:
		return 0;
	}
}

/* Returns whether the code at @addr has a form. */
static bool has_x86_form(const struct x86_form *form, const uint8_t *code, uint64_t addr,
			 struct hidden_place *ret)
{
	size_t at = 0;

	*ret = (struct hidden_place){ .model = form->model, .member = HIDDEN_VARIABLE_RESULT };
	for (const struct x86_piece *p = form->pieces; p->size; p++) {
		if (memcmp(code + at, p->bytes, p->size))
			return false;
		at += p->size;
		at += take_operand(p, code + at, addr + at + 4, ret);
	}
	return true;
}

static bool find_x86(const uint8_t *code, uint64_t addr, struct hidden_place *ret)
{
	static const uint8_t branch[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */
	const size_t begin = memcmp(code, branch, sizeof(branch)) ? 0 : sizeof(branch);

	for (size_t i = 0; i < sizeof(x86_forms) / sizeof(*x86_forms); i++)
		if (has_x86_form(&x86_forms[i], code + begin, addr + begin, ret))
			return true;
	return false;
}

/* ---- Code of arm64 ---- */

/* An instruction: the bits that do not belong to its operand, and what that is. */
struct arm64_piece {
	uint32_t bits;
	enum { ARM64_NOTHING, ARM64_HIGH, ARM64_LOW, ARM64_PAGE, ARM64_FUNCTION } operand;
};

struct arm64_form {
	enum hidden_model model;
	struct arm64_piece pieces[14]; /* 0 ends them */
};

#define ARM64_BTI 0xd503245f /* bti c */
#define ARM64_SIGN 0xd503233f /* paciasp */
#define ARM64_CHECK 0xd50323bf /* autiasp */
#define ARM64_PUSH 0xa9bf7bfd /* stp x29, x30, [sp, #-16]! */
#define ARM64_POP 0xa8c17bfd /* ldp x29, x30, [sp], #16 */
#define ARM64_FRAME 0x910003fd /* mov x29, sp */
#define ARM64_RETURN 0xd65f03c0 /* ret */

#define ARM64_TWELVE 0x003ffc00 /* bits of an operand of 12 bits, and */
#define ARM64_TWELVE_SHIFT 10
#define ARM64_PAGE_LOW 0x60000000 /* of the number of a page: two, and */
#define ARM64_PAGE_LOW_SHIFT 29
#define ARM64_PAGE_HIGH 0x00ffffe0 /* 19 of which the first one is the sign */
#define ARM64_PAGE_HIGH_SHIFT 5
#define ARM64_PAGE_SIGN (1 << 20)

/* clang-format off */
static const struct arm64_form arm64_forms[] = {
	/* A program. */
	{ HIDDEN_DISTANCE, {
		{ 0xd53bd040, ARM64_NOTHING }, /* mrs x0, tpidr_el0 */
		{ ARM64_SIGN, ARM64_NOTHING },
		{ ARM64_PUSH, ARM64_NOTHING },
		{ 0x91400000, ARM64_HIGH }, /* add x0, x0, #offset, lsl #12 */
		{ 0x91000000, ARM64_LOW }, /* add x0, x0, #offset */
		{ ARM64_FRAME, ARM64_NOTHING },
		{ ARM64_POP, ARM64_NOTHING },
		{ ARM64_CHECK, ARM64_NOTHING },
		{ 0xf9400000, ARM64_NOTHING }, /* ldr x0, [x0] */
		{ ARM64_RETURN, ARM64_NOTHING },
	} },
	/* A library's own variable. */
	{ HIDDEN_DESCRIPTOR, {
		{ ARM64_SIGN, ARM64_NOTHING },
		{ 0xd53bd041, ARM64_NOTHING }, /* mrs x1, tpidr_el0 */
		{ ARM64_PUSH, ARM64_NOTHING },
		{ ARM64_FRAME, ARM64_NOTHING },
		{ 0x90000000, ARM64_PAGE }, /* adrp x0, descriptor */
		{ 0xf9400002, ARM64_FUNCTION }, /* ldr x2, [x0, descriptor] */
		{ 0x91000000, ARM64_LOW }, /* add x0, x0, descriptor */
		{ 0xd63f0040, ARM64_NOTHING }, /* blr x2 */
		{ 0xf8606820, ARM64_NOTHING }, /* ldr x0, [x1, x0] */
		{ ARM64_POP, ARM64_NOTHING },
		{ ARM64_CHECK, ARM64_NOTHING },
		{ ARM64_RETURN, ARM64_NOTHING },
	} },
};
/* clang-format on */

static uint32_t operand_bits(const struct arm64_piece *piece)
{
	switch (piece->operand) {
	case ARM64_NOTHING:
		return 0;
	case ARM64_PAGE:
		return ARM64_PAGE_LOW | ARM64_PAGE_HIGH;
	default:
		return ARM64_TWELVE;
	}
}

/* Returns the address of the page to which an instruction (adrp) at @addr leads. */
static uint64_t page_of(uint32_t code, uint64_t addr)
{
	const uint32_t pages = (code & ARM64_PAGE_HIGH) >> ARM64_PAGE_HIGH_SHIFT << 2 |
			       (code & ARM64_PAGE_LOW) >> ARM64_PAGE_LOW_SHIFT;
	const int64_t distance = (int64_t)(pages ^ ARM64_PAGE_SIGN) - ARM64_PAGE_SIGN;

	return (addr & ~0xfffull) + ((uint64_t)distance << 12);
}

/* What the operands of a form say. */
struct arm64_operands {
	uint64_t page;
	uint32_t high;
	uint32_t low;
	uint32_t function; /* the same as @low, of which this is a multiple of 8 */
};

static void take_arm64_operand(const struct arm64_piece *piece, uint32_t code, uint64_t addr,
			       struct arm64_operands *ret)
{
	const uint32_t twelve = (code & ARM64_TWELVE) >> ARM64_TWELVE_SHIFT;

	switch (piece->operand) {
	case ARM64_HIGH:
		ret->high = twelve << 12;
		break;
	case ARM64_LOW:
		ret->low = twelve;
		break;
	case ARM64_FUNCTION:
		ret->function = twelve * 8;
		break;
	case ARM64_PAGE:
		ret->page = page_of(code, addr);
		break;
	default:
		break;
	}
}

static bool has_arm64_form(const struct arm64_form *form, const uint8_t *code, uint64_t addr,
			   struct hidden_place *ret)
{
	struct arm64_operands is = { .page = 0 };

	for (size_t i = 0; form->pieces[i].bits; i++) {
		const struct arm64_piece *piece = &form->pieces[i];
		const uint32_t word = get32(code + 4 * i);

		if ((word & ~operand_bits(piece)) != piece->bits)
			return false;
		take_arm64_operand(piece, word, addr + 4 * i, &is);
	}
	*ret = (struct hidden_place){
		.model = form->model,
		.at = is.page + is.low,
		.offset = form->model == HIDDEN_DISTANCE ? is.high + is.low : 0,
		.member = HIDDEN_VARIABLE_RESULT,
	};
	return form->model == HIDDEN_DISTANCE || is.function == is.low;
}

static bool find_arm64(const uint8_t *code, uint64_t addr, struct hidden_place *ret)
{
	const size_t begin = get32(code) == ARM64_BTI ? 4 : 0;

	for (size_t i = 0; i < sizeof(arm64_forms) / sizeof(*arm64_forms); i++)
		if (has_arm64_form(&arm64_forms[i], code + begin, addr + begin, ret))
			return true;
	return false;
}

/* ---- What the loader filled in ---- */

static int set_distance(int64_t distance, struct context_variable *ret)
{
	if (distance >= MAX_OFFSET || distance <= -MAX_OFFSET)
		return -ENOENT;
	*ret = (struct context_variable){ .offset = distance };
	return 0;
}

static int set_module(uint64_t module, uint64_t offset, uint64_t generation,
		      struct context_variable *ret)
{
	if (!module)
		return -EAGAIN;
	if (module > MAX_MODULES || offset >= MAX_OFFSET)
		return -ENOENT;
	*ret = (struct context_variable){ module, (int64_t)offset, generation };
	return 0;
}

static int read_index(const struct hidden_variable_reader *r, const struct hidden_place *place,
		      struct context_variable *ret)
{
	struct {
		uint64_t module, offset;
	} words;

	if (r->read(r->arg, place->at, &words, sizeof(words)))
		return -EAGAIN;
	return set_module(words.module, words.offset + (uint64_t)place->offset, 0, ret);
}

static int read_descriptor(const struct hidden_variable_reader *r, const struct hidden_place *place,
			   struct context_variable *ret)
{
	struct {
		uint64_t function, argument;
	} words;
	struct {
		uint64_t module, offset, generation;
	} dynamic;

	if (r->read(r->arg, place->at, &words, sizeof(words)) || !words.function || !words.argument)
		return -EAGAIN;
	if (words.argument < LEAST_ADDRESS || words.argument > (uint64_t)-LEAST_ADDRESS)
		return set_distance((int64_t)words.argument, ret);
	if (r->read(r->arg, words.argument, &dynamic, sizeof(dynamic)))
		return -EAGAIN;
	return set_module(dynamic.module, dynamic.offset, dynamic.generation, ret);
}

int hidden_variable_find(const struct hidden_variable_reader *r, struct context_variable *ret)
{
	struct hidden_place place;
	uint8_t code[CODE_BYTES];

	if (!r->function || r->read(r->arg, r->function, code, sizeof(code)) ||
	    !(r->machine == EM_AARCH64 ? find_arm64(code, r->function, &place) :
					 find_x86(code, r->function, &place)) ||
	    place.member != r->member)
		return -ENOENT;
	switch (place.model) {
	case HIDDEN_INDEX:
		return read_index(r, &place, ret);
	case HIDDEN_DESCRIPTOR:
		return read_descriptor(r, &place, ret);
	default:
		return set_distance(place.offset, ret);
	}
}
