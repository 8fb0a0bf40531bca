/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/report/side.h - one of the profiles that `shstk diff` compares, by itself.
 */
#ifndef TOOLS_REPORT_SIDE_H
#define TOOLS_REPORT_SIDE_H

#include "libshstk/symbol/profile.h"
#include "tools/report/filter.h"

/**
 * side_read() - read a profile
 * @symbols: where its names are kept.
 * @path: the file.
 * @filter: which samples are taken. It is not changed: what a filter knows of locations is of one
 *	profile.
 * @scale: what values of each kind are multiplied by, or NULL.
 * @ret: receives the profile, to be destroyed; NULL if it cannot be read.
 *
 * Return: an exit status, and it was said why.
 */
int side_read(struct shstk_symbols *symbols, const char *path, const struct filter *filter,
	      const double *scale, struct shstk_profile **ret);

/* A value that is multiplied, rounded, and kept within what a value can be. */
int64_t side_scaled(int64_t value, double scale);

#endif
