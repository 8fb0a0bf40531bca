// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hotspot.c - frames of methods that HotSpot compiled, by their instructions. See hotspot.h.
 *
 * A method that calls other methods begins with
 *
 *	mov %eax,-0x14000(%rsp); push %rbp; sub $N,%rsp
 *
 * The first instruction tests whether the stack is large enough. A method that calls none begins
 * with
 *
 *	sub $N,%rsp; mov %rbp,N-8(%rsp)
 *
 * Methods end with add $N,%rsp; pop %rbp; a poll for a safepoint; ret.
 */
#include <string.h>

#include "tools/java/hotspot.h"
#include "libshstk/unaligned.h"

#define FRAME_MAX (1 << 20)

/* The instructions by which a method makes its frame. */
struct begin {
	size_t at; /* offset of the first instruction that makes the frame */
	size_t end; /* offset behind the last one */
	uint32_t size; /* N, bytes */
	bool pushes; /* the first instruction pushes the frame pointer */
};

/* Decodes sub $N,%rsp or add $N,%rsp. Returns the length of the instruction, or 0. */
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

/* Recognizes push %rbp after the test of the stack's size. */
static bool begins_with_push(const uint8_t *p, size_t left, struct begin *b)
{
	bool record;
	size_t n;

	if (left < 5 || p[0] != 0x55)
		return false;
	b->pushes = true;
	record = !memcmp(p + 1, "\x48\x8b\xec", 3) || !memcmp(p + 1, "\x48\x89\xe5", 3);
	n = take_size(p + (record ? 4 : 1), left - (record ? 4 : 1), 0xec, &b->size);
	b->end = b->at + (record ? 4 : 1) + n;
	return record || (n && good_size(b->size));
}

/* Recognizes sub $N,%rsp; mov %rbp,N-8(%rsp). */
static bool begins_with_sub(const uint8_t *p, size_t left, struct begin *b)
{
	size_t n = take_size(p, left, 0xec, &b->size);

	if (n != 7 || !good_size(b->size) || left < n + 8 || memcmp(p + n, "\x48\x89", 2))
		return false;
	p += n;
	b->pushes = false;
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

static bool begins_at(const uint8_t *code, size_t size, size_t at, struct begin *b)
{
	static const uint8_t bang[] = { 0x89, 0x84, 0x24 };
	size_t left = size - at;

	b->at = at;
	if (left > sizeof(bang) + 4 && !memcmp(code + at, bang, sizeof(bang)))
		b->at += sizeof(bang) + 4;
	else if (begins_with_sub(code + at, left, b))
		return true;
	return begins_with_push(code + b->at, size - b->at, b);
}

/*
 * Returns the bytes that are left of the frame at the end of a method: 8 if the frame pointer is
 * still to be popped, 0 if only the return address is left, -1 if the frame is complete.
 */
static int behind_frame(const uint8_t *code, size_t pc)
{
	/* What may lie between pop %rbp and @pc: nothing, or parts of a poll for a safepoint. */
	static const struct {
		uint8_t bytes;
		uint8_t code[3];
	} polls[] = {
		{ 0, { 0 } },
		{ 7, { 0x49, 0x3b, 0xa7 } }, /* cmp off(%r15),%rsp */
		{ 13, { 0x49, 0x3b, 0xa7 } }, /* the same, then ja */
		{ 4, { 0x49, 0x3b, 0x67 } }, /* the same two with a short offset */
		{ 10, { 0x49, 0x3b, 0x67 } },
		{ 6, { 0x85, 0x05 } }, /* test %eax,off(%rip) */
		{ 7, { 0x4d, 0x8b, 0x97 } }, /* mov off(%r15),%r10 */
		{ 10, { 0x4d, 0x8b, 0x97 } }, /* the same, then test %eax,(%r10) */
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

/*
 * Finds the first instructions that make a frame. Only a check of the receiver's class comes before
 * them.
 */
static bool find_begin(const uint8_t *code, size_t size, struct begin *b)
{
	for (size_t at = 0; at < size; at++)
		if (begins_at(code, size, at, b))
			return true;
	return false;
}

static void partial_begin(const struct begin *b, size_t at, struct hotspot_frame *frame)
{
	if (at >= b->end)
		return;
	/* After sub $N,%rsp, only the frame pointer is not stored yet. */
	if (!b->pushes || at <= b->at)
		frame->fp_saved = false;
	if (at <= b->at)
		frame->cfa = 8;
	else if (b->pushes)
		frame->cfa = 16;
}

void hotspot_edge(const uint8_t *code, size_t size, size_t at, struct hotspot_frame *frame)
{
	static const uint8_t begin[] = { 0x55, 0x48, 0x8b, 0xec }; /* push %rbp; mov %rsp,%rbp */

	frame->cfa = 0;
	frame->fp_saved = false;
	if (at >= size)
		return;
	if (code[at] == 0xc3 || (size - at >= 4 && !memcmp(code + at, begin, 4)))
		frame->cfa = 8;
	if (at < 1 || size - at < 3 || memcmp(code + at - 1, begin, 4))
		return;
	frame->cfa = 16;
	frame->fp_saved = true;
}

void hotspot_partial(const uint8_t *code, size_t size, size_t at, bool making,
		     struct hotspot_frame *frame)
{
	struct begin b = { 0 };
	int left;

	if (at >= size)
		return;
	if (making) {
		if (find_begin(code, size, &b))
			partial_begin(&b, at, frame);
		return;
	}
	left = behind_frame(code, at);
	if (left < 0)
		return;
	frame->cfa = 8 + left;
	frame->fp_saved = left == 8;
}
