// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hotspot.c - see hotspot.h.
 *
 * A method that calls others begins with
 *
 *	mov %eax,-0x14000(%rsp); push %rbp; sub $N,%rsp
 *
 * the first of which sees whether the stack is large enough; one that calls none with
 *
 *	sub $N,%rsp; mov %rbp,N-8(%rsp)
 *
 * They end with add $N,%rsp; pop %rbp; a look whether a safepoint is wanted; ret.
 */
#include <string.h>

#include "tools/unwind/hotspot.h"

#define LEAF_MAX 4096 /* bytes of code of a method that calls none, or of a stub */
#define FRAME_MAX (1 << 20)
#define GAP 4 /* bytes of hlt in a row, as they fill the space between methods */

/* How a method begins. */
struct begin {
	size_t at; /* of the instruction that makes the frame */
	size_t end; /* behind its last one */
	uint32_t size; /* N */
	bool pushes; /* the frame pointer comes first */
	bool record;
};

static uint32_t get32(const uint8_t *p)
{
	uint32_t ret;

	memcpy(&ret, p, sizeof(ret));
	return ret;
}

/* sub $N,%rsp or add. Returns its length, or 0. */
static size_t take_size(const uint8_t *p, size_t left, uint8_t code, uint32_t *ret)
{
	if (left >= 4 && p[0] == 0x48 && p[1] == 0x83 && p[2] == code) {
		*ret = p[3];
		return p[3] < 0x80 ? 4 : 0;
	}
	if (left >= 7 && p[0] == 0x48 && p[1] == 0x81 && p[2] == code) {
		*ret = get32(p + 3);
		return 7;
	}
	return 0;
}

static bool good_size(uint32_t n)
{
	return n && n % 8 == 0 && n < FRAME_MAX;
}

/* Behind the test of the stack's size. */
static bool begins_with_push(const uint8_t *p, size_t left, struct begin *b)
{
	size_t n;

	if (left < 5 || p[0] != 0x55)
		return false;
	b->pushes = true;
	b->record = !memcmp(p + 1, "\x48\x8b\xec", 3);
	n = b->record ? 3 : take_size(p + 1, left - 1, 0xec, &b->size);
	b->end = b->at + 1 + n;
	return b->record || (n && good_size(b->size));
}

/* mov %rbp,N-8(%rsp) behind sub $N,%rsp. */
static bool begins_with_sub(const uint8_t *p, size_t left, struct begin *b)
{
	size_t n = take_size(p, left, 0xec, &b->size);

	if (n != 7 || !good_size(b->size) || left < n + 8 || memcmp(p + n, "\x48\x89", 2))
		return false;
	p += n;
	b->pushes = b->record = false;
	if (p[2] == 0x2c && p[3] == 0x24 && b->size == 8)
		b->end = b->at + n + 4;
	else if (p[2] == 0x6c && p[3] == 0x24 && p[4] == b->size - 8)
		b->end = b->at + n + 5;
	else if (p[2] == 0xac && p[3] == 0x24 && get32(p + 4) == b->size - 8)
		b->end = b->at + n + 8;
	else
		return false;
	return true;
}

static bool begins_at(const uint8_t *code, size_t size, size_t at, size_t pc, struct begin *b)
{
	static const uint8_t bang[] = { 0x89, 0x84, 0x24 };
	size_t left = size - at;

	if (left > sizeof(bang) + 4 && !memcmp(code + at, bang, sizeof(bang))) {
		b->at = at + sizeof(bang) + 4;
		return begins_with_push(code + b->at, size - b->at, b);
	}
	b->at = at;
	return pc - at < LEAF_MAX && begins_with_sub(code + at, left, b);
}

/* Where the method of @pc begins. Between two methods lies what is never executed. */
static int find_begin(const uint8_t *code, size_t size, size_t pc, struct begin *b)
{
	size_t gap = 0;

	for (size_t at = pc; at--;) {
		if (begins_at(code, size, at, pc, b))
			return HOTSPOT_FRAME;
		gap = code[at] == 0xf4 ? gap + 1 : 0;
		if (gap == GAP)
			return HOTSPOT_OTHER;
	}
	return HOTSPOT_NOTHING;
}

/* Is the frame gone, but for the frame pointer (8 bytes) or the return address (0)? */
static int behind_frame(const uint8_t *code, size_t pc)
{
	/* What may lie behind pop %rbp, up to @pc: nothing, or a look for a safepoint. */
	static const struct {
		uint8_t bytes;
		uint8_t code[3];
	} polls[] = {
		{ 0, { 0 } },
		{ 7, { 0x49, 0x3b, 0xa7 } }, /* cmp off(%r15),%rsp */
		{ 13, { 0x49, 0x3b, 0xa7 } }, /* and ja */
		{ 6, { 0x85, 0x05 } }, /* test %eax,off(%rip) */
		{ 7, { 0x4d, 0x8b, 0x97 } }, /* mov off(%r15),%r10 */
		{ 10, { 0x4d, 0x8b, 0x97 } }, /* and test %eax,(%r10) */
	};
	uint32_t n;

	if (code[pc] == 0xc3)
		return 0;
	if (code[pc] == 0x5d && pc >= 7 &&
	    (take_size(code + pc - 4, 4, 0xc4, &n) || take_size(code + pc - 7, 7, 0xc4, &n)))
		return 8;
	for (size_t i = 0; i < sizeof(polls) / sizeof(*polls); i++) {
		const uint8_t *pop = code + pc - polls[i].bytes - 1;

		if (pc < (size_t)polls[i].bytes + 8 || *pop != 0x5d ||
		    (!take_size(pop - 4, 4, 0xc4, &n) && !take_size(pop - 7, 7, 0xc4, &n)))
			continue;
		if (!polls[i].bytes || !memcmp(pop + 1, polls[i].code, polls[i].code[2] ? 3 : 2))
			return 0;
	}
	return -1;
}

static void exact_frame(const uint8_t *code, size_t pc, const struct begin *b,
			struct hotspot_frame *ret)
{
	int left = behind_frame(code, pc);

	if (pc <= b->at)
		left = 0;
	else if (b->pushes && pc < b->end)
		left = 8;
	if (left < 0 && !b->pushes && pc < b->end)
		ret->fp_saved = false;
	if (left < 0)
		return;
	ret->cfa = 8 + left;
	ret->fp_saved = left == 8;
}

int hotspot_find(const uint8_t *code, size_t size, size_t at, bool exact, struct hotspot_frame *ret)
{
	struct begin b = { 0 };
	int kind;

	if (at >= size)
		return HOTSPOT_NOTHING;
	/* The first instruction may be the one at @at. */
	kind = find_begin(code, size, exact ? at + 1 : at, &b);
	if (kind != HOTSPOT_FRAME)
		return kind;
	if (b.record)
		return HOTSPOT_RECORD;
	ret->cfa = b.size + (b.pushes ? 16 : 8);
	ret->fp_saved = true;
	if (exact)
		exact_frame(code, at, &b, ret);
	else if (at < b.end)
		return HOTSPOT_OTHER;
	return HOTSPOT_FRAME;
}

bool hotspot_after_call(const uint8_t *code, size_t at)
{
	if (at >= 5 && code[at - 5] == 0xe8)
		return true;
	/* call *%reg, with and without a prefix; call *off(%reg). */
	if (at >= 2 && code[at - 2] == 0xff && (code[at - 1] & 0xf8) == 0xd0)
		return true;
	return at >= 3 && code[at - 3] == 0xff && (code[at - 2] & 0x38) == 0x10;
}
