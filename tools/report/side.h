/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tools/report/side.h - reading one of the profiles that `shstk diff` compares, by itself. */
#ifndef TOOLS_REPORT_SIDE_H
#define TOOLS_REPORT_SIDE_H

#include "libshstk/symbol/profile.h"
#include "tools/report/filter.h"

/**
 * side_read() - read a profile
 * @symbols: symbol store that keeps the names.
 * @path: the file.
 * @filter: which samples are taken. It is not changed, because the results that it keeps for
 *	locations are of one profile.
 * @scale: factor for the values of each type, or NULL.
 * @ret: receives the profile, to be destroyed; NULL if it cannot be read.
 *
 * Return: an exit status; on failure after a message.
 */
int side_read(struct shstk_symbols *symbols, const char *path, const struct filter *filter,
	      const double *scale, struct shstk_profile **ret);

/* Returns a value multiplied by a factor, rounded, and limited to the range of values. */
int64_t side_scaled(int64_t value, double scale);

#endif
