/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * language_ranks.h - finds the element of a table that an instruction has, where only some of them begin
 * one: it is as many elements from the first one on as begin up to there, the instruction's rank.
 *
 * What tells the rank (struct language_ranks) lies in memory in this way. First there are six words, in
 * which each of the first 54 instructions has seven bits: its rank. Then follow blocks of ten words for
 * 512 instructions each: the number of elements that begin before the block, in four bytes of the first
 * word; the numbers of those that begin in the block before each of its words of bits but the first one,
 * in nine bits each; and eight words in which each instruction has a bit that is set if it begins one.
 */
#ifndef BPF_LANGUAGE_RANKS_H
#define BPF_LANGUAGE_RANKS_H

#include <linux/types.h>

#define LANGUAGE_RANKS_FIRST 54 /* instructions that have their rank */
#define LANGUAGE_RANKS_OF_WORD 9 /* of them, in a word */
#define LANGUAGE_RANK_BITS 7
#define LANGUAGE_RANKS_BLOCKS (8 * LANGUAGE_RANKS_FIRST / LANGUAGE_RANKS_OF_WORD) /* bytes before */
#define LANGUAGE_RANKS_BLOCK 80 /* bytes of a block */
#define LANGUAGE_RANKS_OF_BLOCK 512 /* instructions of a block */
#define LANGUAGE_RANKS_SUMS 8 /* offset in a block */
#define LANGUAGE_RANKS_BITS 16 /* offset in a block */

/**
 * struct language_rank_words - the words that tell the rank of an instruction
 * @block: the first word of its block, or the word that has its rank.
 * @sums: the second word of its block.
 * @bits: the word that has its bit.
 */
struct language_rank_words {
	__u64 block;
	__u64 sums;
	__u64 bits;
};

/* Returns whether the instruction with that number has its rank in a word. */
static inline int language_rank_is_first(__u64 n)
{
	return n < LANGUAGE_RANKS_FIRST;
}

/* Returns the offset of the word that has the rank of the instruction, or of the first word of its block. */
static inline __u64 language_rank_at(__u64 n)
{
	if (language_rank_is_first(n))
		return n / LANGUAGE_RANKS_OF_WORD * 8;
	return LANGUAGE_RANKS_BLOCKS +
	       (n - LANGUAGE_RANKS_FIRST) / LANGUAGE_RANKS_OF_BLOCK * LANGUAGE_RANKS_BLOCK;
}

/* Returns the offset in its block of the word that has the bit of the instruction. */
static inline __u64 language_rank_bits_at(__u64 n)
{
	return LANGUAGE_RANKS_BITS + (n - LANGUAGE_RANKS_FIRST) % LANGUAGE_RANKS_OF_BLOCK / 64 * 8;
}

/* Returns how many bits of a word are set. */
static inline __u64 language_count_bits(__u64 word)
{
	word -= word >> 1 & 0x5555555555555555ull;
	word = (word & 0x3333333333333333ull) + (word >> 2 & 0x3333333333333333ull);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return word * 0x0101010101010101ull >> 56;
}

/* Returns the rank of the instruction with that number; 0: no element has begun. */
static inline __u64 language_rank(const struct language_rank_words *w, __u64 n)
{
	const __u64 in_block = (n - LANGUAGE_RANKS_FIRST) % LANGUAGE_RANKS_OF_BLOCK;
	__u64 before = 0;

	if (language_rank_is_first(n))
		return w->block >> n % LANGUAGE_RANKS_OF_WORD * LANGUAGE_RANK_BITS &
		       ((1 << LANGUAGE_RANK_BITS) - 1);
	if (in_block >= 64)
		before = w->sums >> (in_block / 64 - 1) * 9 & 511;
	return (__u32)w->block + before + language_count_bits(w->bits << (63 - in_block % 64));
}

#endif /* BPF_LANGUAGE_RANKS_H */
