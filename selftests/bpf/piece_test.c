// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * piece_test.c - tests how the BPF walk reads the stack in pieces (bpf/piece.h), on a memory of which parts
 * cannot be read. Prints KTAP.
 *
 * With arm64's memory tagging each 16 bytes have a tag of their own, so such parts are smaller than pages.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t s64;
typedef int32_t s32;
typedef int16_t s16;
#define S16_MAX INT16_MAX

#define noinline __attribute__((noinline))
#define VERIFIED_ALONE noinline
#define __maybe_unused __attribute__((unused))
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define MASKED(value, bound) ((value) & ((bound)-1))

#define BASE 0x100000ull
#define WORDS 2048
#define GRANULE 16

/* A word of the memory is its own address. */
static bool is_missing[8 * WORDS / GRANULE];
static unsigned int nr_reads;

/* As the kernel's function: what cannot be read as a whole is cleared. */
static long bpf_probe_read_user(void *to, u64 size, const void *from)
{
	const u64 at = (uintptr_t)from;
	bool good = at >= BASE && at + size <= BASE + 8 * WORDS;

	nr_reads++;
	for (u64 i = at; good && i < at + size; i++)
		good = !is_missing[(i - BASE) / GRANULE];
	for (u64 i = 0; i < size; i++) {
		const u64 word = (at + i) & ~7ull;

		((uint8_t *)to)[i] = good ? ((const uint8_t *)&word)[(at + i) & 7] : 0;
	}
	return good ? 0 : -14;
}

#include "bpf/piece.h"
#include "bpf/plain_rule.h"
#include "kmod/walk_end.h"

/* What the loop of arm64 needs for frames that it does not pass here. */
struct walk {
	bool exact, sp_known;
};
static bool load(struct walk *w, u64 *ret, u64 addr)
{
	return w && ret && !addr;
}
static int step_record(struct walk *w, struct frame *f, int why)
{
	return w && f ? why : GO_ON;
}
static u64 walk_arch_strip(u64 addr)
{
	return addr;
}

#include "bpf/loop_arm64.h"

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

/* Returns how many words from @from on, up to @end, are read as they should be; each is asked for twice. */
static unsigned int count_right(u64 from, u64 end)
{
	struct piece p = { 0 };
	unsigned int ret = 0;

	for (u64 at = from; at < end; at += 8) {
		const bool is = at >= BASE && at + 8 <= BASE + 8 * WORDS &&
				!is_missing[(at - BASE) / GRANULE];
		u64 word = 1, again = is ? at : 0;

		ret += (word_of_piece(&p, at, &word) || shstk_read_piece(&p, at, &word)) == is &&
		       word == (is ? at : 0) &&
		       (!p.size || (word_of_piece(&p, at, &again) && again == word));
	}
	return ret;
}

static void make_missing(u64 from, u64 step)
{
	memset(is_missing, 0, sizeof(is_missing));
	for (u64 i = from; step && i < sizeof(is_missing); i += step)
		is_missing[i] = true;
}

/* Returns whether the words before one that a piece has are its words, and no others are read. */
static bool reads_before(void)
{
	u64 word, place = 512;
	struct piece p = { 0 };
	bool good;

	shstk_read_piece(&p, BASE + 2048, &word);
	good = word_at_place(&p, place) == p.at + place;
	for (s16 words = 1; words > 0 && words < INT16_MAX; words++)
		good &= (u64)words * 8 > place ? !word_before(&p, place, -8 * words, &word) :
						 word_before(&p, place, -8 * words, &word) &&
							 word == p.at + place - 8 * words;
	return good;
}

/* Returns whether a piece is read if one was missed, and if it can be. */
static bool reads_missed(void)
{
	struct piece p = { 0 };

	if (read_missed(&p) || p.size)
		return false;
	p.missed = BASE + 4096;
	if (!read_missed(&p) || word_at_place(&p, 0) != p.at)
		return false;
	p.missed = BASE - 8;
	return !read_missed(&p) && !p.size;
}

/*
 * Returns whether the first piece of a walk is small, and the next ones are as large as there is room for, but for
 * one that is far from the one before it.
 */
static bool grows(void)
{
	struct piece p = { 0 };
	u64 word;

	shstk_read_piece(&p, BASE + 128, &word);
	if (p.size != PIECE_FIRST)
		return false;
	shstk_read_piece(&p, BASE + 2048, &word);
	if (p.size != PIECE_BYTES)
		return false;
	shstk_read_piece(&p, BASE + 8192, &word);
	return p.size == PIECE_FIRST;
}

/* Returns whether a piece goes on in the next page if that is there, and else ends with its page. */
static bool goes_on(void)
{
	struct piece p = { 0 };
	u64 word;
	bool good;

	make_missing(0, 0);
	good = shstk_read_piece(&p, BASE + PIECE_PAGE - 128, &word) && p.size == PIECE_FIRST;
	make_missing(PIECE_PAGE / GRANULE, sizeof(is_missing));
	p.size = 0;
	return good && shstk_read_piece(&p, BASE + PIECE_PAGE - 128, &word) &&
	       p.size == 128 + PIECE_BELOW;
}

/*
 * Passes a frame of 64 bytes whose caller's fp and return address are so many words below its end. Behind the
 * first 16 bytes of the frame the piece ends. Returns the caller's fp, or 0 if the frame was not passed.
 */
static u64 fp_passed(s16 fp, s16 saved)
{
	const struct packed_rule rule = { 0, 64, -fp, -saved };
	struct piece p = { .at = BASE, .size = PIECE_FIRST };
	struct frame f = { .sp = PIECE_FIRST - 16, .fp = 1 };

	for (unsigned int i = 0; i < PIECE_WORDS; i++)
		p.word[i] = i < PIECE_FIRST / 8 ? BASE + 8 * i : 0xbad;
	return pass_plain(&p, BASE, PIECE_FIRST, &rule, &f) ? f.fp : 0;
}

int main(void)
{
	u64 word;
	struct piece p = { 0 };

	puts("KTAP version 1\n1..10");
	make_missing(0, 0);
	verdict(count_right(BASE, BASE + 8 * WORDS) == WORDS && nr_reads < WORDS / 32,
		"memory is read in pieces");
	verdict(shstk_read_piece(&p, BASE + 12, &word) &&
			word == ((BASE + 16) << 32 | (BASE + 8) >> 32) && !p.size,
		"a word that is not aligned is read by itself");
	verdict(count_right(BASE - 80, BASE + 80) == 20 &&
			count_right(BASE + 8 * WORDS - 80, BASE + 8 * WORDS + 80) == 20,
		"memory is read to its last word where the next page is missing");
	verdict(reads_before(), "of the words before one only those are read that the piece has");
	verdict(grows(),
		"the first piece, and one far from the one before it, are smaller than others");
	verdict(fp_passed(8, 7) == BASE + PIECE_FIRST - 16 &&
			fp_passed(7, 8) == BASE + PIECE_FIRST - 8 && fp_passed(0, 8) == 1 &&
			!fp_passed(6, 7) && !fp_passed(1, 8),
		"a frame whose words are not all in the piece is not passed with others");
	verdict(reads_missed(), "a piece is read if a word was missed");
	verdict(goes_on(), "a piece ends with its page where the next page is missing only");
	make_missing(1, 2);
	verdict(count_right(BASE, BASE + 8 * WORDS) == WORDS,
		"words are read where every other 16 bytes cannot be read");
	make_missing(5, 256);
	verdict(count_right(BASE, BASE + 8 * WORDS) == WORDS,
		"and where 16 bytes of a page cannot be");
	return !!failed;
}
