/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spots.h - the lines and the addresses of one function that samples were taken at.
 *
 * As in tables of functions, a sample's value counts as a spot's own where the function is the
 * innermost one of the stack, and as its total, once for each sample, wherever the function is on
 * the stack.
 */
#ifndef TOOLS_REPORT_SPOTS_H
#define TOOLS_REPORT_SPOTS_H

#include "libshstk/symbol/export.h"

/**
 * struct spot - a line or an address
 * @hh: link in the table; the key is @key.
 * @key.file: path of the line's source file, or NULL: the line is not known.
 * @key.map: mapping of the address, or NULL for a line.
 * @key.number: number of the line from 1, or the address in the process.
 * @self: sum of the values of samples whose innermost function is the one at this spot.
 * @total: sum of the values of all samples with this spot on their stack.
 * @seen: the last record that was added to @total.
 */
struct spot {
	UT_hash_handle hh;
	struct {
		const char *file;
		const struct shstk_symmap *map;
		uint64_t number;
	} key;
	int64_t self;
	int64_t total;
	const struct shstk_record *seen;
};

/**
 * struct spots - where the samples of a function are
 * @profile: the profile.
 * @function: name of the function, a string of the profile's pool.
 * @type: index of the value type.
 * @pool: memory of the spots.
 * @used: for each location of the profile whether it is in a sample.
 * @lines: table of the lines. Lines at which the function is declared are among them, too.
 * @addresses: table of the addresses.
 * @whole: the value that counts as 100 %: the sum of all values without their signs.
 * @all: the line that stands for the whole function.
 */
struct spots {
	const struct shstk_profile *profile;
	const char *function;
	unsigned int type;
	struct shstk_pool pool;
	uint8_t *used;
	struct spot *lines;
	struct spot *addresses;
	int64_t whole;
	struct spot all;
};

/* Number of columns of what spots_put() prints. */
#define SPOTS_COLUMNS 29

/**
 * spots_find() - find all spots of a function
 * @profile: the profile.
 * @function: name of the function, as tables in full show it, or as symbol tables have it.
 * @type: index of the value type.
 * @ret: receives the spots. Give it to spots_deinit(), also after a failure.
 *
 * Return: 0; -ENOENT: no sample has the function; -ENOMEM.
 */
int spots_find(const struct shstk_profile *profile, const char *function, unsigned int type,
	       struct spots *ret);
void spots_deinit(struct spots *spots);

/* Prints the two values and the share of a spot, or blanks if both values are 0. */
void spots_put(const struct spots *spots, int64_t self, int64_t total);

/*
 * Returns names of functions in samples that are like @function, with commas between them, which
 * the caller frees; NULL if there is none, or memory runs out.
 */
char *spots_like(const struct spots *spots, const char *function);

#endif
