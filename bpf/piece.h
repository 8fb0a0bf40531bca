/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * piece.h - reads the stack in pieces, since a call of bpf_probe_read_user() takes longer than what is
 * left of passing a frame (make bench-bpf).
 *
 * A piece begins a little below the word that is needed first, the return address, since registers
 * are saved below it. It does not leave the page. Even so a part of it may be unreadable while the word
 * is not: with arm64's memory tagging each 16 bytes have a tag of their own. Then only the word is read.
 *
 * The including file defines MASKED() and bpf_probe_read_user().
 */
#ifndef BPF_PIECE_H
#define BPF_PIECE_H

#define PIECE_WORDS 64 /* a power of two */
#define PIECE_BELOW 64 /* bytes */
#define PIECE_PAGE 4096 /* a page of memory is as large or larger */

/**
 * struct piece - a piece of the stack
 * @at: its address, a multiple of 8.
 * @size: bytes of it that were read; 0: none.
 * @word: what they are.
 */
struct piece {
	u64 at, size;
	u64 word[PIECE_WORDS];
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

/* Reads the word at @addr, and the piece around it. Returns false if it cannot be read. */
static noinline bool read_piece(struct piece *p, u64 addr, u64 *ret)
{
	u64 page = addr & ~(PIECE_PAGE - 1), start = addr - PIECE_BELOW, size;

	/* The verifier of Linux 6.18 refuses some programs that have a helper write to new stack first. */
	*ret = 0;
	p->size = 0;
	if (start < page || start > addr)
		start = page;
	size = page + PIECE_PAGE - start;
	if (size > sizeof(p->word))
		size = sizeof(p->word);
	if (addr & 7 || bpf_probe_read_user(p->word, size, (void *)start))
		return !bpf_probe_read_user(ret, sizeof(*ret), (void *)addr);
	p->at = start;
	p->size = size;
	return word_of_piece(p, addr, ret);
}

#endif /* BPF_PIECE_H */
