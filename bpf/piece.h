/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * piece.h - reads the stack in pieces, since a call of bpf_probe_read_user() takes longer than what is
 * left of passing a frame (make bench-bpf).
 *
 * A piece begins a little below the word that is needed first, the return address, since registers
 * are saved below it, but not in the page below, which may not be there. It may end in the next page, which has
 * callers' frames and is nearly always there. If it is not, the piece ends with the page. Even so a part of it may
 * be unreadable while the word is not: with arm64's memory tagging each 16 bytes have a tag of their own. Then only
 * the word is read.
 *
 * The including file defines MASKED(), VERIFIED_ALONE and bpf_probe_read_user().
 */
#ifndef BPF_PIECE_H
#define BPF_PIECE_H

#define PIECE_WORDS 256 /* a power of two */
#define PIECE_BYTES (PIECE_WORDS * 8)
#define PIECE_FIRST 1024 /* bytes of a walk's first piece, and of one far from the one before it */
#define PIECE_BELOW 64 /* bytes */
#define PIECE_PAGE 4096 /* a page of memory is as large or larger */

/**
 * struct piece - a piece of the stack
 * @at: its address, a multiple of 8.
 * @size: bytes of it that were read; 0: none.
 * @missed: address of the word that ended a round, since the piece does not have it; 0: none did.
 * @word: what they are.
 * @behind: never read; the verifier does not know that what is read is a whole word of @word.
 */
struct piece {
	u64 at, size, missed;
	u64 word[PIECE_WORDS];
	u64 behind;
};

/* Sets @ret to the word at @addr, a multiple of 8. Returns false if the piece does not have it. */
static __always_inline bool word_of_piece(const struct piece *p, u64 addr, u64 *ret)
{
	const u64 at = addr - p->at;

	if (at >= p->size)
		return false;
	*ret = p->word[MASKED(at / 8, PIECE_WORDS)];
	return true;
}

/* Returns the word at @place, counted in bytes, which the piece has. */
static __always_inline u64 word_at_place(const struct piece *p, u64 place)
{
	return *(const u64 *)((const char *)p->word + MASKED(place, PIECE_BYTES));
}

/*
 * Sets @ret to the word that is @bytes, which is negative, from @place, up to which the piece has all.
 * Returns false if the piece does not have it.
 */
static __always_inline bool word_before(const struct piece *p, u64 place, s64 bytes, u64 *ret)
{
	const u64 at = place + bytes;

	/* Before the first word it is a large number. */
	if (at >= PIECE_BYTES)
		return false;
	*ret = *(const u64 *)((const char *)p->word + at);
	return true;
}

/* The same for a register that is saved there. If @bytes is 0 it is not saved, and @ret stays as it is. */
static __always_inline bool saved_word(const struct piece *p, u64 place, s64 bytes, u64 *ret)
{
	/* Compilers know no other way to tell whether it is 0. */
	asm volatile("" : "+r"(bytes));
	return !bytes || word_before(p, place, bytes, ret);
}

/* Reads @size bytes at @start, or what the page has of them. Returns how many were read. */
static __always_inline u64 read_words(struct piece *p, u64 start, u64 size)
{
	const u64 left = PIECE_PAGE - (start & (PIECE_PAGE - 1));

	if (!bpf_probe_read_user(p->word, size, (void *)start))
		return size;
	/* Older verifiers do not see that it is below @size. */
	if (left < size && !bpf_probe_read_user(p->word, MASKED(left, PIECE_BYTES), (void *)start))
		return left;
	return 0;
}

/* Reads the word at @addr, and the piece around it. Returns false if it cannot be read. */
VERIFIED_ALONE bool shstk_read_piece(struct piece *p, u64 addr, u64 *ret)
{
	u64 page = addr & ~(PIECE_PAGE - 1), start = addr - PIECE_BELOW, size;

	if (!p || !ret)
		return false;
	size = addr - p->at - p->size < PIECE_FIRST && p->size ? PIECE_BYTES : PIECE_FIRST;
	p->size = 0;
	if (start < page || start > addr)
		start = page;
	size = addr & 7 ? 0 : read_words(p, start, size);
	if (!size)
		return !bpf_probe_read_user(ret, sizeof(*ret), (void *)addr);
	p->at = start;
	p->size = size;
	return word_of_piece(p, addr, ret);
}

/* Reads the piece with the word that was missed. Returns false if there is none, or it cannot be read. */
static noinline __maybe_unused bool read_missed(struct piece *p)
{
	u64 word = 0;

	return p->missed && shstk_read_piece(p, p->missed, &word) && p->size;
}

#endif /* BPF_PIECE_H */
