// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * unsure.c - where the interpreter's lists may be in the middle of a change.
 *
 * When 3.11 and 3.12 enter the interpreter, they publish their cframe before they have filled it in. Later versions have
 * a frame in its place, which leads from the first frame of the program to its caller. On arm64 compilers publish that
 * first frame before they fill in the other one. All of it is done before the first jump to an instruction of the
 * program. These two instructions are looked for in the beginning of the function that runs frames. If the first one is
 * not there, all of the beginning may be such a place.
 */
#include <elf.h>

#include "libshstk/unaligned.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

/**
 * struct entering - instructions by which the interpreter is entered
 * @step: an instruction's address is a multiple of it.
 * @publishes: returns whether there is one that stores a register in the thread state's cframe. The state is the
 *	first argument.
 * @publishes_frame: the same of versions without a cframe, for the first frame. Any register may have the state. NULL:
 *	what they publish is filled in.
 * @jumps: returns whether there is a jump to the address in a register.
 */
struct entering {
	unsigned int step;
	bool (*publishes)(const uint8_t *code);
	bool (*publishes_frame)(const uint8_t *code);
	bool (*jumps)(const uint8_t *code);
};

#define LONGEST 4 /* bytes of them */

static bool publishes_x86(const uint8_t *code)
{
	return code[0] == 0x48 && code[1] == 0x89 && (code[2] & 0xc7) == 0x47 && code[3] == 0x38;
}

static bool jumps_x86(const uint8_t *code)
{
	return code[0] == 0xff && (code[1] & 0xf8) == 0xe0;
}

/* str xN, [x0, #56] */
static bool publishes_arm64(const uint8_t *code)
{
	return (get32(code) & 0xffffffe0) == 0xf9001c00;
}

/* str xN, [xM, #72] */
static bool publishes_frame_arm64(const uint8_t *code)
{
	return (get32(code) & 0xfffffc00) == 0xf9002400;
}

/* br xN */
static bool jumps_arm64(const uint8_t *code)
{
	return (get32(code) & 0xfffffc1f) == 0xd61f0000;
}

static const struct entering x86 = { 1, publishes_x86, NULL, jumps_x86 };
static const struct entering arm64 = { 4, publishes_arm64, publishes_frame_arm64, jumps_arm64 };

void python_find_unsure(const struct python_version *v, unsigned int machine, const uint8_t *code,
			struct language_found *ret)
{
	const struct entering *e = machine == EM_AARCH64 ? &arm64 : &x86;
	bool (*publishes)(const uint8_t *code) = v->cframes ? e->publishes : e->publishes_frame;
	const unsigned int end = PYTHON_BEGINNING - LONGEST + 1;
	unsigned int from = 0, to;

	if (!publishes)
		return;
	ret->unsure_start = ret->run_start;
	ret->unsure_end = ret->run_start + PYTHON_BEGINNING;
	while (from < end && !publishes(code + from))
		from += e->step;
	if (from >= end)
		return;
	for (to = from; to < end && !e->jumps(code + to);)
		to += e->step;
	ret->unsure_start = ret->run_start + from;
	if (to < end)
		ret->unsure_end = ret->run_start + to;
}
