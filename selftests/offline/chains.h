/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chains.h - judges the callchains that the kernel took: whether they are complete, and equal to
 * what unwinding of the same stack gives.
 */
#ifndef SELFTESTS_OFFLINE_CHAINS_H
#define SELFTESTS_OFFLINE_CHAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/convert/mappings.h"
#include "tools/elf/image.h"

/**
 * struct chain_place - where an address lies
 * @mapped: the address is in mapped code.
 * @file: the file of that code, or NULL if there is none that can be read.
 * @offset: offset in the file.
 */
struct chain_place {
	bool mapped;
	struct image *file;
	uint64_t offset;
};

struct chain_ends;

/**
 * struct chains - counts of the judgement; all 0 at the beginning
 * @samples: samples that have a user stack.
 * @without: samples without a user stack: of kernel threads, and of programs that are being
 *	replaced by another one, whose stack does not exist yet.
 * @whole: callchains that end in the outermost frame, according to that file's unwind information.
 * @lost: records that perf lost so far, possibly of mappings.
 * @unknown: samples with an entry in no known code, after perf lost records. What was lost may have
 *	told of that code, so they are in no other count.
 * @unwound: callchains whose stack was also unwound.
 * @equal: callchains of @unwound that are the same, entry by entry, as far as the stack was
 *	unwound.
 * @partial: callchains of @equal whose stack was not unwound to its end: because the copy ended, or
 *	libshstk found no way on or was not sure of it.
 * @guessed: callchains of @partial that have another entry where libshstk only guesses.
 * @shorter: callchains that are the same but end earlier.
 * @differ: callchains with another entry.
 * @told: callchains that are not complete and were printed.
 * @ends: the rules of files, which say where outermost frames are.
 */
struct chains {
	uint64_t samples, without, whole;
	uint64_t lost, unknown;
	uint64_t unwound, equal, partial, guessed, shorter, differ;
	unsigned int told;
	struct chain_ends *ends;
};

/**
 * struct chain - the callchain of a sample
 * @ips: user entries as the kernel has them, the program counter first.
 * @nr: number of entries.
 * @unwound: the same stack, unwound; without entries if it was not unwound.
 * @where: says where an address lies.
 * @arg: passed to @where.
 */
struct chain {
	const uint64_t *ips;
	size_t nr;
	const struct unwound *unwound;
	struct chain_place (*where)(void *arg, uint64_t addr);
	void *arg;
};

/**
 * chains_add() - judge the callchain of a sample
 * @c: the counts.
 * @s: the callchain.
 *
 * Return: false if there is not enough memory.
 */
bool chains_add(struct chains *c, const struct chain *s);

/**
 * chains_print() - print the counts
 * @c: the counts.
 */
void chains_print(const struct chains *c);

/**
 * chains_deinit() - release memory
 * @c: the counts.
 */
void chains_deinit(struct chains *c);

#endif
