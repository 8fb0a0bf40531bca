/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * repeats.h - finds what a deep recursion repeats in a stack, and shortens the stack by it.
 *
 * The agents have this code, too, and call it in a signal handler and in malloc().
 */
#ifndef TOOLS_REPEATS_H
#define TOOLS_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPEATS_PERIOD 16 /* longest group of entries that is looked for */

/**
 * struct repeats - entries of a stack that follow each other again and again
 * @period: number of entries of the group that is repeated, at most REPEATS_PERIOD.
 * @times: how often the group comes.
 */
struct repeats {
	unsigned int period;
	size_t times;
};

/**
 * repeats_find() - find the shortest group of entries with which a stack begins again and again
 * @pcs: the stack, from the entry on that is looked at.
 * @nr: number of entries.
 * @ret: receives the group.
 *
 * Entries are equal if their addresses are: a simple recursion makes the same calls each time. A
 * recursion that makes varying calls, such as a walk of a tree, is not found to repeat.
 *
 * Return: false if there is none that is worth to be shown once.
 */
bool repeats_find(const uint64_t *pcs, size_t nr, struct repeats *ret);

/**
 * repeats_shorten() - shorten a stack, so that both ends remain
 * @pcs: its entries, which are changed.
 * @marks: their marks, which are changed along with them.
 * @nr: number of entries.
 * @max: most entries that may remain.
 * @complete: the stack was seen to its end.
 *
 * What repeats is kept once. Behind it, further out, is an entry that stands for all the others
 * (SHSTK_FUNCTION_LEFT_OUT). If that leaves too many entries of a complete stack, an entry stands
 * for those in its middle.
 *
 * Context: async-signal-safe.
 *
 * Return: number of entries that remain; more than @max if the stack is not complete, and too deep.
 */
unsigned int repeats_shorten(uint64_t *pcs, uint8_t *marks, unsigned int nr, unsigned int max,
			     bool complete);

/**
 * repeats_fit() - shorten a stack, and cut what is still too deep at its outer end
 * @pcs: its entries, which are changed.
 * @marks: their marks, which are changed along with them.
 * @nr: number of entries. Receives how many remain, at most @max.
 * @max: most entries that may remain.
 * @end: how the stack ended (enum shstk_end). Receives SHSTK_END_CAPACITY if it was cut.
 *
 * See repeats_shorten().
 *
 * Context: async-signal-safe.
 *
 * Return: whether entries stand for others.
 */
bool repeats_fit(uint64_t *pcs, uint8_t *marks, unsigned int *nr, unsigned int max, uint16_t *end);

#endif
