/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/report/calltree.h - a profile as a tree of calls, in text.
 */
#ifndef TOOLS_REPORT_CALLTREE_H
#define TOOLS_REPORT_CALLTREE_H

#include "libshstk/symbol/profile.h"

/**
 * calltree_print() - print a profile as a tree of calls to standard output
 * @profile: the profile.
 * @opts: of these only @type, @per_thread, @inverted, @full_names and @by are used.
 * @share: nodes with a smaller part of the whole are left out, in percent.
 *
 * A callee stands one column to the right of its caller, up to a column that leaves room for its
 * name.
 *
 * Return: 0 or a negative errno.
 */
int calltree_print(const struct shstk_profile *profile, const struct shstk_write_opts *opts,
		   double share);

#endif
