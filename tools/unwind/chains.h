/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chains.h - how good the callchains are that the kernel took.
 */
#ifndef TOOLS_UNWIND_CHAINS_H
#define TOOLS_UNWIND_CHAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/convert/layout.h"
#include "tools/elf/image.h"

/**
 * struct chain_place - where an address lies
 * @mapped: in code that is mapped.
 * @file: of this file, or NULL: of none that can be read.
 * @offset: in the file.
 */
struct chain_place {
	bool mapped;
	struct image *file;
	uint64_t offset;
};

struct chain_ends;

/**
 * struct chains - what was found so far; all 0 in the beginning
 * @samples: samples that have a user stack.
 * @without: those that have none: of the kernel's own threads, and while a program is
 *	replaced by another one, whose stack is not there yet.
 * @lost: records that perf lost so far: of mappings, too, as far as anybody knows.
 * @unknown: samples behind these with an entry in no code that is known of: what was lost may
 *	have told of it, and they count neither here nor there.
 * @whole: chains that end in the outermost frame, by that file's unwind information.
 * @unwound: chains whose stack was also unwound.
 * @equal: of these, chains that are the same, entry by entry, as far as the stack was
 *	unwound.
 * @partial: of @equal, stacks that were not unwound to their end: behind the copy, or
 *	where libshstk found no way on, or was not sure of it.
 * @guessed: of @partial, chains that have another entry where libshstk only guesses.
 * @shorter: chains that are the same but end earlier.
 * @differ: chains with another entry.
 * @told: chains that are not whole and were said in full.
 * @ends: the files' outermost frames.
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
 * @nr: their number.
 * @unwound: the same stack, unwound; without entries: it was not.
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
 * @c: what was found.
 * @s: the callchain.
 *
 * Return: false: too little memory.
 */
bool chains_add(struct chains *c, const struct chain *s);

/**
 * chains_print() - say what was found
 * @c: what was found.
 */
void chains_print(const struct chains *c);

/**
 * chains_deinit() - release memory
 * @c: what was found.
 */
void chains_deinit(struct chains *c);

#endif
